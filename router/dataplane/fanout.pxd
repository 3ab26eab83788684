from router.binding.handles cimport *
from router.core.forwarding.fib cimport AddressEntry, Fib
from router.dataplane.egress cimport Egress
from router.dataplane.interface cimport EgressLink, Transfer
from router.dataplane.settlement cimport Settlement


cdef class Fanout:
    cdef Fib _fib
    cdef dict _ports
    cdef Egress _egress
    cdef Settlement _settlement

    cpdef object send(self, Transfer transfer, AddressEntry entry)
    cpdef object copy(self, bytes data, Transfer transfer, EgressLink link)
