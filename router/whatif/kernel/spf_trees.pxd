import cython

from router.whatif.kernel.c_arrays cimport FAR, NONE, array, ints, longs, shorts
from router.whatif.kernel.graph cimport Graph
from router.whatif.kernel.preorder cimport number_tree


@cython.final
cdef class SpfTrees:
    cdef readonly Graph graph
    cdef readonly Py_ssize_t size
    cdef int* firsts
    cdef int* heads
    cdef int* backs
    cdef int* pairs
    cdef int* costs
    cdef int* used_links
    cdef signed char* dead
    # Arrays own the memory; pointers of the same name lead to it.
    cdef array _distances, _slots, _vias, _orders, _sizes, _base_slots
    cdef int* distances
    cdef short* slots
    cdef short* vias
    cdef short* orders
    cdef short* sizes
    cdef short* base_slots
    cdef array _kept_rows, _kept_vias, _kept_log
    cdef short* kept_rows
    cdef short* kept_vias
    cdef int* kept_log
    cdef array _kept_stamps
    cdef int* kept_stamps
    cdef Py_ssize_t kept_row, kept_count, kept_stamp
    cdef array _pending, _touched, _nearest, _nearer, _ways_in, _places, _heap
    cdef int* pending
    cdef int* touched
    cdef int* nearest
    cdef int* nearer
    cdef int* ways_in
    cdef short* places
    cdef long long* heap
    cdef array _log_roots, _log_nodes, _log_distances, _log_slots, _log_new_slots
    cdef short* log_roots
    cdef short* log_nodes
    cdef int* log_distances
    cdef short* log_slots
    cdef short* log_new_slots
    cdef readonly Py_ssize_t log_size
    cdef array _touched_roots, _segments
    cdef int* touched_roots
    cdef Py_ssize_t touched_count
    cdef int* segments
    cdef array _user_firsts, _user_roots, _user_starts, _user_sizes, _user_nexts
    cdef int* user_firsts
    cdef short* user_roots
    cdef short* user_starts
    cdef short* user_sizes
    cdef int* user_nexts
    cdef bint is_base

    cdef _take_pointers(self, Graph graph)
    cdef _make_state(self, Py_ssize_t n, bint is_new)
    cdef _make_log(self, Py_ssize_t n)
    @cython.locals(n=Py_ssize_t, root=Py_ssize_t, node=Py_ssize_t, count=Py_ssize_t)
    cdef void _grow(self) noexcept
    @cython.locals(n=Py_ssize_t, root=Py_ssize_t, user=Py_ssize_t, index=Py_ssize_t)
    cdef _inherit(self, SpfTrees origin)
    @cython.locals(base=Py_ssize_t, parents=cython.p_int, node=Py_ssize_t, via=Py_ssize_t)
    cdef void _number(self, Py_ssize_t root) noexcept
    @cython.locals(
        n=Py_ssize_t, arcs=Py_ssize_t, root=Py_ssize_t, place=Py_ssize_t, arc=Py_ssize_t, count=Py_ssize_t,
        user=Py_ssize_t, free=cython.p_int,
    )
    cdef _list_users(self)
    @cython.locals(n=Py_ssize_t, root=Py_ssize_t, node=Py_ssize_t)
    cdef void _put_base_slots(self) noexcept
    @cython.locals(
        n=Py_ssize_t, count=Py_ssize_t, row=Py_ssize_t, root=Py_ssize_t, node=Py_ssize_t, places=cython.p_int
    )
    cpdef keep(self, array roots)
    @cython.locals(via=Py_ssize_t)
    cdef Py_ssize_t kept_arc_to(self, Py_ssize_t root, Py_ssize_t node) noexcept
    @cython.locals(via=Py_ssize_t)
    cdef Py_ssize_t arc_to(self, Py_ssize_t root, Py_ssize_t node) noexcept
    @cython.locals(graph=Graph, index=Py_ssize_t, pair=Py_ssize_t, root=Py_ssize_t)
    cdef void repair(self) noexcept
    @cython.locals(place=Py_ssize_t)
    cdef void _next_stamp(self) noexcept
    cdef inline Py_ssize_t distance_to(self, Py_ssize_t dst, Py_ssize_t node) noexcept
    cdef bint was_attached(self, Py_ssize_t root, Py_ssize_t node) noexcept
    @cython.locals(user=Py_ssize_t, root=Py_ssize_t)
    cdef void _take_off(self, Py_ssize_t arc) noexcept
    @cython.locals(count=Py_ssize_t, user=Py_ssize_t, start=Py_ssize_t, place=Py_ssize_t, node=Py_ssize_t)
    cdef Py_ssize_t _collect(self, Py_ssize_t root) noexcept
    @cython.locals(n=Py_ssize_t, index=Py_ssize_t, at=Py_ssize_t)
    cdef void restore(self) noexcept
    cpdef tuple log_pairs(self)
    cpdef array log_costs(self)
    cpdef array costs_now(self)
    @cython.locals(
        firsts=cython.p_int, heads=cython.p_int, costs=cython.p_int, pending=cython.p_int, nearest=cython.p_int,
        nearer=cython.p_int, ways_in=cython.p_int, heap=cython.p_longlong, base=Py_ssize_t, waiting=Py_ssize_t,
        index=Py_ssize_t, node=Py_ssize_t, distance=Py_ssize_t, arc=Py_ssize_t, peer=Py_ssize_t,
        through=cython.longlong, key=cython.longlong,
    )
    cdef void _attach(self, Py_ssize_t root, Py_ssize_t count) noexcept
    @cython.locals(
        nearest=Py_ssize_t, nearer=Py_ssize_t, way_in=Py_ssize_t, arc=Py_ssize_t, peer=Py_ssize_t, distance=Py_ssize_t,
        through=Py_ssize_t,
    )
    cdef inline void _offer(self, Py_ssize_t base, Py_ssize_t node) noexcept
    @cython.locals(base=Py_ssize_t, at=Py_ssize_t, slot=Py_ssize_t, via=Py_ssize_t, peer=Py_ssize_t, index=Py_ssize_t)
    cdef inline void _settle(self, Py_ssize_t root, Py_ssize_t node, Py_ssize_t distance, Py_ssize_t way_in) noexcept
    cdef void _keep_via(self, Py_ssize_t at, Py_ssize_t place, Py_ssize_t via) noexcept

@cython.locals(place=Py_ssize_t, parent=Py_ssize_t)
cdef void _push(long long* heap, Py_ssize_t size, long long key) noexcept
@cython.locals(least=cython.longlong, key=cython.longlong, place=Py_ssize_t, child=Py_ssize_t)
cdef long long _pop(long long* heap, Py_ssize_t size) noexcept
