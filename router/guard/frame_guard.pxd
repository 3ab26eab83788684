import cython

from router.guard.value_check cimport end_of, nul_of_address
from router.guard.endpoints cimport (
    OwnLink, OwnSession, PeerLink, PeerSession, Table, add_peer_link, pair, remove_peer_link,
)
from router.guard.frame_watch cimport FrameWatch
from router.guard.handshake cimport HandshakeGuard
from router.guard.performatives cimport read_uints, size_at, width_of_uint
from router.guard.outcome_forms cimport default_outcome, usual_form
from router.guard.guard_constants cimport *

cdef Py_ssize_t MASK
cdef Py_ssize_t HALF
cdef Py_ssize_t PLAIN_HEAD
cdef Py_ssize_t NO_HEAD
cdef PeerSession NO_SESSION
cdef Py_ssize_t LINK_WORK
cdef Py_ssize_t SESSION_WORK
cdef Py_ssize_t SEARCHED_SESSIONS
cdef Py_ssize_t STATE_BYTES
cdef Py_ssize_t MOST_WORK


@cython.final
cdef class FrameGuard(HandshakeGuard):
    cdef Py_ssize_t _channel_max
    cdef Py_ssize_t _handle_max
    cdef Py_ssize_t _work
    cdef bint _is_open
    cdef Py_ssize_t _transfer_head
    cdef Py_ssize_t _transfer_handle
    cdef PeerSession _transfer_session
    cdef Py_ssize_t _disposition_head
    cdef public Py_ssize_t kept
    cdef public bint has_questions
    cdef public list corrections
    cdef public Py_ssize_t attach_bytes
    cdef public Py_ssize_t asked_bytes
    cdef public bint has_default_outcomes
    cdef list _questions
    cdef public Table peer_sessions
    cdef public FrameWatch own

    cpdef Py_ssize_t check(self, bytes data)
    @cython.locals(at=Py_ssize_t, length=Py_ssize_t, is_right=bint)
    cdef Py_ssize_t feed(self, const unsigned char *data, Py_ssize_t size)
    cdef bint _break_at(self, const unsigned char *data, Py_ssize_t at, str condition, str description)
    @cython.locals(body=Py_ssize_t, code=Py_ssize_t, channel=Py_ssize_t, sessions=list, session=PeerSession)
    cdef bint _check_frame(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t end)
    @cython.locals(
        head=Py_ssize_t,
        field=Py_ssize_t, stop=Py_ssize_t, count=Py_ssize_t, handle=Py_ssize_t)
    cdef bint _is_plain_transfer(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t length)
    @cython.locals(session=PeerSession)
    cdef bint _finds_sender(self, Py_ssize_t head, Py_ssize_t handle)
    @cython.locals(channel=Py_ssize_t, sessions=list, session=PeerSession)
    cdef PeerSession _plain_session(self, Py_ssize_t head)
    @cython.locals(
        session=PeerSession, stop=Py_ssize_t, left=Py_ssize_t, uints="Py_ssize_t *", links=list, link=PeerLink,
        coming=Py_ssize_t)
    cdef bint _is_plain_flow(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t length)
    @cython.locals(handle=Py_ssize_t, links=list, link=PeerLink)
    cdef bint _check_transfer(self, const unsigned char *data, Py_ssize_t at, PeerSession session)
    @cython.locals(
        head=Py_ssize_t,
        field=Py_ssize_t, stop=Py_ssize_t, count=Py_ssize_t, first=Py_ssize_t, span=Py_ssize_t)
    cdef bint _is_plain_disposition(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t length)
    @cython.locals(role=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, size=Py_ssize_t, span=Py_ssize_t)
    cdef bint _check_disposition(self, const unsigned char *data, Py_ssize_t at)
    @cython.locals(end=Py_ssize_t, right=bytes)
    cdef object _look_at_state(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t stop)
    @cython.locals(
        next_incoming=Py_ssize_t, incoming_window=Py_ssize_t, next_outgoing=Py_ssize_t, outgoing_window=Py_ssize_t,
        handle=Py_ssize_t, count=Py_ssize_t, credit=Py_ssize_t, credit_end=Py_ssize_t, available=Py_ssize_t,
        window_start=Py_ssize_t, window_end=Py_ssize_t, coming=Py_ssize_t,
        drains=Py_ssize_t, asks=Py_ssize_t, link=PeerLink)
    cdef bint _check_flow(self, const unsigned char *data, Py_ssize_t at, PeerSession session)
    cdef object _close_window(self, PeerSession session, Py_ssize_t start, Py_ssize_t size, object next_outgoing)
    cdef bint _check_rare(
        self, const unsigned char *data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t code, Py_ssize_t channel,
        PeerSession session)
    @cython.locals(
        remote=Py_ssize_t, initial=Py_ssize_t, window=Py_ssize_t, outgoing_window=Py_ssize_t, handle_max=Py_ssize_t,
        new=PeerSession, own=OwnSession)
    cdef bint _check_begin(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t channel, PeerSession session)
    @cython.locals(handle=Py_ssize_t, role=Py_ssize_t, count=Py_ssize_t, _=Py_ssize_t, nul=Py_ssize_t, name=bytes,
        link=PeerLink, outcome=tuple)
    cdef bint _check_attach(self, const unsigned char *data, Py_ssize_t at, PeerSession session)
    cdef bint _check_open(self, const unsigned char *data, Py_ssize_t at)
    @cython.locals(handle=Py_ssize_t, closed=Py_ssize_t, link=PeerLink)
    cdef bint _check_detach(self, const unsigned char *data, Py_ssize_t at, PeerSession session)
    cdef object _ask(self, PeerSession session, PeerLink link)
    @cython.locals(session=PeerSession, link=PeerLink, own=OwnSession)
    cpdef list answers(self)
