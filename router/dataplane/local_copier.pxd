import cython

from router.binding.proton_functions cimport *
from router.core.forwarding.fib cimport AddressEntry
from router.dataplane.message_sender cimport MessageSender
from router.dataplane.links cimport SubscriberLink, Transfer
from router.dataplane.settlement cimport Settlement


cdef class CopyBatch:
    cdef public bytes data
    cdef public Transfer transfer
    cdef public list links
    cdef public Py_ssize_t at
    cdef public bint is_counted


cdef class LocalCopier:
    cdef MessageSender _egress
    cdef Settlement _settlement
    cdef dict _runs
    cdef public Py_ssize_t left
    cdef object _end_faulty
    cdef object _faults

    @cython.locals(link=SubscriberLink, those=list)
    cpdef bint send(self, bytes data, Transfer transfer, AddressEntry entry, object links, bint is_counted) except -1
    cpdef bint has_more(self) except -1
    @cython.locals(left=Py_ssize_t)
    cpdef object go_on(self)
    @cython.locals(
        oldest=CopyBatch, run=CopyBatch, begin=Py_ssize_t, count=Py_ssize_t, links=list, written=Py_ssize_t,
        number=Py_ssize_t)
    cdef Py_ssize_t _write_slice(self, object runs, Py_ssize_t most) except -1
    @cython.locals(link=SubscriberLink)
    cdef object _go_on_with(self, CopyBatch run, list links)
    cdef _give(self, bytes data, Transfer transfer, SubscriberLink link, bint is_counted)
