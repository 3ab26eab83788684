import cython
from router.core.forwarding.credit_actions cimport (
    CreditAction, GrantCircuit, ReturnCredit, Send, TellNeighborSubscribersWithdrew, TellWeight
)
from router.core.forwarding.credit_pool_scheduler cimport CreditPoolScheduler
from router.core.forwarding.multicast_subscribers cimport MulticastSubscribers
from router.core.forwarding.pool_toward_egress cimport IncomingCircuit, PoolTowardEgress
from router.core.forwarding.publisher_credit cimport LocalPublishers
from router.core.forwarding.subscriber_credit_pool cimport SubscriberCreditPool, TreeShare
from router.core.forwarding.tree_branch cimport TreeBranch


cdef class MulticastTree:
    cdef public object ingress
    cdef list _actions
    cdef SubscriberCreditPool _share
    cdef TreeShare _part
    cdef MulticastSubscribers _subscribers
    cdef public Py_ssize_t number
    cdef object _timing
    cdef public CreditPoolScheduler machine
    cdef public PoolTowardEgress pool
    cdef public dict children
    cdef list _live
    cdef list _excluded
    cdef list _holding
    cdef public dict _former
    cdef tuple _seen
    cdef public object predecessor
    cdef public Py_ssize_t weight
    cdef Py_ssize_t _busy
    cdef double _backlogged_until
    cdef public bint is_due

    cdef tuple _see(self)
    @cython.locals(branch=TreeBranch)
    cdef _count(self)
    @cython.locals(branch=TreeBranch)
    cdef _pass_on(self, list actions, double now)
    @cython.locals(branch=TreeBranch)
    cdef _send(self, object message, double now)
    cdef _return(self, TreeBranch branch)
    @cython.locals(former=TreeBranch)
    cdef TreeBranch _branch(self, object neighbor)
    cpdef bint is_upstream(self, object key)
    @cython.locals(branch=TreeBranch, circuit=IncomingCircuit, weight=Py_ssize_t)
    cpdef object turn(self, double now)
    @cython.locals(branch=TreeBranch, is_waited_for=bint, holding=list)
    cdef _note_holds(self, double now)
    @cython.locals(branch=TreeBranch)
    cdef _judge_branches(self, double now)
    cdef _exclude(self, TreeBranch branch, double now)
    @cython.locals(branch=TreeBranch)
    cdef double _holds_due(self)
    cdef _weigh(self, double now)
    @cython.locals(weight=Py_ssize_t)
    cdef _look_after(self, IncomingCircuit circuit, double now)
    cdef _recall(self, IncomingCircuit circuit, double now)
    @cython.locals(branch=TreeBranch, capacity=Py_ssize_t, is_asked=bint)
    cdef _restate(self, double now)
    cdef _close(self, double now)
    @cython.locals(branch=TreeBranch, pool=PoolTowardEgress, publishers=LocalPublishers, is_lent=bint, is_unused=bint)
    cdef _answer_drains(self)
    @cython.locals(due=double)
    cpdef double next_deadline(self)
