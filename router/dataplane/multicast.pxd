from router.binding.handles cimport *
from router.dataplane.broker cimport Broker
from router.dataplane.interface cimport EgressLink, IngressLink, Transfer
from router.dataplane.states cimport *


cdef class MulticastBroker(Broker):
    cdef public dict _known

    cpdef bint _is_ready(self, Transfer transfer)
    cpdef bint _restate(self, double now)
