import cython

from router.engine.connection cimport Connection
from router.net.poller cimport PolledSocket, Poller


cdef class Pump(PolledSocket):
    cdef object _sock
    cdef int _fd
    cdef Connection _connection
    cdef object _turns
    cdef Poller _poller
    cdef object _wake
    cdef bint _is_blocked
    cdef Py_ssize_t _round
    cdef Py_ssize_t _written
    cdef bint _is_reading
    cdef bint _is_stopped
    cdef bint _was_told
    cdef bint _output_ended
    cdef bint _knows_peer
    cdef bint _is_aborted
    cdef object _opened
    cdef object _done
    cdef object _patience
    cdef bint _is_leaving
    cdef object _last_octets

    @cython.locals(connection=Connection, count=Py_ssize_t)
    cpdef object read(self)
    cpdef object stop(self, bint is_stopped)
    cpdef object go_on(self)
    cpdef object write(self)
    @cython.locals(connection=Connection, count=Py_ssize_t)
    cpdef object flush(self)
