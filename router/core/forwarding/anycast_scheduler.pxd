import cython
from router.core.forwarding.egress_load cimport EgressLoad
from router.core.forwarding.credit_scheduler cimport CreditScheduler
from router.core.forwarding.credit_actions cimport CloseCircuit, Send
from router.core.forwarding.egress_pool cimport EgressPool, IncomingCircuit
from router.core.forwarding.publisher_credit cimport Publisher, LocalPublishers


cdef class AnycastScheduler(CreditScheduler):
    cdef object _timing
    cdef bint _is_closest
    cdef double _distance
    cdef public LocalPublishers publishers
    cdef public dict pools
    cdef list _candidates
    cdef public bint is_stopping
    cdef bint _is_lending
    cdef double _debt_since
    cdef double _deadline
    cdef public bint is_due
    cdef Py_ssize_t _unlent
    cdef bint _is_sated
    cdef bint _is_calm

    @cython.locals(pool=EgressPool)
    cpdef bint has_enough(self)
    @cython.locals(pool=EgressPool, publishers=LocalPublishers)
    cpdef bint is_unused(self)
    @cython.locals(pool=EgressPool)
    cpdef Py_ssize_t allotted(self)
    @cython.locals(publishers=LocalPublishers, publisher=Publisher, pool=EgressPool, lent=Py_ssize_t, was_busy=bint, result=Py_ssize_t)
    cpdef Py_ssize_t published(self, object key, object message, double now, bint is_ready=*)
    @cython.locals(allotted=Py_ssize_t)
    cdef _look_after(self, Publisher publisher, double now)
    cdef bint _keep_published(self, object message)
    cpdef bint set_capacity(self, object egress, Py_ssize_t credit, double now, Py_ssize_t returning=*, bint is_withdrawn=*)
    @cython.locals(pool=EgressPool, circuit=IncomingCircuit, result=Py_ssize_t)
    cpdef Py_ssize_t arrived(self, object root, object key, object message, double now, bint is_ready=*)
    @cython.locals(pool=EgressPool)
    cpdef list turn(self, double now)
    cpdef double next_deadline(self)
    @cython.locals(pool=EgressPool)
    cdef _serve_waiting(self, double now)
    @cython.locals(pool=EgressPool)
    cdef EgressPool _next_pool(self, double now)
    @cython.locals(pool=EgressPool, chosen=EgressPool, able=list, least=double, wait=double, latest=Py_ssize_t)
    cdef EgressPool _choose(self, double now)
    @cython.locals(pool=EgressPool, chosen=EgressPool, most=Py_ssize_t)
    cdef EgressPool _next_in_turn(self, list able)
    cdef _spend_local(self, EgressPool pool, double now)
    @cython.locals(pool=EgressPool, demand=Py_ssize_t, nearer=Py_ssize_t, is_wanted=bint)
    cdef _weigh(self, double now)
    @cython.locals(pool=EgressPool)
    cdef bint _has_opened(self)
    cdef bint _lend(self, double now)
    @cython.locals(pool=EgressPool)
    cdef double _take_back(self, double now)
    cdef bint _is_missed(self, EgressPool pool)
    cdef _pay(self, EgressPool pool, double now)
    cdef double _back(self, double now)
