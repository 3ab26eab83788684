import cython
from libc.stdint cimport int64_t

from router.dataplane.section_codes cimport *
from router.dataplane.value_skipping cimport fixed_width, unsigned


cdef class SectionTracker:
    cdef int _section
    cdef int64_t _pos
    cdef int64_t _skip
    cdef bytes _rest
    cdef int64_t _left
    cdef int64_t _end
    cdef int _constructor
    cdef list _outer

    cpdef object begin(self)
    @cython.locals(size=Py_ssize_t, at=Py_ssize_t, step=Py_ssize_t, used=Py_ssize_t)
    cpdef object follow(self, bytes data, bint is_last)
    @cython.locals(length=Py_ssize_t, code=int, last=int, is_repeated=bint)
    cdef Py_ssize_t _begin_section(self, bytes data, Py_ssize_t at, Py_ssize_t size) except -1
    cdef object _close(self)
    @cython.locals(constructor=int, start=Py_ssize_t, code=int, kind=int, width=Py_ssize_t, used=Py_ssize_t)
    cdef Py_ssize_t _read_value(self, bytes data, Py_ssize_t at, Py_ssize_t size) except -1
    cdef object _check_form(self, int code)
    cdef object _describe(self)
    @cython.locals(end=int64_t, is_array=bint)
    cdef object _open(self, int code, Py_ssize_t used, int64_t count)

cdef bint _may_have(int section, int code) noexcept
