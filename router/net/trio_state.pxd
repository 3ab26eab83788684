import cython


cdef class TrioState:
    cdef object _deadlines
    cdef readonly int fd
    cdef readonly object instrument
    cdef set _tasks

    cpdef bint has_runnable(self)
    @cython.locals(heap=list, first=tuple)
    cpdef double next_deadline(self) except? -1
