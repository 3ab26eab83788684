import cython

from router.whatif.kernel.c_arrays cimport BALANCED, BOUNDED, CLOSEST, FAR, MULTICAST, NONE, array, bytes_of, ints, longs
from router.whatif.kernel.link_loads cimport LinkLoads
from router.whatif.kernel.spf_trees cimport SpfTrees


@cython.final
cdef class AddressDelivery:
    cdef SpfTrees trees
    cdef LinkLoads loads
    cdef readonly int publishers, addresses, sites, cells
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
    cdef int* cell_firsts
    cdef array _sent, _shares, _is_chosen, _nearest, _visited, _visits
    cdef long long* sent
    cdef long long* shares
    cdef signed char* is_chosen
    cdef int* nearest
    cdef signed char* visited
    cdef int* visits
    cdef int visit_count
    cdef array _missing, _base_missing, _is_starved, _was_starved, _reviewed
    cdef long long* missing
    cdef long long* base_missing
    cdef signed char* is_starved
    cdef signed char* was_starved
    cdef int* reviewed
    cdef int reviewed_count
    cdef readonly int starved_publishers, base_starved_publishers
    cdef bint is_base

    @cython.locals(address=int, site=int, kept=array, bounds=cython.p_longlong)
    cdef _make_sites(self, object network)
    @cython.locals(count=int, publisher=int, address=int, cells=int, router=int, free=cython.p_int)
    cdef _make_publishers(self, object network)
    @cython.locals(cells=int)
    cdef _make_state(self)
    @cython.locals(most=int, address=int)
    cdef int _most_sites(self) noexcept
    @cython.locals(publisher=int, src=int, last=int, roots=array)
    cdef begin(self)
    @cython.locals(publisher=int)
    cdef void settle(self) noexcept
    @cython.locals(trees=SpfTrees, index=int, root=int)
    cdef void review(self) noexcept
    @cython.locals(publisher=int)
    cdef void _review_router(self, int router) noexcept
    @cython.locals(treatment=int)
    cdef void _review(self, int publisher) noexcept
    @cython.locals(src=int, row=int, site=int, cell=int)
    cdef bint _is_moved(self, int publisher) noexcept
    @cython.locals(src=int, address=int, site=int)
    cdef bint _is_spread_anew(self, int publisher) noexcept
    @cython.locals(
        src=int, first=int, count=int, row=int, nearest=int, sharers=int, index=int, distance=int, turn=int,
        rate=cython.longlong, volume=cython.longlong,
    )
    cdef void _choose(self, int publisher, bint is_shared) noexcept
    @cython.locals(src=int, site=int, first=int, index=int, cell=int, router=int, rate=cython.longlong, volume=cython.longlong)
    cdef void send(self, int publisher) noexcept
    @cython.locals(
        src=int, first=int, last=int, lost=int, is_starved=bint, rate=cython.longlong, volume=cython.longlong
    )
    cdef void _spread(self, int publisher) noexcept
    @cython.locals(src=int, first=int, last=int, lost=int, site=int, index=int)
    cdef int _climb_all(self, int publisher, long long rate, long long volume, bint is_base) noexcept
    @cython.locals(trees=SpfTrees, node=int, arc=int)
    cdef bint _climb(self, int src, int router, long long rate, long long volume, bint is_base) noexcept
    cdef void note(self, int publisher, long long rate, long long volume, bint is_starved) noexcept
    cpdef int count_sites(self, int address)
    @cython.locals(count=int, site=int)
    cpdef int living_sites(self, int address)
    @cython.locals(is_same=bint, index=int, publisher=int, site=int)
    cpdef list impacted(self, AddressDelivery origin)
    @cython.locals(starved=int, place=int, missing=cython.longlong)
    cpdef tuple misses(self, int address)
    @cython.locals(index=int, publisher=int)
    cdef void restore(self) noexcept
