import cython
from router.core.forwarding.egress_load cimport EgressLoad
from router.core.forwarding.pool_toward_egress cimport PoolTowardEgress
from router.core.forwarding.credit_pool_scheduler cimport CreditPoolScheduler


cdef class AnycastScheduler(CreditPoolScheduler):
    cdef bint _is_closest
    cdef double _distance
    cdef list _seen_loads
    cdef double _moved_at

    cpdef PoolTowardEgress next_pool(self, double now)
    @cython.locals(pool=PoolTowardEgress, chosen=PoolTowardEgress, able=list, least=double, wait=double, latest=Py_ssize_t)
    cdef PoolTowardEgress _choose(self, double now)
    @cython.locals(pool=PoolTowardEgress, chosen=PoolTowardEgress, most=Py_ssize_t)
    cdef PoolTowardEgress _next_in_turn(self, list able)
    cpdef bint is_wanted(self, PoolTowardEgress pool, Py_ssize_t nearer, Py_ssize_t demand, double now)
    cpdef bint is_missed(self, PoolTowardEgress pool)
