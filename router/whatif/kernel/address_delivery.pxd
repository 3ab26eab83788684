import cython

from router.whatif.kernel.c_arrays cimport BALANCED, BOUNDED, CLOSEST, FAR, MULTICAST, NONE, array, bytes_of, ints, longs
from router.whatif.kernel.link_loads cimport LinkLoads
from router.whatif.kernel.spf_trees cimport SpfTrees


@cython.final
cdef class AddressDelivery:
    cdef SpfTrees trees
    cdef LinkLoads loads
    cdef readonly Py_ssize_t publishers, addresses, sites, cells
    cdef array _treatments, _site_firsts, _site_routers, _site_addresses
    cdef int* treatments
    cdef int* site_firsts
    cdef int* site_routers
    cdef int* site_addresses
    cdef array _srcs, _targets, _rates, _volumes, _publisher_firsts, _cell_firsts, _group_firsts, _group
    cdef int* group_firsts
    cdef int* group
    cdef int* srcs
    cdef int* targets
    cdef long long* rates
    cdef long long* volumes
    cdef int* publisher_firsts
    cdef long long* cell_firsts
    cdef array _sent, _shares, _is_chosen, _nearest, _visited, _visits
    cdef long long* sent
    cdef long long* shares
    cdef signed char* is_chosen
    cdef int* nearest
    cdef signed char* visited
    cdef int* visits
    cdef Py_ssize_t visit_count
    cdef array _missing, _base_missing, _is_starved, _was_starved, _reviewed
    cdef long long* missing
    cdef long long* base_missing
    cdef signed char* is_starved
    cdef signed char* was_starved
    cdef int* reviewed
    cdef Py_ssize_t reviewed_count
    cdef readonly Py_ssize_t starved_publishers, base_starved_publishers
    cdef bint is_base

    @cython.locals(address=Py_ssize_t, site=Py_ssize_t, kept=array, bounds=cython.p_longlong)
    cdef _make_sites(self, object network)
    @cython.locals(
        count=Py_ssize_t, publisher=Py_ssize_t, address=Py_ssize_t, cells=Py_ssize_t, router=Py_ssize_t,
        free=cython.p_int,
    )
    cdef _make_publishers(self, object network)
    @cython.locals(cells=Py_ssize_t)
    cdef _make_state(self)
    @cython.locals(most=Py_ssize_t, address=Py_ssize_t)
    cdef Py_ssize_t _most_sites(self) noexcept
    @cython.locals(publisher=Py_ssize_t, src=Py_ssize_t, last=Py_ssize_t, roots=array)
    cdef begin(self)
    @cython.locals(publisher=Py_ssize_t)
    cdef void settle(self) noexcept
    @cython.locals(trees=SpfTrees, index=Py_ssize_t, root=Py_ssize_t)
    cdef void review(self) noexcept
    @cython.locals(publisher=Py_ssize_t)
    cdef void _review_router(self, Py_ssize_t router) noexcept
    @cython.locals(treatment=Py_ssize_t)
    cdef void _review(self, Py_ssize_t publisher) noexcept
    @cython.locals(src=Py_ssize_t, row=Py_ssize_t, site=Py_ssize_t, cell=Py_ssize_t)
    cdef bint _is_moved(self, Py_ssize_t publisher) noexcept
    @cython.locals(src=Py_ssize_t, address=Py_ssize_t, site=Py_ssize_t)
    cdef bint _is_spread_anew(self, Py_ssize_t publisher) noexcept
    @cython.locals(
        src=Py_ssize_t, first=Py_ssize_t, count=Py_ssize_t, row=Py_ssize_t, nearest=Py_ssize_t, sharers=Py_ssize_t,
        index=Py_ssize_t, distance=Py_ssize_t, turn=Py_ssize_t, rate=cython.longlong, volume=cython.longlong,
    )
    cdef void _choose(self, Py_ssize_t publisher, bint is_shared) noexcept
    @cython.locals(
        src=Py_ssize_t, site=Py_ssize_t, first=Py_ssize_t, index=Py_ssize_t, cell=Py_ssize_t, router=Py_ssize_t,
        rate=cython.longlong, volume=cython.longlong,
    )
    cdef void send(self, Py_ssize_t publisher) noexcept
    @cython.locals(
        src=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, lost=Py_ssize_t, is_starved=bint, rate=cython.longlong,
        volume=cython.longlong,
    )
    cdef void _spread(self, Py_ssize_t publisher) noexcept
    @cython.locals(
        src=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, lost=Py_ssize_t, site=Py_ssize_t, index=Py_ssize_t
    )
    cdef Py_ssize_t _climb_all(self, Py_ssize_t publisher, long long rate, long long volume, bint is_base) noexcept
    @cython.locals(trees=SpfTrees, node=Py_ssize_t, arc=Py_ssize_t)
    cdef bint _climb(self, Py_ssize_t src, Py_ssize_t router, long long rate, long long volume, bint is_base) noexcept
    cdef void note(self, Py_ssize_t publisher, long long rate, long long volume, bint is_starved) noexcept
    cpdef Py_ssize_t count_sites(self, Py_ssize_t address)
    @cython.locals(count=Py_ssize_t, site=Py_ssize_t)
    cpdef Py_ssize_t living_sites(self, Py_ssize_t address)
    @cython.locals(is_same=bint, index=Py_ssize_t, publisher=Py_ssize_t, site=Py_ssize_t)
    cpdef list impacted(self, AddressDelivery origin)
    @cython.locals(publisher=Py_ssize_t)
    cpdef list losing(self)
    @cython.locals(starved=Py_ssize_t, place=Py_ssize_t, missing=cython.longlong)
    cpdef tuple misses(self, Py_ssize_t address)
    @cython.locals(index=Py_ssize_t, publisher=Py_ssize_t)
    cdef void restore(self) noexcept
