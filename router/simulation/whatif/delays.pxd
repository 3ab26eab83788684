import cython

from router.simulation.whatif.arrays cimport FAR, NONE, array, bytes_of, ints, longs, shorts
from router.simulation.whatif.trees cimport Trees


@cython.final
cdef class Delays:
    cdef Trees trees
    cdef array _link_delays, _delays, _orders, _places, _sizes, _counts, _stack, _sorted
    cdef long long* link_delays
    cdef long long* delays
    cdef short* orders
    cdef short* places
    cdef short* sizes
    cdef int* counts
    cdef int* stack
    cdef long long* sorted
    cdef int base_count
    cdef array _new_delays, _stages, _stale, _removed, _added
    cdef long long* new_delays
    cdef signed char* stages
    cdef int* stale
    cdef long long* removed
    cdef long long* added
    cdef int stale_count, removed_count, added_count, below

    @cython.locals(
        trees=Trees, n=int, row=int, children=cython.p_int, order=cython.p_int, free=cython.p_int, node=int, head=int,
        first=int, last=int, index=int, place=int, arc=int,
    )
    cdef void _number(self, int dst) noexcept
    cdef inline int _next(self, int row, int node) noexcept
    cdef inline long long _delay(self, int arc) noexcept
    cdef _sort_delays(self)
    @cython.locals(trees=Trees, index=int, pair=int, before=int, now=int, n=int, at=int)
    cdef void update(self) noexcept
    @cython.locals(row=int, first=int, place=int, at=int)
    cdef void _mark(self, int dst, int node) noexcept
    @cython.locals(trees=Trees, tail=int, slot=int, dst=int)
    cdef void _mark_users(self, int arc) noexcept
    @cython.locals(trees=Trees, n=int, row=int, depth=int, node=int, arc=int, at=int, total=cython.longlong)
    cdef void _work_out(self, int dst, int src) noexcept
    @cython.locals(
        count=int, rank=cython.longlong, first=cython.longlong, last=cython.longlong, low=cython.longlong,
        high=cython.longlong, middle=cython.longlong, rest=cython.longlong, index=int, added=int, removed=int,
    )
    cdef long long percentile(self, int percent) noexcept
    @cython.locals(near=int, index=int, value=cython.longlong)
    cdef int _bring_forward(self, long long* values, int count, long long low, long long high, int sign) noexcept
    @cython.locals(first=int, last=int, middle=int)
    cdef int _count_to(self, long long value) noexcept
