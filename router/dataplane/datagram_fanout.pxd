import cython

from router.binding.proton_functions cimport *
from router.core.forwarding.fib cimport AddressEntry, Fib, Route
from router.dataplane.local_copier cimport LocalCopier
from router.dataplane.message_sender cimport MessageSender
from router.dataplane.links cimport EgressLink, IngressLink, Transfer
from router.dataplane.connection_port cimport Port
from router.dataplane.scan_result cimport Scan
from router.dataplane.multicast_repair cimport MulticastRepair
from router.dataplane.settlement cimport Settlement


cdef class DatagramFanout:
    cdef Fib _fib
    cdef dict _ports
    cdef MessageSender _egress
    cdef Settlement _settlement
    cdef MulticastRepair _repair
    cdef LocalCopier _copying

    @cython.locals(source=IngressLink, found=Scan, own=bytes, is_copied=bint)
    cpdef object send(self, Transfer transfer, AddressEntry entry, double now)
    @cython.locals(onward=bytes, port=Port)
    cpdef bint send_to(self, Transfer transfer, AddressEntry entry, object ingress, Route hop) except -1
    cdef bint _is_expected(self, object ingress, object neighbor) except -1
