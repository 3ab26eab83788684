import cython

from router.whatif.kernel.c_arrays cimport BOUNDED, FAR, NONE, array, bytes_of, ints, longs
from router.whatif.kernel.address_delivery cimport AddressDelivery
from router.whatif.kernel.path_delays cimport PathDelays
from router.whatif.kernel.graph cimport Graph
from router.whatif.kernel.link_loads cimport sort_keys
from router.whatif.kernel.spf_trees cimport SpfTrees


@cython.final
cdef class BalancedAddresses:
    cdef SpfTrees trees
    cdef AddressDelivery audience
    cdef PathDelays delays
    cdef array _firsts, _ranks, _credits, _services, _distances, _offers, _moved, _given, _left, _room, _is_found
    cdef int* firsts
    cdef int* ranks
    cdef long long* credits
    cdef long long* services
    cdef int* distances
    cdef long long* offers
    cdef long long* moved
    cdef long long* given
    cdef long long* left
    cdef long long* room
    cdef signed char* is_found

    @cython.locals(audience=AddressDelivery, most=Py_ssize_t, publishers=int, offers=int, count=int, address=int)
    cdef _make_room(self)
    @cython.locals(graph=Graph, address=int)
    cdef void review(self) noexcept
    @cython.locals(
        audience=AddressDelivery, group=int, size=int, first=int, sites=int, index=int, publisher=int, site=int,
        place=Py_ssize_t, offer=cython.longlong, is_starved=bint,
    )
    cdef void _share_out(self, int address) noexcept
    @cython.locals(
        audience=AddressDelivery, trees=SpfTrees, group=int, size=int, first=int, sites=int, ranks=int, count=int, place=int,
        index=int, src=int, site=int, key=cython.longlong, moved=int,
    )
    cdef int _list_offers(self, int address) noexcept
    @cython.locals(at=int, other=int)
    cdef void _merge(self, int count, int moved) noexcept
    @cython.locals(
        audience=AddressDelivery, publisher=int, at=int, rate=cython.longlong, volume=cython.longlong, busy=cython.longlong,
        share=double,
    )
    cdef void _serve(self, int address, int index, int site, int sites) noexcept
