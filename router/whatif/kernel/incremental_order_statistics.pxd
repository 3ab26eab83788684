import cython

from router.whatif.kernel.c_arrays cimport array, longs


@cython.final
cdef class IncrementalOrderStatistics:
    cdef readonly Py_ssize_t count, added_count, removed_count
    cdef array _values, _added, _removed
    cdef long long* values
    cdef long long* added
    cdef long long* removed
    cdef Py_ssize_t below, room

    cpdef replace(self, array values)
    cpdef void reset(self) noexcept
    cpdef add(self, long long value)
    cpdef remove(self, long long value)
    cdef _make_room(self)
    cpdef Py_ssize_t size(self) noexcept
    cpdef long long percentile(self, Py_ssize_t percent) except *
    @cython.locals(
        first=cython.longlong, last=cython.longlong, low=cython.longlong, high=cython.longlong, middle=cython.longlong,
        found=cython.longlong, index=Py_ssize_t, added=Py_ssize_t, removed=Py_ssize_t,
    )
    cpdef long long at(self, long long rank) except *
    @cython.locals(near=Py_ssize_t, index=Py_ssize_t, value=cython.longlong)
    cdef Py_ssize_t _bring_forward(
        self, long long* values, Py_ssize_t count, long long low, long long high, Py_ssize_t sign
    ) noexcept
    @cython.locals(first=Py_ssize_t, last=Py_ssize_t, middle=Py_ssize_t)
    cdef Py_ssize_t _count_to(self, long long value) noexcept
    @cython.locals(
        values=cython.p_longlong, low=Py_ssize_t, high=Py_ssize_t, left=Py_ssize_t, right=Py_ssize_t,
        pivot=cython.longlong, value=cython.longlong,
    )
    cdef long long _select(self, Py_ssize_t place) noexcept
