import cython

from router.binding.proton_functions cimport *
from router.dataplane.links cimport EgressDatagramLink, EgressLink, EgressLargeMessagesLink, IngressLink
from router.dataplane.links cimport PublisherLink, SubscriberLink, Transfer, keep_unwritten, new_transfer
from router.dataplane.connection_port cimport Port
from router.dataplane.scan_result cimport Scan
from router.dataplane.annotation_writer cimport annotate, strip
from router.dataplane.settlement cimport Settlement
from router.dataplane.slow_streams cimport SlowStreams
from router.dataplane.waiting_messages cimport WaitingMessages
from router.core.forwarding.fib cimport AddressEntry
from router.dataplane.transfer_lifecycle cimport advance
from router.dataplane.transfer_stages cimport *


cdef class MessageSender:
    cdef public str _me
    cdef public Settlement _settlement
    cdef public WaitingMessages _waiting
    cdef SlowStreams _streams
    cdef public Py_ssize_t sent
    cdef public object spared

    @cython.locals(data=bytes, delivery=size_t, parts=list, rest=Py_ssize_t, is_small=bint)
    cpdef object send(self, Transfer transfer, EgressLink link)
    cdef _refuse(self, Transfer transfer, EgressLink link)
    @cython.locals(first=bytes, at=Py_ssize_t, count=Py_ssize_t, room=Py_ssize_t)
    cdef _write_piece(self, Transfer transfer, EgressLink link)
    @cython.locals(delivery=size_t)
    cpdef object send_copy(self, bytes data, Transfer transfer, EgressLink link)
    @cython.locals(link=EgressLink)
    cpdef object stream(self, Transfer transfer, bytes data)
    @cython.locals(current=Transfer)
    cpdef bint is_full(self, EgressLink link)
    cpdef bint has_drained(self, EgressLink link)
    @cython.locals(found=Scan, head=bytes)
    cpdef bytes leading_for(self, Transfer transfer, bytes data, bint to_router, tuple trace=*)
    @cython.locals(data=bytes)
    cdef bytes _leading(self, Transfer transfer, EgressLink link)
    cdef size_t _new_delivery(self, EgressLink link)
    cdef size_t _new_numbered(self, Transfer transfer, EgressLink link)
    @cython.locals(subscriber=SubscriberLink)
    cdef _advance(self, EgressLink link)
    @cython.locals(entry=AddressEntry)
    cdef _count(self, Transfer transfer, EgressLink link)
    @cython.locals(settlement=Settlement)
    cdef _sent(self, Transfer transfer, EgressLink link, size_t delivery)
    @cython.locals(source=IngressLink, is_own=bint)
    cpdef object commit(self, Transfer transfer, EgressLink link)
    @cython.locals(stream=EgressLargeMessagesLink)
    cpdef object commit_in_order(self, Transfer transfer, EgressDatagramLink link)
    @cython.locals(source=IngressLink, stream=EgressLargeMessagesLink)
    cdef EgressLargeMessagesLink _stream_of(self, Transfer transfer, Port port)
    @cython.locals(transfer=Transfer, stream=EgressLargeMessagesLink, current=Transfer)
    cpdef object flowed(self, EgressLink link)
    cdef bint _needs_stream(self, Transfer transfer, EgressLink link) except -1
    cpdef object copy(self, bytes data, Transfer transfer, EgressLink link)
    cpdef object commit_copy(self, bytes data, Transfer transfer, EgressLink link)
    @cython.locals(copy=Transfer)
    cdef Transfer _new_copy(self, bytes data, Transfer transfer)
    @cython.locals(port=Port)
    cpdef object lost(self, EgressLink link)
    @cython.locals(delivery=size_t, following=size_t, lost=Transfer, transfer=Transfer, settlement=Settlement, port=Port, is_buffered=bint, was_seen=bint, can_go_again=bint, count=Py_ssize_t)
    cpdef Py_ssize_t lose(self, EgressLink link, Py_ssize_t most) except -1
