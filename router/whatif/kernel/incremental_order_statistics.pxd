import cython

from router.whatif.kernel.c_arrays cimport array, longs


@cython.final
cdef class IncrementalOrderStatistics:
    cdef readonly int count, added_count, removed_count
    cdef array _values, _added, _removed
    cdef long long* values
    cdef long long* added
    cdef long long* removed
    cdef int below, room

    cpdef replace(self, array values)
    cpdef void reset(self) noexcept
    cpdef add(self, long long value)
    cpdef remove(self, long long value)
    cdef _make_room(self)
    cpdef int size(self) noexcept
    @cython.locals(
        first=cython.longlong, last=cython.longlong, low=cython.longlong, high=cython.longlong, middle=cython.longlong,
        found=cython.longlong, index=int, added=int, removed=int,
    )
    cpdef long long at(self, long long rank) noexcept
    @cython.locals(near=int, index=int, value=cython.longlong)
    cdef int _bring_forward(self, long long* values, int count, long long low, long long high, int sign) noexcept
    @cython.locals(first=int, last=int, middle=int)
    cdef int _count_to(self, long long value) noexcept
    @cython.locals(
        values=cython.p_longlong, low=int, high=int, left=int, right=int, pivot=cython.longlong, value=cython.longlong
    )
    cdef long long _select(self, int place) noexcept
