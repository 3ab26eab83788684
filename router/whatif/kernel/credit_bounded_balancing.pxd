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
    cdef long long* firsts
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

    @cython.locals(
        audience=AddressDelivery, most=Py_ssize_t, publishers=Py_ssize_t, offers=Py_ssize_t, count=Py_ssize_t,
        address=Py_ssize_t,
    )
    cdef _make_room(self)
    @cython.locals(graph=Graph, address=Py_ssize_t)
    cdef void review(self) noexcept
    @cython.locals(
        audience=AddressDelivery, group=Py_ssize_t, size=Py_ssize_t, first=Py_ssize_t, sites=Py_ssize_t,
        index=Py_ssize_t, publisher=Py_ssize_t, site=Py_ssize_t, place=Py_ssize_t, offer=cython.longlong,
        is_starved=bint,
    )
    cdef void _share_out(self, Py_ssize_t address) noexcept
    @cython.locals(
        audience=AddressDelivery, trees=SpfTrees, group=Py_ssize_t, size=Py_ssize_t, first=Py_ssize_t, sites=Py_ssize_t,
        ranks=Py_ssize_t, count=Py_ssize_t, place=Py_ssize_t, index=Py_ssize_t, src=Py_ssize_t, site=Py_ssize_t,
        key=cython.longlong, moved=Py_ssize_t,
    )
    cdef Py_ssize_t _list_offers(self, Py_ssize_t address) noexcept
    @cython.locals(at=Py_ssize_t, other=Py_ssize_t)
    cdef void _merge(self, Py_ssize_t count, Py_ssize_t moved) noexcept
    @cython.locals(
        audience=AddressDelivery, publisher=Py_ssize_t, at=Py_ssize_t, rate=cython.longlong, volume=cython.longlong,
        busy=cython.longlong, share=double,
    )
    cdef void _serve(self, Py_ssize_t address, Py_ssize_t index, Py_ssize_t site, Py_ssize_t sites) noexcept
