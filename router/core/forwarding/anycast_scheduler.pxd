import cython
from router.core.forwarding.egress_load cimport EgressLoad
from router.core.forwarding.egress_credit_pool cimport EgressCreditPool
from router.core.forwarding.credit_pool_scheduler cimport CreditPoolScheduler


cdef class AnycastScheduler(CreditPoolScheduler):
    cdef bint _is_closest
    cdef double _distance

    cpdef EgressCreditPool next_pool(self, double now)
    @cython.locals(pool=EgressCreditPool, chosen=EgressCreditPool, able=list, least=double, wait=double, latest=Py_ssize_t)
    cdef EgressCreditPool _choose(self, double now)
    @cython.locals(pool=EgressCreditPool, chosen=EgressCreditPool, most=Py_ssize_t)
    cdef EgressCreditPool _next_in_turn(self, list able)
    cpdef bint is_wanted(self, EgressCreditPool pool, Py_ssize_t nearer, Py_ssize_t demand, double now)
    cpdef bint is_missed(self, EgressCreditPool pool)
