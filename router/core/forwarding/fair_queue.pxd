import cython


cdef class FairQueue:
    cdef object _due
    cdef object _served
    cdef dict _clients
    cdef Py_ssize_t _client_count

    cpdef Py_ssize_t client_count(self)
    cpdef object add(self, object message, object client)
    cpdef object pop(self)
    cpdef bint discard(self, object message)
    cpdef list clear(self)
