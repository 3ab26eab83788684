import cython

from router.whatif.kernel.c_arrays cimport FAR, NONE, array, bytes_of, ints, longs, shorts
from router.whatif.kernel.graph cimport Graph
from router.whatif.kernel.preorder cimport number_tree
from router.whatif.kernel.incremental_order_statistics cimport IncrementalOrderStatistics
from router.whatif.kernel.spf_trees cimport SpfTrees


@cython.final
cdef class PathDelays:
    cdef SpfTrees trees
    cdef IncrementalOrderStatistics ranking
    cdef array _link_delays, _delays, _orders, _places, _sizes, _counts, _stack, _spare
    cdef long long* link_delays
    cdef long long* delays
    cdef short* orders
    cdef short* places
    cdef short* sizes
    cdef int* counts
    cdef int* stack
    cdef int* spare
    cdef array _new_delays, _stages, _stale
    cdef long long* new_delays
    cdef signed char* stages
    cdef int* stale
    cdef int stale_count
    cdef bint is_ranked

    @cython.locals(
        trees=SpfTrees, n=int, row=int, parents=cython.p_int, order=cython.p_int, node=int, slot=int, first=int, index=int,
        arc=int,
    )
    cdef void _number(self, int dst) noexcept
    @cython.locals(dst=int)
    cdef _make_state(self, int n)
    cdef inline long long _delay(self, int arc) noexcept
    cdef array _sorted_delays(self)
    @cython.locals(trees=SpfTrees, graph=Graph, index=int, arc=int, n=int, at=int)
    cdef update(self)
    @cython.locals(before=int, now=int)
    cdef void _compare(self, Graph graph, int arc) noexcept
    @cython.locals(at=int)
    cdef long long between(self, int src, int dst) noexcept
    @cython.locals(trees=SpfTrees, node=int, arc=int, total=cython.longlong)
    cdef long long _added_up(self, int src, int dst) noexcept
    @cython.locals(row=int, first=int, place=int, at=int)
    cdef void _mark(self, int dst, int node) noexcept
    @cython.locals(trees=SpfTrees, tail=int, slot=int, dst=int)
    cdef void _mark_users(self, int arc) noexcept
    @cython.locals(trees=SpfTrees, n=int, row=int, depth=int, node=int, arc=int, at=int, total=cython.longlong)
    cdef void _work_out(self, int dst, int src) noexcept
    @cython.locals(index=int)
    cdef void restore(self) noexcept
    @cython.locals(count=int)
    cdef long long percentile(self, int percent) noexcept
