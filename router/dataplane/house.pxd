from router.core.forwarding.fib cimport Fib
from router.binding.handles cimport *
from router.dataplane.copying cimport Copying
from router.dataplane.egress cimport Egress
from router.dataplane.interface cimport EgressLink, Port
from router.dataplane.repair cimport Repair
from router.dataplane.settlement cimport Settlement
from router.dataplane.waiting cimport WaitingRoom


cdef class House:
    cdef public object forwarder
    cdef public object end_circuit
    cdef public double now
    cdef public Fib fib
    cdef public dict ports
    cdef public object settings
    cdef public Settlement settlement
    cdef public Egress egress
    cdef public WaitingRoom waiting
    cdef public Repair repair
    cdef public Copying copying
    cdef public Py_ssize_t window
    cdef public Py_ssize_t brokered_messages
    cdef public double circuit_idle_s
    cdef public double retry_s
    cdef public object patience
    cdef public object timing
    cdef public dict touched
    cdef public dict words
    cdef public dict retired

    cpdef object word_to(self, Port port)
    cpdef object retire(self, EgressLink link)
    cpdef object end_if_settled(self, EgressLink link)
    cpdef object _give_back_retired(self, EgressLink link)
    cpdef object end(self, EgressLink link)
