import cython
from router.core.forwarding.credit_pool cimport Claimant, CreditPool, total_weight
from router.core.forwarding.multicast_subscribers cimport MulticastSubscribers, Subscriber


cdef class TreeShare(Claimant):
    cdef public double passed
    cdef public Py_ssize_t failed
    cdef public Py_ssize_t uses
    cdef public Py_ssize_t recent

    cpdef object reckon(self)
    cpdef object take(self, Py_ssize_t credit)


cdef class SubscriberCreditPool(CreditPool):
    cdef public MulticastSubscribers local_subscribers
    cdef public dict parts
    cdef public bint is_closed
    cdef public bint is_touched
    cdef public dict moved
    cdef Py_ssize_t _backlogged
    cdef double _quiet_since
    cdef Py_ssize_t _changes
    cdef double _counted_at
    cdef double _deadline

    cpdef Py_ssize_t free(self)
    cpdef object holders(self)
    @cython.locals(part=TreeShare)
    cpdef list claimants(self)
    @cython.locals(part=TreeShare, by_weight=Py_ssize_t, use=Py_ssize_t, target=Py_ssize_t)
    cpdef Py_ssize_t target(self, Claimant claimant, Py_ssize_t total)
    cpdef object ask(self, Claimant claimant, double now)
    @cython.locals(part=TreeShare)
    cpdef TreeShare add(self, object ingress)
    @cython.locals(part=TreeShare)
    cpdef object remove(self, object ingress)
    @cython.locals(part=TreeShare, p=TreeShare)
    cpdef object set_weight(self, object ingress, Py_ssize_t weight)
    @cython.locals(part=TreeShare)
    cpdef object spend(self, object ingress, double now)
    @cython.locals(part=TreeShare)
    cpdef object give_back(self, object ingress)
    cdef _touch(self, TreeShare part)
    @cython.locals(part=TreeShare, answered=list)
    cpdef list turn(self, double now)
    @cython.locals(local_subscribers=MulticastSubscribers, is_withdrawn=bint)
    cdef _look(self, double now)
    @cython.locals(part=TreeShare, drawing=list, free=Py_ssize_t, held=Py_ssize_t, level=double)
    cdef _deal(self, double now)
    @cython.locals(subscriber=Subscriber, is_due=bint, answered=list)
    cdef list _answer_drains(self, double now)
    @cython.locals(due=double)
    cdef double _take_back(self, double now)
    @cython.locals(part=TreeShare, patience_s=double)
    cdef double _change_order(self, double now)
    cpdef double next_deadline(self)
