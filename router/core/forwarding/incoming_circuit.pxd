from router.core.forwarding.credit_pool cimport Claimant
from router.core.forwarding.egress_load cimport LoadToldToNeighbor


cdef class IncomingCircuit(Claimant):
    cdef public object neighbor
    cdef public LoadToldToNeighbor report
    cdef public Py_ssize_t neighbor_weight
    cdef public bint was_told_closed
    cdef public double answer_due
    cdef public bint was_asked_early
    cdef public Py_ssize_t unreturned
    cdef public Py_ssize_t late

    cpdef object drain(self, double now, double bound_s)
    cpdef object used_while_draining(self, double now)
    cpdef object answered(self)


cdef class UnfinishedMessage:
    cdef public IncomingCircuit circuit
    cdef public double since
    cdef public bint is_late
