import cython
from libc.stdint cimport int64_t

cpdef Py_ssize_t fixed_width(int kind) noexcept
@cython.locals(number=int64_t)
cpdef int64_t unsigned(bytes data, Py_ssize_t pos, Py_ssize_t width) except -1
@cython.locals(left=Py_ssize_t, code=int, kind=int)
cpdef Py_ssize_t skip(bytes data, Py_ssize_t pos, Py_ssize_t end) except -1
@cython.locals(stop=Py_ssize_t)
cpdef Py_ssize_t text_end(bytes data, Py_ssize_t pos, Py_ssize_t end) except -1
@cython.locals(code=int)
cpdef object integer(bytes data, Py_ssize_t pos, Py_ssize_t stop)
