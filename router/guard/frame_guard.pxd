import cython

from router.guard.value_check cimport end_of
from router.guard.endpoint_guard cimport EndpointGuard
from router.guard.endpoints cimport OwnSession, PeerLink, PeerSession, DispositionRange, Table
from router.guard.performatives cimport read_uints, size_at, width_of_uint
from router.guard.outcome_rewriting cimport code_of, readable_part, usual_form
from router.guard.guard_constants cimport *

cdef Py_ssize_t PLAIN_HEAD
cdef Py_ssize_t NO_HEAD
cdef PeerSession NO_SESSION
cdef Py_ssize_t STATE_BYTES
cdef Py_ssize_t MOST_WORK


@cython.final
cdef class FrameGuard(EndpointGuard):
    cdef Py_ssize_t _transfer_head
    cdef Py_ssize_t _transfer_handle
    cdef PeerSession _transfer_session
    cdef Py_ssize_t _disposition_head
    cdef Py_ssize_t _piece
    cdef DispositionRange _settled
    cdef bint _is_overlap
    cdef public Py_ssize_t kept

    cpdef Py_ssize_t check(self, bytes data)
    @cython.locals(at=Py_ssize_t, length=Py_ssize_t, is_right=bint)
    cdef Py_ssize_t feed(self, const unsigned char *data, Py_ssize_t size)
    @cython.locals(body=Py_ssize_t, code=Py_ssize_t, channel=Py_ssize_t, sessions=list, session=PeerSession)
    cdef bint _check_frame(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t end)
    @cython.locals(
        head=Py_ssize_t,
        field=Py_ssize_t, stop=Py_ssize_t, count=Py_ssize_t, handle=Py_ssize_t)
    cdef bint _is_plain_transfer(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t length)
    @cython.locals(session=PeerSession)
    cdef bint _finds_sender(self, Py_ssize_t head, Py_ssize_t handle)
    @cython.locals(session=PeerSession)
    cdef bint _finds_receivers(self, Py_ssize_t head)
    @cython.locals(channel=Py_ssize_t, sessions=list, session=PeerSession)
    cdef PeerSession _plain_session(self, Py_ssize_t head)
    @cython.locals(
        session=PeerSession, stop=Py_ssize_t, left=Py_ssize_t, uints="Py_ssize_t *", links=list, link=PeerLink,
        coming=Py_ssize_t)
    cdef bint _is_plain_flow(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t length)
    @cython.locals(handle=Py_ssize_t, links=list, link=PeerLink, size=Py_ssize_t, begin=Py_ssize_t)
    cdef bint _check_transfer(self, const unsigned char *data, Py_ssize_t at, PeerSession session)
    @cython.locals(
        head=Py_ssize_t,
        field=Py_ssize_t, stop=Py_ssize_t, count=Py_ssize_t, first=Py_ssize_t, span=Py_ssize_t, code=Py_ssize_t)
    cdef bint _is_plain_disposition(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t length)
    @cython.locals(role=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, size=Py_ssize_t, span=Py_ssize_t)
    cdef bint _check_disposition(self, const unsigned char *data, Py_ssize_t at, PeerSession session)
    @cython.locals(behind=Py_ssize_t, before=Py_ssize_t)
    cdef bint _is_seen(self, Py_ssize_t first, Py_ssize_t span)
    @cython.locals(end=Py_ssize_t, state=bytes, right=bytes, code=Py_ssize_t)
    cdef bint _check_state(
        self, const unsigned char *data, Py_ssize_t frame, Py_ssize_t at, Py_ssize_t stop, bint is_receiver)
    @cython.locals(
        next_incoming=Py_ssize_t, incoming_window=Py_ssize_t, next_outgoing=Py_ssize_t, outgoing_window=Py_ssize_t,
        handle=Py_ssize_t, count=Py_ssize_t, credit=Py_ssize_t, credit_end=Py_ssize_t, available=Py_ssize_t,
        window_start=Py_ssize_t, window_end=Py_ssize_t, coming=Py_ssize_t,
        drains=Py_ssize_t, asks=Py_ssize_t, link=PeerLink)
    cdef bint _check_flow(self, const unsigned char *data, Py_ssize_t at, PeerSession session)
    cdef object _close_window(self, PeerSession session, Py_ssize_t start, Py_ssize_t size, object next_outgoing)
