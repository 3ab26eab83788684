import cython


cdef class FairQueue:
    cdef object _line
    cdef dict _clients

    cpdef Py_ssize_t client_count(self)
    cpdef object add(self, object message, object client)
    cpdef object pop(self)
    cpdef bint discard(self, object message)
    cpdef list clear(self)
