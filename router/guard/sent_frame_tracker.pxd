import cython

from router.guard.endpoints cimport OwnLink, OwnSession, PeerSession, Table, add_own_link, pair, remove_own_link
from router.guard.performatives cimport PerformativeReader, read_uints, size_at, width_of_uint
from router.guard.guard_constants cimport *

cdef Py_ssize_t HANDLE_MAX


@cython.final
cdef class SentFrameTracker(PerformativeReader):
    cdef public Table sessions
    cdef Table _peer_sessions
    cdef OwnSession _session
    cdef Py_ssize_t _channel
    cdef OwnLink _link
    cdef public Py_ssize_t frames
    cdef public list corrections
    cdef Py_ssize_t _skip
    cdef bytes _head
    cdef Py_ssize_t _base
    cdef Py_ssize_t _frame_at

    cpdef Py_ssize_t unfinished(self)
    cpdef object show(self, bytes data)
    cdef object watch(self, const unsigned char *data, Py_ssize_t size)
    @cython.locals(length=Py_ssize_t, code=Py_ssize_t)
    cdef object _watch_from(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t size)
    @cython.locals(taken=Py_ssize_t, joined=bytes)
    cdef Py_ssize_t _watch_on(self, const unsigned char *data, Py_ssize_t size) except -1
    @cython.locals(
        code=Py_ssize_t, channel=Py_ssize_t, sessions=list, session=OwnSession)
    cdef bint _watch_frame(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t end, bint is_whole)
    @cython.locals(field=Py_ssize_t, stop=Py_ssize_t, handle=Py_ssize_t)
    cdef bint _counts(self, const unsigned char *data, Py_ssize_t at)
    @cython.locals(
        channel=Py_ssize_t, sessions=list, session=OwnSession, uints="Py_ssize_t *", link=OwnLink, end=Py_ssize_t)
    cdef bint _is_plain_flow(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t length)
    @cython.locals(handle=Py_ssize_t, _=Py_ssize_t, link=OwnLink, is_last=bint)
    cdef object _watch_transfer(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t end, OwnSession session)
    @cython.locals(
        remote=Py_ssize_t, next_outgoing=Py_ssize_t, window=Py_ssize_t, outgoing_window=Py_ssize_t, own=OwnSession,
        session=PeerSession)
    cdef object _watch_begin(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t channel)
    @cython.locals(handle=Py_ssize_t, role=Py_ssize_t, count=Py_ssize_t, _=Py_ssize_t, name=bytes)
    cdef object _watch_rare(
        self, const unsigned char *data, Py_ssize_t code, Py_ssize_t channel, OwnSession session)
    @cython.locals(
        handle=Py_ssize_t, fields_at=Py_ssize_t, handle_at=Py_ssize_t, begin=Py_ssize_t, link=OwnLink,
        next_outgoing=Py_ssize_t, of_session=list)
    cdef object _watch_flow(self, const unsigned char *data, OwnSession session)

