import cython

from router.simulation.whatif.arrays cimport CAUSES, NONE, array, ints, longs
from router.simulation.whatif.kernel cimport Kernel
from router.simulation.whatif.trees cimport Trees


@cython.final
cdef class Worst:
    cdef readonly Kernel kernel
    cdef readonly int links
    cdef array _counts, _floors, _causes
    cdef int* counts
    cdef long long* floors
    cdef long long* causes

    @cython.locals(number=int)
    cpdef clear(self)
    @cython.locals(trees=Trees, carried=cython.p_longlong, tail=int, arc=int, link=int, number=int)
    cpdef offer(self, long long scenario)
    @cython.locals(first=Py_ssize_t, place=int, at=Py_ssize_t, index=int)
    cdef void _insert(self, int number, long long rate, long long size, long long scenario) noexcept
