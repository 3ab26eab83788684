import cython
from router.core.forwarding.credit_scheduler cimport CreditScheduler
from router.core.forwarding.credit_actions cimport TellNeighborSubscribersWithdrew, Send
from router.core.forwarding.pool_toward_egress cimport PoolTowardEgress, IncomingCircuit
from router.core.forwarding.publisher_credit cimport Publisher, LocalPublishers


cdef class CreditPoolScheduler(CreditScheduler):
    cdef object _timing
    cdef public LocalPublishers publishers
    cdef public dict pools
    cdef list _free_numbers
    cdef public list candidates
    cdef bint _is_stopping
    cdef bint _is_lending
    cdef double _debt_since
    cdef public bint is_due
    cdef Py_ssize_t _unlent
    cdef Py_ssize_t _left_halves
    cdef double _rest_at
    cdef bint _is_satisfied
    cdef public bint is_steady

    @cython.locals(pool=PoolTowardEgress)
    cpdef bint has_enough(self)
    @cython.locals(pool=PoolTowardEgress, publishers=LocalPublishers)
    cpdef bint is_unused(self)
    @cython.locals(pool=PoolTowardEgress)
    cpdef Py_ssize_t allotted(self)
    cdef Py_ssize_t _count_unlent(self)
    @cython.locals(publishers=LocalPublishers, publisher=Publisher, pool=PoolTowardEgress, lent=Py_ssize_t, was_busy=bint, result=Py_ssize_t)
    cpdef Py_ssize_t published(self, object key, object message, double now, bint is_ready=*)
    @cython.locals(allotted=Py_ssize_t)
    cdef _look_after(self, Publisher publisher, PoolTowardEgress pool, double now)
    cdef bint _keep_published(self, object message)
    cpdef PoolTowardEgress pool(self, object egress)
    @cython.locals(pool=PoolTowardEgress, is_more=bint)
    cpdef bint set_capacity(self, object egress, Py_ssize_t credit, double now, Py_ssize_t returning=*, bint is_withdrawn=*)
    @cython.locals(pool=PoolTowardEgress, circuit=IncomingCircuit, result=Py_ssize_t)
    cpdef Py_ssize_t arrived(self, object root, object key, object message, double now, bint is_ready=*)
    cpdef object set_stopping(self, bint is_stopping)
    @cython.locals(pool=PoolTowardEgress)
    cpdef list turn(self, double now)
    @cython.locals(pool=PoolTowardEgress, publishers=LocalPublishers, room=Py_ssize_t, has_left=bint, has_own=bint)
    cdef _serve_waiting(self, double now)
    @cython.locals(pool=PoolTowardEgress)
    cpdef PoolTowardEgress next_pool(self, double now)
    cdef _spend_local(self, PoolTowardEgress pool, double now)
    @cython.locals(pool=PoolTowardEgress, demand=Py_ssize_t, nearer=Py_ssize_t)
    cdef _weigh(self, double now)
    cpdef bint is_wanted(self, PoolTowardEgress pool, Py_ssize_t nearer, Py_ssize_t demand, double now)
    cpdef bint is_missed(self, PoolTowardEgress pool)
    @cython.locals(pool=PoolTowardEgress)
    cpdef bint is_open(self)
    @cython.locals(allotted=Py_ssize_t)
    cdef bint _lend(self, double now)
    @cython.locals(pool=PoolTowardEgress, free=Py_ssize_t)
    cdef bint _owes_others(self)
    @cython.locals(pool=PoolTowardEgress)
    cdef double _take_back(self, double now)
    cdef _pay(self, PoolTowardEgress pool, double now)
    cdef double _back(self, double now)
