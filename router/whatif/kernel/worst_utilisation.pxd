import cython

from router.whatif.kernel.c_arrays cimport CAUSES, NONE, array, doubles, ints, longs
from router.whatif.kernel.link_loads cimport LinkLoads
from router.whatif.kernel.mesh_kernel cimport Kernel


@cython.final
cdef class WorstUtilisations:
    cdef readonly Kernel kernel
    cdef readonly Py_ssize_t links
    cdef array _counts, _bases, _floors, _shares, _causes
    cdef int* counts
    cdef long long* bases
    cdef double* floors
    cdef double* shares
    cdef long long* causes

    @cython.locals(number=Py_ssize_t)
    cpdef clear(self)
    @cython.locals(
        traffic=LinkLoads, carried=cython.p_longlong, lane=Py_ssize_t, number=Py_ssize_t, rate=cython.longlong,
        size=cython.longlong, share=double,
    )
    cpdef offer(self, long long scenario)
    @cython.locals(first=Py_ssize_t, place=Py_ssize_t, at=Py_ssize_t, index=Py_ssize_t)
    cdef void _insert(
        self, Py_ssize_t number, double share, long long rate, long long size, long long scenario
    ) noexcept
    cdef bint _is_before(self, double share, long long scenario, Py_ssize_t at) noexcept
