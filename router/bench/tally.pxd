from libc.stdint cimport int64_t, uint64_t


cdef class Tally:
    cdef public bint is_on, is_measuring
    cdef public int64_t allowed, sent, accepted, refused, received
    cdef unsigned int[::1] _fine
    cdef unsigned int[::1] _coarse

    cpdef record(self, int64_t duration_ns)
