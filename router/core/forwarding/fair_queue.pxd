import cython


cdef class FairQueue:
    cdef object _due
    cdef object _later
    cdef set _served
    cdef Py_ssize_t _room
    cdef dict _clients

    cpdef Py_ssize_t client_count(self)
    cpdef object add(self, object message, object client)
    cpdef object pop(self)
    cpdef object youngest(self)
    cpdef bint discard(self, object message)
    cpdef list clear(self)
