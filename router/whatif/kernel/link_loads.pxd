import cython

from router.whatif.kernel.c_arrays cimport FAR, NONE, array, bytes_of, ints, longs
from router.whatif.kernel.graph cimport Graph
from router.whatif.kernel.spf_trees cimport SpfTrees


cdef class LinkLoads:
    cdef SpfTrees trees
    cdef readonly int lanes
    cdef array _flows, _numbers, _base_numbers, _carried, _base_carried
    cdef int* numbers
    cdef int* base_numbers
    cdef long long* flows
    cdef long long* carried
    cdef long long* base_carried
    cdef readonly long long lost_rate, lost_bytes, base_lost_rate, base_lost_bytes
    cdef array _is_sought, _changes, _next_changes, _destinations, _is_changed, _moved, _order, _new_slots
    cdef signed char* is_sought
    cdef int* changes
    cdef int* next_changes
    cdef int* destinations
    cdef signed char* is_changed
    cdef long long* moved
    cdef long long* order
    cdef int* new_slots

    cpdef expect(self, Py_ssize_t count)
    @cython.locals(pair=int, lane=int)
    cdef _make_lanes(self, int lanes)
    @cython.locals(graph=Graph, arc=int, back=int)
    cdef void _number_lanes(self, int pair) noexcept
    cdef _make_scratch(self, int n)
    @cython.locals(at=cython.Py_ssize_t)
    cdef void demand(self, int src, int dst, long long rate, long long size) noexcept
    @cython.locals(dst=int, place=int)
    cdef void settle(self) noexcept
    @cython.locals(
        trees=SpfTrees, n=int, incoming=cython.p_int, ready=cython.p_int, node=int, slot=int, count=int, arc=int, head=int,
        at=cython.Py_ssize_t,
    )
    cdef void _gather(self, int dst) noexcept
    cdef inline void _carry(self, int arc, long long rate, long long size) noexcept
    @cython.locals(trees=SpfTrees, index=int, count=int, dst=int)
    cdef void shift(self) noexcept
    @cython.locals(trees=SpfTrees, n=int, count=int, change=int, node=int, at=cython.Py_ssize_t, index=int, distance=cython.longlong)
    cdef void _shift_toward(self, int dst) noexcept
    @cython.locals(trees=SpfTrees, row=int, arc=int, rate=cython.longlong, size=cython.longlong)
    cdef inline void _take_away(self, int dst, int node) noexcept
    @cython.locals(trees=SpfTrees, row=int, arc=int, slot=int, rate=cython.longlong, size=cython.longlong)
    cdef inline void _put(self, int dst, int node) noexcept
    @cython.locals(trees=SpfTrees, n=int, node=int, arc=int)
    cdef void move(self, int src, int dst, long long rate, long long size) noexcept
    cdef void carry(self, int arc, long long rate, long long size) noexcept
    cdef void lose(self, long long rate, long long size) noexcept
    cdef void finish(self) noexcept
    @cython.locals(place=int)
    cdef void restore(self) noexcept
    @cython.locals(graph=Graph, index=int, arc=int)
    cdef void _restore_numbers(self) noexcept

@cython.locals(gap=int, index=int, place=int, key=cython.longlong)
cdef void sort_keys(long long* keys, int count) noexcept
