import cython
from router.core.forwarding.egress_load cimport EgressLoad
from router.core.forwarding.egress_pool cimport EgressPool
from router.core.forwarding.pool_scheduler cimport PoolScheduler


cdef class AnycastScheduler(PoolScheduler):
    cdef bint _is_closest
    cdef double _distance

    cpdef EgressPool next_pool(self, double now)
    @cython.locals(pool=EgressPool, chosen=EgressPool, able=list, least=double, wait=double, latest=Py_ssize_t)
    cdef EgressPool _choose(self, double now)
    @cython.locals(pool=EgressPool, chosen=EgressPool, most=Py_ssize_t)
    cdef EgressPool _next_in_turn(self, list able)
    cpdef bint is_wanted(self, EgressPool pool, Py_ssize_t nearer, Py_ssize_t demand, double now)
    cpdef bint is_missed(self, EgressPool pool)
