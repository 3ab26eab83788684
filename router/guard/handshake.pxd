import cython

from router.guard.value_check cimport end_of
from router.guard.performatives cimport PerformativeReader, size_at
from router.guard.guard_constants cimport *


cdef class HandshakeGuard(PerformativeReader):
    cdef bint _is_server
    cdef Py_ssize_t _max_frame
    cdef Py_ssize_t _phase
    cdef Py_ssize_t _sasl
    cdef bint _is_sasl_over
    cdef public bint is_sasl_done
    cdef public bint is_broken
    cdef public bint is_header_wrong
    cdef public str condition
    cdef public str description

    cpdef object limit_frames(self, Py_ssize_t max_frame_bytes)
    cdef bint _break(self, str condition, str description)
    @cython.locals(left=Py_ssize_t, index=Py_ssize_t)
    cdef Py_ssize_t _shake_hands(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t size)
    cdef Py_ssize_t _break_header(self, str description)
    @cython.locals(length=Py_ssize_t, body=Py_ssize_t, code=Py_ssize_t)
    cdef Py_ssize_t _check_sasl(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t left)
