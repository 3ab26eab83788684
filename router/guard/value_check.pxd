import cython

from router.guard.guard_constants cimport WRONG

cdef class ValueCount


@cython.locals(value=Py_ssize_t, index=Py_ssize_t)
cdef Py_ssize_t number_at(const unsigned char *data, Py_ssize_t at, Py_ssize_t width) noexcept
@cython.locals(code=Py_ssize_t)
cdef Py_ssize_t end_of(const unsigned char *data, Py_ssize_t at, Py_ssize_t stop, Py_ssize_t depth=*) noexcept
@cython.locals(kind=Py_ssize_t, size=Py_ssize_t, width=Py_ssize_t, end=Py_ssize_t, count=Py_ssize_t)
cdef Py_ssize_t end_of_content(
    const unsigned char *data, Py_ssize_t at, Py_ssize_t stop, Py_ssize_t code, Py_ssize_t depth) noexcept
@cython.locals(low=Py_ssize_t, kind=Py_ssize_t)
cdef bint is_constructor(Py_ssize_t code) noexcept
cdef bint are_values(
    const unsigned char *data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t count, Py_ssize_t depth) noexcept
@cython.locals(code=Py_ssize_t, _=Py_ssize_t)
cdef bint is_array(const unsigned char *data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t count, Py_ssize_t depth) noexcept
@cython.locals(count=ValueCount, end=Py_ssize_t)
cpdef Py_ssize_t count_values(bytes data, Py_ssize_t at, Py_ssize_t most)
@cython.locals(end=Py_ssize_t, place=Py_ssize_t)
cdef Py_ssize_t nul_of_address(const unsigned char *data, Py_ssize_t at, Py_ssize_t stop) noexcept


cdef class ValueCount:
    cdef Py_ssize_t left

    @cython.locals(code=Py_ssize_t, kind=Py_ssize_t, width=Py_ssize_t, size=Py_ssize_t, end=Py_ssize_t,
                   number=Py_ssize_t, _=Py_ssize_t)
    cdef Py_ssize_t end_of(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t stop, Py_ssize_t depth) noexcept
    @cython.locals(code=Py_ssize_t, first=Py_ssize_t)
    cdef Py_ssize_t end_of_array(
        self, const unsigned char *data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t number, Py_ssize_t depth) noexcept
