import cython

from router.whatif.kernel.c_arrays cimport FAR, NONE, array, bytes_of, ints, longs
from router.whatif.kernel.graph cimport Graph
from router.whatif.kernel.spf_trees cimport SpfTrees


cdef class LinkLoads:
    cdef SpfTrees trees
    cdef readonly Py_ssize_t lanes
    cdef array _flows, _numbers, _base_numbers, _carried, _base_carried
    cdef int* numbers
    cdef int* base_numbers
    cdef long long* flows
    cdef long long* carried
    cdef long long* base_carried
    cdef readonly long long lost_rate, lost_bytes, base_lost_rate, base_lost_bytes
    cdef array _is_sought, _changes, _next_changes, _destinations, _is_changed, _moved, _order, _new_slots
    cdef signed char* is_sought
    cdef int* changes
    cdef int* next_changes
    cdef int* destinations
    cdef signed char* is_changed
    cdef long long* moved
    cdef long long* order
    cdef int* new_slots

    cpdef expect(self, Py_ssize_t count)
    @cython.locals(pair=Py_ssize_t, lane=Py_ssize_t)
    cdef _make_lanes(self, Py_ssize_t lanes)
    @cython.locals(graph=Graph, arc=Py_ssize_t, back=Py_ssize_t)
    cdef void _number_lanes(self, Py_ssize_t pair) noexcept
    cdef _make_scratch(self, Py_ssize_t n)
    @cython.locals(at=Py_ssize_t)
    cdef void demand(self, Py_ssize_t src, Py_ssize_t dst, long long rate, long long size) noexcept
    @cython.locals(dst=Py_ssize_t, place=Py_ssize_t)
    cdef void settle(self) noexcept
    @cython.locals(
        trees=SpfTrees, n=Py_ssize_t, incoming=cython.p_int, ready=cython.p_int, node=Py_ssize_t, slot=Py_ssize_t,
        count=Py_ssize_t, arc=Py_ssize_t, head=Py_ssize_t, at=Py_ssize_t,
    )
    cdef void _gather(self, Py_ssize_t dst) noexcept
    cdef inline void _carry(self, Py_ssize_t arc, long long rate, long long size) noexcept
    @cython.locals(trees=SpfTrees, index=Py_ssize_t, count=Py_ssize_t, dst=Py_ssize_t)
    cdef void shift(self) noexcept
    @cython.locals(
        trees=SpfTrees, n=Py_ssize_t, count=Py_ssize_t, change=Py_ssize_t, node=Py_ssize_t, at=Py_ssize_t,
        index=Py_ssize_t, distance=cython.longlong,
    )
    cdef void _shift_toward(self, Py_ssize_t dst) noexcept
    @cython.locals(trees=SpfTrees, row=Py_ssize_t, arc=Py_ssize_t, rate=cython.longlong, size=cython.longlong)
    cdef inline void _take_away(self, Py_ssize_t dst, Py_ssize_t node) noexcept
    @cython.locals(
        trees=SpfTrees, row=Py_ssize_t, arc=Py_ssize_t, slot=Py_ssize_t, rate=cython.longlong, size=cython.longlong
    )
    cdef inline void _put(self, Py_ssize_t dst, Py_ssize_t node) noexcept
    @cython.locals(trees=SpfTrees, n=Py_ssize_t, node=Py_ssize_t, arc=Py_ssize_t)
    cdef void move(self, Py_ssize_t src, Py_ssize_t dst, long long rate, long long size) noexcept
    cdef void carry(self, Py_ssize_t arc, long long rate, long long size) noexcept
    cdef void lose(self, long long rate, long long size) noexcept
    cdef void finish(self) noexcept
    @cython.locals(place=Py_ssize_t)
    cdef void restore(self) noexcept
    @cython.locals(graph=Graph, index=Py_ssize_t, arc=Py_ssize_t)
    cdef void _restore_numbers(self) noexcept

@cython.locals(gap=Py_ssize_t, index=Py_ssize_t, place=Py_ssize_t, key=cython.longlong)
cdef void sort_keys(long long* keys, Py_ssize_t count) noexcept
