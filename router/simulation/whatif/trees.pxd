import cython

from router.simulation.whatif.arrays cimport FAR, NONE, array, bytes_of, ints, longs, shorts


@cython.final
cdef class Trees:
    cdef readonly int size, arcs, links, adjacencies
    # Arrays own the memory; pointers of the same name lead to it.
    cdef array _firsts, _heads, _backs, _pairs, _parallel_first, _parallel, _link_costs, _link_pairs
    cdef int* firsts
    cdef int* heads
    cdef int* backs
    cdef int* pairs
    cdef int* parallel_first
    cdef int* parallel
    cdef int* link_costs
    cdef int* link_pairs
    cdef array _costs, _used_links, _forths
    cdef int* costs
    cdef int* used_links
    cdef int* forths
    cdef array _distances, _slots, _vias, _orders, _base_slots, _sizes
    cdef int* distances
    cdef short* slots
    cdef short* vias
    cdef short* orders
    cdef short* base_slots
    cdef short* sizes
    cdef array _kept_rows, _kept_vias, _kept_log
    cdef short* kept_rows
    cdef short* kept_vias
    cdef int* kept_log
    cdef int kept_row, kept_count
    cdef array _pending, _touched, _nearest, _nearer, _ways_in, _settled, _heap
    cdef int* pending
    cdef int* touched
    cdef int* nearest
    cdef int* nearer
    cdef int* ways_in
    cdef int* settled
    cdef int settled_count
    cdef long long* heap
    cdef array _log_roots, _log_nodes, _log_distances, _log_slots, _log_new_slots
    cdef short* log_roots
    cdef short* log_nodes
    cdef int* log_distances
    cdef short* log_slots
    cdef short* log_new_slots
    cdef readonly int log_size
    cdef array _dead, _dead_routers, _down, _down_links, _is_hit, _hits, _touched_roots, _segments
    cdef signed char* dead
    cdef int* dead_routers
    cdef int dead_count
    cdef signed char* down
    cdef int* down_links
    cdef int down_count
    cdef signed char* is_hit
    cdef int* hits
    cdef int hit_count
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

    @cython.locals(pair=int, place=int, tail=int, arc=int)
    cdef _make_graph(self, object network)
    cdef _make_state(self, int n)
    cdef _make_log(self, int n)
    @cython.locals(n=int, root=int, node=int, count=int)
    cdef _grow(self)
    @cython.locals(base=int, index=int, node=int, parent=int, place=int, sizes=cython.p_int, places=cython.p_int, free=cython.p_int)
    cdef void _number(self, int root) noexcept
    @cython.locals(n=int, root=int, place=int, arc=int, count=int, user=int, free=cython.p_int)
    cdef _list_users(self)
    @cython.locals(n=int, count=int, row=int, root=int, node=int, places=cython.p_int)
    cpdef keep(self, array roots)
    @cython.locals(via=int)
    cdef int kept_arc_to(self, int root, int node) noexcept
    @cython.locals(via=int)
    cdef int arc_to(self, int root, int node) noexcept
    cdef void take_down(self, int link) noexcept
    @cython.locals(arc=int, pair=int, place=int)
    cdef void kill(self, int router) noexcept
    cdef void _hit(self, int pair) noexcept
    @cython.locals(index=int, pair=int, arc=int, link=int, cost=int, root=int)
    cdef void repair(self) noexcept
    @cython.locals(place=int)
    cdef int _first_up(self, int pair) noexcept
    @cython.locals(user=int, root=int)
    cdef void _take_off(self, int arc) noexcept
    @cython.locals(count=int, user=int, start=int, place=int, node=int)
    cdef int _collect(self, int root) noexcept
    @cython.locals(n=int, index=int, at=int, pair=int, link=int, arc=int)
    cdef void restore(self) noexcept
    cpdef tuple log_pairs(self)
    cpdef array log_costs(self)
    cpdef array costs_now(self)
    cpdef array arc_costs(self)
    cpdef array dead_now(self)
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
