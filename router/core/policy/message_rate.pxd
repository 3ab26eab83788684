import cython


cdef class TokenBucket:
    cdef double _rate
    cdef double _tokens
    cdef double _updated

    cpdef double wait(self, double now) except -1
    cpdef object take(self)


cdef class MessageRate:
    cdef list _buckets

    @cython.locals(longest=double, bucket=TokenBucket)
    cpdef double wait(self, double now) except -1
    @cython.locals(bucket=TokenBucket)
    cpdef object take(self)
