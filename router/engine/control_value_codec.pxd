import cython


cdef class ControlValueReader:
    cdef bytes data
    cdef public Py_ssize_t at

    @cython.locals(data=bytes, number=cython.ulonglong, index=Py_ssize_t)
    cdef unsigned long long number(self, Py_ssize_t width) except? 0xFFFFFFFFFFFFFFFF
    @cython.locals(code=Py_ssize_t)
    cpdef object value(self, Py_ssize_t depth=*)
    @cython.locals(size=Py_ssize_t)
    cdef str text(self, Py_ssize_t width)
    cdef object fixed_value(self, Py_ssize_t code)
    @cython.locals(number=cython.longlong, half=cython.longlong)
    cdef long long signed_number(self, Py_ssize_t width) except? -1
    @cython.locals(begin=Py_ssize_t)
    cdef bytes bytes_of(self, Py_ssize_t size)
    @cython.locals(size=Py_ssize_t, count=Py_ssize_t, end=Py_ssize_t, _=Py_ssize_t)
    cdef list items(self, Py_ssize_t width, Py_ssize_t depth)
    @cython.locals(index=Py_ssize_t)
    cdef dict pairs(self, list items)


cdef class ControlValueWriter:
    cdef public bytearray data

    @cython.locals(data=bytearray, start=Py_ssize_t)
    cpdef value(self, object value)
    cpdef section(self, Py_ssize_t code, object value)
    @cython.locals(encoded=bytes, size=Py_ssize_t, data=bytearray)
    cdef text(self, Py_ssize_t code, object text)
    @cython.locals(data=bytearray)
    cdef number(self, object number, Py_ssize_t code, Py_ssize_t width)
    cdef Py_ssize_t begin(self, Py_ssize_t code, object count) except -1
    cdef end(self, Py_ssize_t start)
