import cython

from libc.stdint cimport uint64_t

from router.binding.proton_functions cimport *
from router.engine.byte_stream_limits cimport *
from router.guard.frame_guard cimport FrameGuard
from router.guard.sent_frame_tracker cimport SentFrameTracker

cdef Py_ssize_t LARGE_BYTES
cdef Py_ssize_t MANY_COPIES

cdef Py_ssize_t bounded(Py_ssize_t size, Py_ssize_t least, Py_ssize_t most)


cdef class ByteStreams:
    cdef public FrameGuard _guard
    cdef public size_t _transport
    cdef public object end_reason
    cdef public bint is_ending
    cdef public bint is_closing
    cdef public Py_ssize_t moved_bytes
    cdef public object _violation
    cdef Py_ssize_t _piece
    cdef Py_ssize_t _fair_piece
    cdef Py_ssize_t _count
    cdef bint _may_have_more
    cdef public Py_ssize_t _copies
    cdef bytes _rest
    cdef Py_ssize_t _seen
    cdef public Py_ssize_t unanswered
    cdef public Py_ssize_t _frames_before

    cpdef Py_ssize_t capacity(self)
    cpdef object received(self, Py_ssize_t size)
    cpdef object unread(self, bytes data)
    cpdef bint has_rest(self)
    @cython.locals(rest=bytes, size=Py_ssize_t)
    cpdef object go_on(self)
    @cython.locals(guard=FrameGuard, tail=size_t, end=size_t, kept=Py_ssize_t, passed=Py_ssize_t)
    cdef object _take(self, Py_ssize_t size)
    cdef object _break(self, Py_ssize_t passed)
    @cython.locals(before=uint64_t, frames=Py_ssize_t, count=Py_ssize_t, fair=Py_ssize_t, most=Py_ssize_t)
    cpdef Py_ssize_t fill(self, int fd, bint is_shared)
    @cython.locals(total=Py_ssize_t, capacity=Py_ssize_t, size=Py_ssize_t, count=Py_ssize_t)
    cdef Py_ssize_t _read(self, int fd, Py_ssize_t most)
    cpdef bint is_heavy(self)
    cpdef bint is_attaching(self)
    cpdef bint has_single_messages(self)
    @cython.locals(count=Py_ssize_t, more=Py_ssize_t)
    cpdef Py_ssize_t empty(self, int fd, Py_ssize_t most)
    @cython.locals(total=Py_ssize_t, size=Py_ssize_t, count=Py_ssize_t, is_held=bint)
    cdef Py_ssize_t _write(self, int fd, Py_ssize_t most)
    cdef bint _has_more_to_say(self)
    cpdef Py_ssize_t pending(self)
    @cython.locals(size=Py_ssize_t, own=SentFrameTracker, new=size_t)
    cdef Py_ssize_t _writable(self)
    cpdef object sent(self, Py_ssize_t size)
