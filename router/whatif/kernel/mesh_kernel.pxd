import cython

from router.whatif.kernel.c_arrays cimport FAR, NONE, array, doubles, ints, longs
from router.whatif.kernel.address_delivery cimport AddressDelivery
from router.whatif.kernel.path_delays cimport PathDelays
from router.whatif.kernel.graph cimport Graph
from router.whatif.kernel.link_loads cimport LinkLoads
from router.whatif.kernel.incremental_order_statistics cimport IncrementalOrderStatistics
from router.whatif.kernel.mesh_state cimport MeshState
from router.whatif.kernel.spf_trees cimport SpfTrees


@cython.final
cdef class Kernel:
    cdef readonly object network
    cdef readonly bint is_split, is_directed, has_delays, has_percentiles, is_failing, is_holding
    cdef MeshState origin
    cdef MeshState state
    cdef array _capacities, _queue, _parts, _base_parts, _part_sizes
    cdef double* capacities
    cdef int* queue
    cdef int* parts
    cdef int* base_parts
    cdef int* part_sizes
    cdef IncrementalOrderStatistics stretches
    cdef object held_pairs, held_lost_pairs
    cdef tuple base_summary
    cdef readonly long long base_pairs, base_lost_pairs, unreachable_pairs, dead_end_pairs, lost_rate, lost_bytes
    cdef readonly long long stretch_p50, stretch_p95, stretch_p99, delay_p50_us, delay_p95_us, delay_p99_us
    cdef readonly Py_ssize_t base_components, components, dead_addresses, starved_publishers, max_utilisation_link
    cdef readonly double max_utilisation

    cdef _make_summary(self)
    @cython.locals(n=Py_ssize_t, count=Py_ssize_t, router=Py_ssize_t, part=Py_ssize_t)
    cdef _make_room(self)
    @cython.locals(stretches=array)
    cdef _take_base(self)
    cdef array _compare_base(self)
    cpdef fail(self, links, routers)
    cpdef restore(self)
    cdef list _checked(self, object numbers, Py_ssize_t count, str what)
    cpdef tuple summary(self)
    cdef _recall(self)
    @cython.locals(lost=Py_ssize_t, delays=PathDelays, graph=Graph, is_whole=bint)
    cdef _summarise(self)
    @cython.locals(
        trees=SpfTrees, origin=SpfTrees, lost=Py_ssize_t, index=Py_ssize_t, root=Py_ssize_t, node=Py_ssize_t,
        at=Py_ssize_t, before=cython.longlong, now=cython.longlong, old=cython.longlong,
    )
    cdef Py_ssize_t _compare_pairs(self) except -1
    @cython.locals(pairs=cython.longlong, above=cython.longlong, count=cython.longlong, times=Py_ssize_t)
    cdef long long _stretch(self, Py_ssize_t percent) except *
    @cython.locals(graph=Graph, count=cython.longlong, index=Py_ssize_t, place=Py_ssize_t, part=Py_ssize_t)
    cdef long long _count_dead_ends(self) noexcept
    @cython.locals(
        traffic=LinkLoads, carried=cython.p_longlong, most=double, share=double, busiest=Py_ssize_t, lane=Py_ssize_t,
        number=Py_ssize_t,
    )
    cdef void _find_busiest(self) noexcept
    cdef double share(self, long long rate, long long size, Py_ssize_t link) noexcept
    @cython.locals(
        graph=Graph, count=Py_ssize_t, router=Py_ssize_t, size=Py_ssize_t, tail=Py_ssize_t, head=Py_ssize_t,
        arc=Py_ssize_t,
    )
    cdef Py_ssize_t _count_components(self) noexcept
    @cython.locals(audience=AddressDelivery, count=Py_ssize_t, address=Py_ssize_t)
    cdef Py_ssize_t _count_dead_addresses(self) noexcept
    @cython.locals(
        traffic=LinkLoads, numbers=cython.p_int, carried=cython.p_longlong, found=cython.p_longlong, lane=Py_ssize_t,
        number=Py_ssize_t,
    )
    cdef array _carried(self, bint is_base)
    @cython.locals(trees=SpfTrees, slot=Py_ssize_t)
    cpdef Py_ssize_t next_hop(self, Py_ssize_t src, Py_ssize_t dst)
    @cython.locals(delays=PathDelays)
    cpdef long long delay_us(self, Py_ssize_t src, Py_ssize_t dst) except *
    @cython.locals(delays=PathDelays)
    cpdef long long longest_delay_us(self) except *
    @cython.locals(distance=Py_ssize_t)
    cpdef Py_ssize_t distance(self, Py_ssize_t src, Py_ssize_t dst)
