import cython

from router.whatif.kernel.c_arrays cimport FAR, NONE, array, bytes_of, ints


@cython.final
cdef class Graph:
    cdef readonly Py_ssize_t size, arcs, links, adjacencies
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
    cdef Py_ssize_t dead_count, base_dead_count
    cdef signed char* down
    cdef int* down_links
    cdef Py_ssize_t down_count, base_down_count
    cdef signed char* is_hit
    cdef int* hits
    cdef Py_ssize_t hit_count

    cdef _make_state(self)
    @cython.locals(pair=Py_ssize_t, place=Py_ssize_t, tail=Py_ssize_t, arc=Py_ssize_t, link=Py_ssize_t)
    cdef void _connect(self) noexcept
    cpdef array arc_costs(self)
    cpdef array dead_now(self)
    cpdef array links_down(self)
    @cython.locals(pair=Py_ssize_t)
    cdef void take_down(self, Py_ssize_t link) noexcept
    @cython.locals(arc=Py_ssize_t, pair=Py_ssize_t, place=Py_ssize_t)
    cdef void kill(self, Py_ssize_t router) noexcept
    cdef inline Py_ssize_t first_parallel(self, Py_ssize_t arc) noexcept
    cdef inline Py_ssize_t end_of_parallel(self, Py_ssize_t arc) noexcept
    @cython.locals(arc=Py_ssize_t, back=Py_ssize_t, is_changed=bint)
    cdef bint choose_links(self, Py_ssize_t pair) noexcept
    @cython.locals(place=Py_ssize_t)
    cdef Py_ssize_t _first_up(self, Py_ssize_t arc) noexcept
    @cython.locals(link=Py_ssize_t, cost=Py_ssize_t)
    cdef bint _charge(self, Py_ssize_t arc) noexcept
    @cython.locals(index=Py_ssize_t, pair=Py_ssize_t, arc=Py_ssize_t, back=Py_ssize_t)
    cdef void keep_failures(self) noexcept
    @cython.locals(index=Py_ssize_t, pair=Py_ssize_t, arc=Py_ssize_t, back=Py_ssize_t)
    cdef void restore(self) noexcept
