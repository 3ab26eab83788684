import cython

from router.binding.proton_functions cimport *
from router.engine.connection cimport Connection


cdef class AmqpsConnection(Connection):
    cdef public object _tls

    cpdef bint has_rest(self)
    @cython.locals(total=Py_ssize_t, capacity=Py_ssize_t, size=Py_ssize_t, count=Py_ssize_t)
    cdef Py_ssize_t _read(self, int fd, Py_ssize_t most)
    @cython.locals(total=Py_ssize_t, size=Py_ssize_t, count=Py_ssize_t)
    cdef Py_ssize_t _write(self, int fd, Py_ssize_t most)
