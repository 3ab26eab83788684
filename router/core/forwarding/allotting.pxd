import cython
from router.core.forwarding.load cimport Load
from router.core.forwarding.orders cimport Machine, Orders
from router.core.forwarding.pools cimport Circuit, Pool
from router.core.forwarding.publishers cimport Publisher, Publishers


cdef class Allotting(Machine):
    cdef Orders _orders
    cdef object _timing
    cdef bint _is_closest
    cdef double _distance
    cdef public Publishers publishers
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

    @cython.locals(pool=Pool)
    cpdef bint has_enough(self)
    @cython.locals(pool=Pool, publishers=Publishers)
    cpdef bint is_unused(self)
    @cython.locals(pool=Pool)
    cpdef Py_ssize_t allotted(self)
    @cython.locals(publisher=Publisher, pool=Pool, lent=Py_ssize_t, was_busy=bint, is_kept=bint)
    cpdef bint published(self, object key, object message, double now, bint is_ready=*)
    @cython.locals(allotted=Py_ssize_t)
    cdef _look_after(self, Publisher publisher, double now)
    cdef bint _keep_published(self, object message)
    cpdef bint set_capacity(self, object egress, Py_ssize_t credit, double now, Py_ssize_t returning=*, bint is_withdrawn=*)
    @cython.locals(pool=Pool, circuit=Circuit)
    cpdef bint arrived(self, object egress, object key, object message, double now, bint is_ready=*)
    @cython.locals(pool=Pool)
    cpdef object turn(self, double now)
    cpdef double next_deadline(self)
    @cython.locals(pool=Pool, only=Pool)
    cdef _serve_waiting(self, double now)
    @cython.locals(pool=Pool, chosen=Pool, able=list, least=double, wait=double, latest=Py_ssize_t)
    cdef Pool _choose(self, double now)
    @cython.locals(pool=Pool, chosen=Pool, most=Py_ssize_t)
    cdef Pool _next_in_turn(self, list able)
    cdef _send_local(self, Pool pool, object message, double now)
    @cython.locals(pool=Pool, demand=Py_ssize_t, nearer=Py_ssize_t, is_wanted=bint)
    cdef _weigh(self, double now)
    @cython.locals(pool=Pool, is_awaited=bint)
    cdef bint _has_opened(self)
    cdef bint _lend(self, double now)
    @cython.locals(pool=Pool)
    cdef double _take_back(self, double now)
    cdef bint _is_missed(self, Pool pool)
    cdef _pay(self, Pool pool, double now)
    cdef double _back(self, double now)
