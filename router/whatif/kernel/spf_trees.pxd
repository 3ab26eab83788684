import cython

from router.whatif.kernel.c_arrays cimport FAR, NONE, array, ints, longs, shorts
from router.whatif.kernel.graph cimport Graph
from router.whatif.kernel.preorder cimport number_tree


@cython.final
cdef class SpfTrees:
    cdef readonly Graph graph
    cdef readonly int size
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
    cdef int kept_row, kept_count, kept_stamp
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
    cdef readonly int log_size
    cdef array _touched_roots, _segments
    cdef int* touched_roots
    cdef int touched_count
    cdef int* segments
    cdef array _user_firsts, _user_roots, _user_starts, _user_sizes, _user_nexts
    cdef int* user_firsts
    cdef short* user_roots
    cdef short* user_starts
    cdef short* user_sizes
    cdef int* user_nexts
    cdef bint is_base

    cdef _take_pointers(self, Graph graph)
    cdef _make_state(self, int n, bint is_new)
    cdef _make_log(self, int n)
    @cython.locals(n=int, root=int, node=int, count=int)
    cdef void _grow(self) noexcept
    @cython.locals(n=int, root=int, user=int, index=int)
    cdef _inherit(self, SpfTrees origin)
    @cython.locals(base=int, parents=cython.p_int, node=int, via=int)
    cdef void _number(self, int root) noexcept
    @cython.locals(n=int, arcs=int, root=int, place=int, arc=int, count=int, user=int, free=cython.p_int)
    cdef _list_users(self)
    @cython.locals(n=int, root=int, node=int)
    cdef void _put_base_slots(self) noexcept
    @cython.locals(n=int, count=int, row=int, root=int, node=int, places=cython.p_int)
    cpdef keep(self, array roots)
    @cython.locals(via=int)
    cdef int kept_arc_to(self, int root, int node) noexcept
    @cython.locals(via=int)
    cdef int arc_to(self, int root, int node) noexcept
    @cython.locals(graph=Graph, index=int, pair=int, root=int)
    cdef void repair(self) noexcept
    @cython.locals(place=int)
    cdef void _next_stamp(self) noexcept
    cdef inline int distance_to(self, int dst, int node) noexcept
    cdef bint was_attached(self, int root, int node) noexcept
    @cython.locals(user=int, root=int)
    cdef void _take_off(self, int arc) noexcept
    @cython.locals(count=int, user=int, start=int, place=int, node=int)
    cdef int _collect(self, int root) noexcept
    @cython.locals(n=int, index=int, at=int)
    cdef void restore(self) noexcept
    cpdef tuple log_pairs(self)
    cpdef array log_costs(self)
    cpdef array costs_now(self)
    @cython.locals(
        firsts=cython.p_int, heads=cython.p_int, costs=cython.p_int, pending=cython.p_int, nearest=cython.p_int,
        nearer=cython.p_int, ways_in=cython.p_int, heap=cython.p_longlong, base=int, waiting=int, index=int, node=int,
        distance=int, arc=int, peer=int, through=cython.longlong, key=cython.longlong,
    )
    cdef void _attach(self, int root, int count) noexcept
    @cython.locals(nearest=int, nearer=int, way_in=int, arc=int, peer=int, distance=int, through=int)
    cdef inline void _offer(self, int base, int node) noexcept
    @cython.locals(base=int, at=int, slot=int, via=int, peer=int, index=int)
    cdef inline void _settle(self, int root, int node, int distance, int way_in) noexcept
    cdef void _keep_via(self, int at, int place, int via) noexcept

@cython.locals(place=int, parent=int)
cdef void _push(long long* heap, int size, long long key) noexcept
@cython.locals(least=cython.longlong, key=cython.longlong, place=int, child=int)
cdef long long _pop(long long* heap, int size) noexcept
