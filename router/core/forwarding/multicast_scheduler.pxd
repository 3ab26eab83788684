import cython
from router.core.forwarding.credit_actions cimport ReturnCredit
from router.core.forwarding.credit_scheduler cimport CreditScheduler
from router.core.forwarding.multicast_subscribers cimport MulticastSubscribers
from router.core.forwarding.multicast_tree cimport MulticastTree
from router.core.forwarding.subscriber_credit_pool cimport SubscriberCreditPool
from router.core.forwarding.timer_queue cimport TimerQueue


cdef class MulticastScheduler(CreditScheduler):
    cdef object _me
    cdef object _timing
    cdef public MulticastSubscribers local_subscribers
    cdef public SubscriberCreditPool share
    cdef public dict trees
    cdef Py_ssize_t _number
    cdef dict _stirred
    cdef dict _coming
    cdef TimerQueue _timers
    cdef tuple _seen

    cpdef Py_ssize_t published(self, object key, object message, double now, bint is_ready=*)
    @cython.locals(tree=MulticastTree)
    cpdef bint ready(self, object message)
    cdef bint _keep_published(self, object message)
    @cython.locals(tree=MulticastTree, coming=MulticastTree)
    cpdef bint drop(self, object message)
    cdef list _lost(self)
    cdef bint _has_child(self, object ingress, object neighbor)
    @cython.locals(tree=MulticastTree)
    cpdef Py_ssize_t arrived(self, object root, object key, object message, double now, bint is_ready=*)
    cpdef bint is_upstream(self, object ingress, object key)
    cdef _add_tree(self, object ingress)
    cdef MulticastTree _touched(self, object ingress)
    cdef _forget_idle(self)
    cpdef object set_stopping(self, bint is_stopping)
    @cython.locals(tree=MulticastTree, turned=list)
    cpdef list turn(self, double now)
    cdef _turn_share(self, double now)
    @cython.locals(is_forgotten_next=bint)
    cdef _turn_tree(self, MulticastTree tree, double now)
