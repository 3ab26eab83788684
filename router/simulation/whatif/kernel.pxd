import cython

from router.simulation.whatif.arrays cimport FAR, NONE, array, bytes_of, doubles, ints, longs
from router.simulation.whatif.audience cimport Audience
from router.simulation.whatif.balance cimport Balance
from router.simulation.whatif.delays cimport Delays
from router.simulation.whatif.loads cimport Loads
from router.simulation.whatif.split cimport SplitLoads
from router.simulation.whatif.trees cimport Trees


@cython.final
cdef class Kernel:
    cdef readonly object network
    cdef Trees trees
    cdef Loads traffic
    cdef Audience audience
    cdef Balance balance
    cdef Delays delays
    cdef array _capacities, _stretches, _queue, _seen
    cdef double* capacities
    cdef long long* stretches
    cdef int* queue
    cdef signed char* seen
    cdef readonly bint is_failing
    cdef readonly long long base_pairs, unreachable_pairs, dead_end_pairs, lost_rate, lost_bytes
    cdef readonly long long stretch_p50, stretch_p95, stretch_p99
    cdef readonly long long delay_p50_us, delay_p95_us, delay_p99_us
    cdef readonly bint has_delays
    cdef long long base_stretch
    cdef tuple base_delays
    cdef double base_utilisation
    cdef int base_utilisation_link
    cdef readonly int base_components, components, dead_addresses, starved_publishers, max_utilisation_link
    cdef readonly double max_utilisation

    @cython.locals(
        kept=tuple, srcs=cython.p_int, dsts=cython.p_int, rates=cython.p_longlong, volumes=cython.p_longlong, index=int
    )
    cdef _add_demands(self, object network)
    @cython.locals(trees=Trees, n=int, at=int)
    cdef _make_state(self)
    @cython.locals(trees=Trees, number=int)
    cpdef fail(self, links, routers)
    cdef void _play(self) noexcept
    cpdef restore(self)
    @cython.locals(
        trees=Trees, count=int, index=int, root=int, node=int, old=cython.longlong, new=cython.longlong
    )
    cdef void _summarise(self) noexcept
    cdef _remember(self)
    cdef _recall(self)
    @cython.locals(pairs=cython.longlong, rank=cython.longlong, above=cython.longlong)
    cdef long long _stretch(self, int percent, int count) noexcept
    @cython.locals(values=cython.p_longlong, low=int, high=int, left=int, right=int, pivot=cython.longlong)
    cdef long long _select(self, int count, int place) noexcept
    cdef void _find_delays(self) noexcept
    @cython.locals(trees=Trees, most=double, share=double, busiest=int, tail=int, arc=int, link=int, number=int)
    cdef void _find_busiest(self) noexcept
    @cython.locals(by_rate=double, by_bytes=double)
    cdef inline double _utilisation(self, int arc, int link) noexcept
    @cython.locals(trees=Trees, count=int, router=int, size=int, tail=int, head=int, arc=int)
    cdef int _count_components(self) noexcept
    @cython.locals(count=int, address=int, first=int)
    cdef int _count_dead_addresses(self) noexcept
    @cython.locals(trees=Trees, found=cython.p_longlong, tail=int, arc=int, pair=int, link=int, number=int)
    cdef array _carried(self, bint is_base)
    @cython.locals(slot=int)
    cpdef int next_hop(self, int src, int dst)
    @cython.locals(distance=int)
    cpdef int distance(self, int src, int dst)
