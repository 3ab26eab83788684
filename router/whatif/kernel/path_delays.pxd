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
    cdef Py_ssize_t stale_count
    cdef bint is_ranked

    @cython.locals(
        trees=SpfTrees, n=Py_ssize_t, row=Py_ssize_t, parents=cython.p_int, order=cython.p_int, node=Py_ssize_t,
        slot=Py_ssize_t, first=Py_ssize_t, index=Py_ssize_t, arc=Py_ssize_t,
    )
    cdef void _number(self, Py_ssize_t dst) noexcept
    @cython.locals(dst=Py_ssize_t)
    cdef _make_state(self, Py_ssize_t n)
    cdef inline long long _delay(self, Py_ssize_t arc) noexcept
    cdef array _sorted_delays(self)
    @cython.locals(trees=SpfTrees, graph=Graph, index=Py_ssize_t, arc=Py_ssize_t, n=Py_ssize_t, at=Py_ssize_t)
    cdef update(self)
    @cython.locals(before=Py_ssize_t, now=Py_ssize_t)
    cdef void _compare(self, Graph graph, Py_ssize_t arc) noexcept
    @cython.locals(at=Py_ssize_t)
    cdef long long between(self, Py_ssize_t src, Py_ssize_t dst) noexcept
    @cython.locals(trees=SpfTrees, node=Py_ssize_t, arc=Py_ssize_t, total=cython.longlong)
    cdef long long _added_up(self, Py_ssize_t src, Py_ssize_t dst) noexcept
    @cython.locals(row=Py_ssize_t, first=Py_ssize_t, place=Py_ssize_t, at=Py_ssize_t)
    cdef void _mark(self, Py_ssize_t dst, Py_ssize_t node) noexcept
    @cython.locals(trees=SpfTrees, tail=Py_ssize_t, slot=Py_ssize_t, dst=Py_ssize_t)
    cdef void _mark_users(self, Py_ssize_t arc) noexcept
    @cython.locals(
        trees=SpfTrees, n=Py_ssize_t, row=Py_ssize_t, depth=Py_ssize_t, node=Py_ssize_t, arc=Py_ssize_t, at=Py_ssize_t,
        total=cython.longlong,
    )
    cdef void _work_out(self, Py_ssize_t dst, Py_ssize_t src) noexcept
    @cython.locals(index=Py_ssize_t)
    cdef void restore(self) noexcept
    cdef long long percentile(self, Py_ssize_t percent) except *
