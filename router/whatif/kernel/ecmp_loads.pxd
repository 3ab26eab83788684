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
    cdef Py_ssize_t move_count
    cdef signed char* was_down
    cdef long long* spread
    cdef bint is_base

    cdef _make_lanes(self, Py_ssize_t lanes)
    @cython.locals(graph=Graph, place=Py_ssize_t, link=Py_ssize_t)
    cdef void _number_lanes(self, Py_ssize_t pair) noexcept
    @cython.locals(graph=Graph, index=Py_ssize_t, link=Py_ssize_t)
    cdef void _restore_numbers(self) noexcept
    cpdef expect(self, Py_ssize_t count)
    @cython.locals(at=Py_ssize_t)
    cdef void demand(self, Py_ssize_t src, Py_ssize_t dst, long long rate, long long size) noexcept
    @cython.locals(
        trees=SpfTrees, n=Py_ssize_t, row=Py_ssize_t, node=Py_ssize_t, distance=cython.longlong, index=Py_ssize_t,
        place=Py_ssize_t, rate=cython.longlong, size=cython.longlong, ways=Py_ssize_t, turn=Py_ssize_t, arc=Py_ssize_t,
        head=Py_ssize_t, width=Py_ssize_t,
    )
    cdef void _gather(self, Py_ssize_t dst) noexcept
    cdef void settle(self) noexcept
    @cython.locals(link=Py_ssize_t)
    cdef void carry(self, Py_ssize_t arc, long long rate, long long size) noexcept
    cdef inline Py_ssize_t _lane(self, Py_ssize_t arc, Py_ssize_t link) noexcept
    @cython.locals(cost=Py_ssize_t)
    cdef inline bint _is_shared(self, Py_ssize_t arc, Py_ssize_t link, bint is_base) noexcept
    @cython.locals(graph=Graph, width=Py_ssize_t, place=Py_ssize_t)
    cdef inline Py_ssize_t _width(self, Py_ssize_t arc, bint is_base) noexcept
    @cython.locals(graph=Graph, place=Py_ssize_t, link=Py_ssize_t)
    cdef void _put_on_links(
        self, Py_ssize_t arc, bint is_base, long long rate, long long size, Py_ssize_t ways, Py_ssize_t turn
    ) noexcept
    @cython.locals(trees=SpfTrees)
    cdef inline Py_ssize_t _base_distance_to(self, Py_ssize_t dst, Py_ssize_t node) noexcept
    @cython.locals(near=Py_ssize_t)
    cdef inline bint _was_hop(self, Py_ssize_t dst, Py_ssize_t node, Py_ssize_t arc) noexcept
    @cython.locals(through=Py_ssize_t)
    cdef inline bint _is_hop(self, Py_ssize_t dst, Py_ssize_t node, Py_ssize_t arc) noexcept
    @cython.locals(count=Py_ssize_t, arc=Py_ssize_t)
    cdef inline Py_ssize_t _count_ways(self, Py_ssize_t dst, Py_ssize_t node) noexcept
    @cython.locals(
        trees=SpfTrees, graph=Graph, n=Py_ssize_t, index=Py_ssize_t, pair=Py_ssize_t, arc=Py_ssize_t, back=Py_ssize_t,
        dst=Py_ssize_t,
    )
    cdef void shift(self) noexcept
    @cython.locals(before=Py_ssize_t, now=Py_ssize_t, rate=cython.longlong, size=cython.longlong)
    cdef void _shift_multicasts(self, Py_ssize_t arc) noexcept
    cdef inline bint _has_changed(self, Py_ssize_t arc) noexcept
    @cython.locals(at=Py_ssize_t, place=Py_ssize_t)
    cdef void move(self, Py_ssize_t src, Py_ssize_t dst, long long rate, long long size) noexcept
    @cython.locals(dst=Py_ssize_t)
    cdef void finish(self) noexcept
    @cython.locals(
        trees=SpfTrees, n=Py_ssize_t, row=Py_ssize_t, index=Py_ssize_t, node=Py_ssize_t, distance=cython.longlong
    )
    cdef void _flow_anew(self, Py_ssize_t dst) noexcept
    @cython.locals(
        trees=SpfTrees, now=Py_ssize_t, before=Py_ssize_t, rate=cython.longlong, size=cython.longlong,
        old_rate=cython.longlong, old_size=cython.longlong, old_ways=Py_ssize_t, ways=Py_ssize_t, arc=Py_ssize_t,
        turn=Py_ssize_t, old_turn=Py_ssize_t, width=Py_ssize_t, head=Py_ssize_t,
    )
    cdef void _hand_on(self, Py_ssize_t dst, Py_ssize_t node) noexcept
    @cython.locals(index=Py_ssize_t, at=Py_ssize_t)
    cdef void restore(self) noexcept

cdef long long _shares(long long amount, Py_ssize_t parts, Py_ssize_t turn, Py_ssize_t count) noexcept
