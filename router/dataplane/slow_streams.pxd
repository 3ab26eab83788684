import cython

from router.core.forwarding.fib cimport AddressEntry
from router.dataplane.links cimport EgressLargeMessagesLink, EgressLink, Transfer
from router.dataplane.turn_clock cimport TurnClock


cdef class Stream:
    cdef public Transfer transfer
    cdef public double looked_at
    cdef public Py_ssize_t received


cdef class SlowStreams:
    cdef public double due
    cdef TurnClock _clock
    cdef dict _streams

    cpdef object begin(self, Transfer transfer, EgressLink link)
    @cython.locals(stream=Stream)
    cpdef object receive(self, EgressLink link, Py_ssize_t count)
    @cython.locals(debt_s=double, is_fast=bint)
    cpdef bint may_begin(self, Transfer transfer, AddressEntry entry) except -1
    @cython.locals(link=EgressLink, stream=Stream, transfer=Transfer, late_s=double, now=double, entry=AddressEntry, is_slow=bint)
    cpdef list given_up(self)
    cdef double _debt(self, AddressEntry entry) except -1
    cdef bint _is_contended(self, EgressLink link) except -1
