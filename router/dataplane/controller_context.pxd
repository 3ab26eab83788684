from router.core.forwarding.fib cimport Fib
from router.dataplane.local_copier cimport LocalCopier
from router.dataplane.message_sender cimport MessageSender
from router.dataplane.links cimport EgressCircuitLink
from router.dataplane.connection_port cimport Port
from router.dataplane.multicast_repair cimport MulticastRepair
from router.dataplane.settlement cimport Settlement
from router.dataplane.turn_clock cimport TurnClock
from router.dataplane.waiting_messages cimport WaitingMessages


cdef class ControllerContext:
    cdef public object forwarder
    cdef object _end_circuit
    cdef public object faults
    cdef public TurnClock clock
    cdef public Fib fib
    cdef public dict ports
    cdef public object current_settings
    cdef public Settlement settlement
    cdef public MessageSender egress
    cdef public WaitingMessages waiting
    cdef public MulticastRepair repair
    cdef public LocalCopier copying
    cdef public Py_ssize_t window
    cdef public Py_ssize_t brokered_messages
    cdef public double circuit_idle_s
    cdef public double retry_s
    cdef public object patience
    cdef public object timing
    cdef public dict touched
    cdef public dict updates
    cdef public dict retired
    cdef public dict exclusions

    cpdef object updates_for(self, Port port)
    cpdef object retire(self, EgressCircuitLink link)
    cpdef object end_if_settled(self, EgressCircuitLink link)
    cpdef object end(self, EgressCircuitLink link)
