import cython

from router.binding.proton_functions cimport *
from router.core.forwarding.anycast_scheduler cimport AnycastScheduler
from router.core.forwarding.credit_actions cimport CreditAction, ReturnCredit, Send, TellWeight
from router.core.forwarding.egress_load cimport EgressLoad
from router.dataplane.credit_controller cimport CreditController
from router.dataplane.links cimport EgressCircuitLink, EgressLink, IngressCircuitLink, IngressLink
from router.dataplane.links cimport PublisherLink, SubscriberLink, Transfer
from router.dataplane.transfer_lifecycle cimport advance
from router.dataplane.transfer_stages cimport *


cdef class AnycastController(CreditController):
    cdef public AnycastScheduler _scheduler
    cdef public bint is_reply
    cdef public bint is_closest
    cdef SubscriberLink _chosen
    cdef public dict first
    cdef public bint _is_reached
    cdef public dict second
    cdef public dict _connections
    cdef public dict _draining
    cdef public Py_ssize_t _local_credit
    cdef public object _able
    cdef public EgressLoad local_load
    cdef bint _has_choice
    cdef double _reports_due

    cpdef bint is_idle(self)
    @cython.locals(is_more=bint, subscriber=SubscriberLink, credit=Py_ssize_t)
    cpdef object flowed(self, EgressLink link)
    @cython.locals(link=IngressLink)
    cpdef object take(self, Transfer transfer)
    cpdef object _sent_at_once(self)
    @cython.locals(link=IngressLink, circuit=IngressCircuitLink)
    cpdef bint _is_ready(self, Transfer transfer)
    cdef _count_load(self, EgressLink link, EgressLoad load)
    cpdef object turn(self, double now)
    cdef double _report_loads(self, double now)
    cpdef double next_deadline(self)
    @cython.locals(machine=AnycastScheduler, link=EgressLink, circuit=EgressCircuitLink, load=EgressLoad, is_local=bint, is_due=bint, credit=Py_ssize_t, returning=Py_ssize_t, room=Py_ssize_t)
    cpdef bint _restate(self, double now)
    @cython.locals(credit=Py_ssize_t)
    cdef _restate_subscriber(self, SubscriberLink link)
    cdef _set_able(self, SubscriberLink link, bint is_able)
    cpdef object _act(self, CreditAction action)
    @cython.locals(link=EgressLink, subscriber=SubscriberLink)
    cpdef object send(self, Transfer transfer, object egress)
    @cython.locals(link=SubscriberLink, chosen=SubscriberLink, first=SubscriberLink, idle=dict)
    cdef SubscriberLink _choose_subscriber(self)
    @cython.locals(link=SubscriberLink)
    cpdef SubscriberLink next_subscriber(self)
    cpdef object sent_uncredited(self, SubscriberLink link)
