import cython

from router.binding.handles cimport *
from router.core.forwarding.fib cimport AddressEntry, Fib
from router.dataplane.egress cimport Egress
from router.dataplane.interface cimport EgressLink, IngressLink, Port, Transfer
from router.dataplane.scan_result cimport Scan
from router.dataplane.repair cimport Repair
from router.dataplane.settlement cimport Settlement


cdef class Fanout:
    cdef Fib _fib
    cdef dict _ports
    cdef Egress _egress
    cdef Settlement _settlement
    cdef Repair _repair

    @cython.locals(source=IngressLink, found=Scan, own=bytes, onward=bytes, port=Port)
    cpdef object send(self, Transfer transfer, AddressEntry entry, double now)
    cdef bint _is_expected(self, object ingress, object neighbor) except -1
