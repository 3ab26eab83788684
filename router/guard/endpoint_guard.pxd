import cython

from router.guard.value_check cimport end_of, nul_of_address
from router.guard.endpoints cimport (
    OwnLink, OwnSession, PeerLink, PeerSession, ReceiversByName, Table, add_peer_link, pair, remove_peer_link)
from router.guard.sent_frame_tracker cimport SentFrameTracker
from router.guard.handshake cimport HandshakeGuard
from router.guard.performatives cimport size_at
from router.guard.outcome_rewriting cimport default_outcome, is_text
from router.guard.guard_constants cimport *

cdef Py_ssize_t STRING
cdef Py_ssize_t MOST_SND_MODE
cdef Py_ssize_t MOST_RCV_MODE
cdef Py_ssize_t LINK_WORK
cdef Py_ssize_t SESSION_WORK
cdef Py_ssize_t SEARCHED_SESSIONS


cdef class EndpointGuard(HandshakeGuard):
    cdef Py_ssize_t _channel_max
    cdef Py_ssize_t _handle_max
    cdef public Py_ssize_t peer_frame_bytes
    cdef Py_ssize_t _work
    cdef bint _is_open
    cdef public list corrections
    cdef public Py_ssize_t attach_bytes
    cdef public Py_ssize_t asked_bytes
    cdef public bint has_default_outcomes
    cdef public bint has_endpoints
    cdef public bint has_questions
    cdef list _questions
    cdef public Table peer_sessions
    cdef public ReceiversByName receivers
    cdef public SentFrameTracker own

    cdef bint _break_at(self, const unsigned char *data, Py_ssize_t at, str condition, str description)
    cdef object _forget(self, PeerLink link)
    @cython.locals(link=PeerLink)
    cdef bint _check_rare(
        self, const unsigned char *data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t code, Py_ssize_t channel,
        PeerSession session)
    @cython.locals(
        remote=Py_ssize_t, initial=Py_ssize_t, window=Py_ssize_t, outgoing_window=Py_ssize_t, handle_max=Py_ssize_t,
        new=PeerSession, own=OwnSession)
    cdef bint _check_begin(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t channel, PeerSession session)
    @cython.locals(handle=Py_ssize_t, role=Py_ssize_t, count=Py_ssize_t, _=Py_ssize_t, snd_mode=Py_ssize_t,
        rcv_mode=Py_ssize_t, nul=Py_ssize_t, name=bytes,
        link=PeerLink, outcome=tuple)
    cdef bint _check_attach(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t channel, PeerSession session)
    @cython.locals(frame_bytes=Py_ssize_t)
    cdef bint _check_open(self, const unsigned char *data, Py_ssize_t at)
    @cython.locals(handle=Py_ssize_t, closed=Py_ssize_t, link=PeerLink)
    cdef bint _check_detach(self, const unsigned char *data, Py_ssize_t at, PeerSession session)
    cdef object _ask(self, PeerSession session, PeerLink link)
    @cython.locals(own=OwnLink, credit=Py_ssize_t)
    cdef object _note_drain(self, PeerSession session, PeerLink link)
    @cython.locals(session=PeerSession, link=PeerLink, own=OwnSession)
    cpdef list answers(self)
