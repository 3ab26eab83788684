import cython

from router.whatif.kernel.c_arrays cimport FAR, NONE, array, bytes_of, ints, longs, shorts
from router.whatif.kernel.graph cimport Graph
from router.whatif.kernel.link_loads cimport LinkLoads, sort_keys
from router.whatif.kernel.spf_trees cimport SpfTrees


cdef class EcmpLoads(LinkLoads):
    cdef array _entering, _base_distances, _base_costs, _ranks, _arriving, _is_stale, _moves, _was_down, _spread
    cdef long long* entering
    cdef int* base_distances
    cdef int* base_costs
    cdef short* ranks
    cdef long long* arriving
    cdef signed char* is_stale
    cdef long long* moves
    cdef int move_count
    cdef signed char* was_down
    cdef long long* spread
    cdef bint is_base

    cdef _make_lanes(self, int lanes)
    @cython.locals(graph=Graph, place=int, link=int)
    cdef void _number_lanes(self, int pair) noexcept
    @cython.locals(graph=Graph, index=int, link=int)
    cdef void _restore_numbers(self) noexcept
    cpdef expect(self, Py_ssize_t count)
    @cython.locals(at=Py_ssize_t)
    cdef void demand(self, int src, int dst, long long rate, long long size) noexcept
    @cython.locals(
        trees=SpfTrees, n=int, row=int, node=int, distance=cython.longlong, index=int, place=int, rate=cython.longlong,
        size=cython.longlong, ways=int, turn=int, arc=int, head=Py_ssize_t, width=int,
    )
    cdef void _gather(self, int dst) noexcept
    cdef void settle(self) noexcept
    @cython.locals(link=int)
    cdef void carry(self, int arc, long long rate, long long size) noexcept
    cdef inline int _lane(self, int arc, int link) noexcept
    @cython.locals(cost=int)
    cdef inline bint _is_shared(self, int arc, int link, bint is_base) noexcept
    @cython.locals(graph=Graph, width=int, place=int)
    cdef inline int _width(self, int arc, bint is_base) noexcept
    @cython.locals(graph=Graph, place=int, link=int)
    cdef void _put_on_links(self, int arc, bint is_base, long long rate, long long size, int ways, int turn) noexcept
    @cython.locals(trees=SpfTrees)
    cdef inline int _base_distance_to(self, int dst, int node) noexcept
    @cython.locals(near=int)
    cdef inline bint _was_hop(self, int dst, int node, int arc) noexcept
    @cython.locals(through=int)
    cdef inline bint _is_hop(self, int dst, int node, int arc) noexcept
    @cython.locals(count=int, arc=int)
    cdef inline int _count_ways(self, int dst, int node) noexcept
    @cython.locals(trees=SpfTrees, graph=Graph, n=int, index=int, pair=int, arc=int, back=int, dst=int)
    cdef void shift(self) noexcept
    @cython.locals(before=int, now=int, rate=cython.longlong, size=cython.longlong)
    cdef void _shift_multicasts(self, int arc) noexcept
    cdef inline bint _has_changed(self, int arc) noexcept
    @cython.locals(at=Py_ssize_t, place=Py_ssize_t)
    cdef void move(self, int src, int dst, long long rate, long long size) noexcept
    @cython.locals(dst=int)
    cdef void finish(self) noexcept
    @cython.locals(trees=SpfTrees, n=int, row=int, index=int, node=int, distance=cython.longlong)
    cdef void _flow_anew(self, int dst) noexcept
    @cython.locals(
        trees=SpfTrees, now=int, before=Py_ssize_t, rate=cython.longlong, size=cython.longlong, old_rate=cython.longlong,
        old_size=cython.longlong, old_ways=int, ways=int, arc=int, turn=int, old_turn=int, width=int, head=int,
    )
    cdef void _hand_on(self, int dst, int node) noexcept
    @cython.locals(index=int, at=Py_ssize_t)
    cdef void restore(self) noexcept

cdef long long _shares(long long amount, int parts, int turn, int count) noexcept
