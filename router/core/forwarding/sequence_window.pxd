cdef class SequenceWindow:
    cdef public object highest
    cdef object _bits

    cpdef bint see(self, object number) except -1
