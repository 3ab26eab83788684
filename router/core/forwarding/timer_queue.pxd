import cython


cdef class TimerQueue:
    cdef dict _times
    cdef public list _heap
    cdef Py_ssize_t _room
    cdef Py_ssize_t _number

    cpdef double time_of(self, object thing)
    cpdef object set(self, object thing, double time)
    cpdef object cancel(self, object thing)
    @cython.locals(time=double)
    cpdef double next(self)
    cpdef object first(self)
    @cython.locals(due=list)
    cpdef list take(self, double now)
