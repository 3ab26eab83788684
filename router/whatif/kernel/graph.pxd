import cython

from router.whatif.kernel.c_arrays cimport FAR, NONE, array, bytes_of, ints


@cython.final
cdef class Graph:
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
    cdef array _costs, _used_links, _base_links, _forths, _directions
    cdef int* costs
    cdef int* used_links
    cdef int* base_links
    cdef int* forths
    cdef array _dead, _dead_routers, _down, _down_links, _is_hit, _hits
    cdef signed char* directions
    cdef readonly bint has_asymmetric_costs
    cdef signed char* dead
    cdef int* dead_routers
    cdef int dead_count, base_dead_count
    cdef signed char* down
    cdef int* down_links
    cdef int down_count, base_down_count
    cdef signed char* is_hit
    cdef int* hits
    cdef int hit_count

    cdef _make_state(self)
    @cython.locals(pair=int, place=int, tail=int, arc=int, link=int)
    cdef void _connect(self) noexcept
    cpdef array arc_costs(self)
    cpdef array dead_now(self)
    cpdef array links_down(self)
    @cython.locals(pair=int)
    cdef void take_down(self, int link) noexcept
    @cython.locals(arc=int, pair=int, place=int)
    cdef void kill(self, int router) noexcept
    cdef inline int first_parallel(self, int arc) noexcept
    cdef inline int end_of_parallel(self, int arc) noexcept
    @cython.locals(arc=int, back=int, is_changed=bint)
    cdef bint choose_links(self, int pair) noexcept
    @cython.locals(place=int)
    cdef int _first_up(self, int arc) noexcept
    @cython.locals(link=int, cost=int)
    cdef bint _charge(self, int arc) noexcept
    @cython.locals(index=int, pair=int, arc=int, back=int)
    cdef void keep_failures(self) noexcept
    @cython.locals(index=int, pair=int, arc=int, back=int)
    cdef void restore(self) noexcept
