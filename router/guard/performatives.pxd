import cython

from router.guard.value_check cimport end_of
from router.guard.guard_constants cimport ABSENT, WRONG


cdef class PerformativeReader:
    cdef Py_ssize_t at
    cdef Py_ssize_t stop
    cdef Py_ssize_t left

    @cython.locals(code=Py_ssize_t, kind=Py_ssize_t)
    cdef Py_ssize_t begin_list(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t end) noexcept
    @cython.locals(at=Py_ssize_t, space=Py_ssize_t, code=Py_ssize_t)
    cdef Py_ssize_t read_uint(self, const unsigned char *data) noexcept
    @cython.locals(at=Py_ssize_t, space=Py_ssize_t, code=Py_ssize_t)
    cdef Py_ssize_t read_bool(self, const unsigned char *data) noexcept
    @cython.locals(at=Py_ssize_t, kind=Py_ssize_t)
    cdef bint pass_field(self, const unsigned char *data) noexcept
    @cython.locals(at=Py_ssize_t)
    cdef Py_ssize_t read_ushort(self, const unsigned char *data) noexcept
    @cython.locals(at=Py_ssize_t)
    cdef bytes read_name(self, const unsigned char *data)
    @cython.locals(name=bytes)
    cdef bint has_nul(self, const unsigned char *data)
    cdef bint is_list_over(self, const unsigned char *data) noexcept


@cython.locals(value=Py_ssize_t)
cdef Py_ssize_t size_at(const unsigned char *data, Py_ssize_t at) noexcept
