import cython

from router.binding.proton_functions cimport *
from router.core.forwarding.fib cimport AddressEntry
from router.core.forwarding.credit_actions cimport (
    TellNeighborSubscribersWithdrew, CreditAction, DrainCircuit, Grant, GrantCircuit
)
from router.core.forwarding.credit_scheduler cimport CreditScheduler
from router.dataplane.controller_context cimport ControllerContext
from router.dataplane.links cimport EgressCircuitLink, EgressLink, IngressCircuitLink, IngressLink
from router.dataplane.connection_port cimport Port
from router.dataplane.links cimport PublisherLink, SubscriberLink, Transfer, local_subscribers
from router.dataplane.transfer_lifecycle cimport advance
from router.dataplane.transfer_stages cimport *


cdef class CreditController:
    cdef public CreditScheduler machine
    cdef public AddressEntry entry
    cdef public ControllerContext _context
    cdef public str _me
    cdef public str _address
    cdef public dict own
    cdef public dict windowed
    cdef public double deadline
    cdef public double _links_deadline
    cdef public bint _is_due
    cdef bint _is_acting
    cdef public dict _changed
    cdef public list _fresh
    cdef public dict _beside
    cdef Py_ssize_t _looked_in
    cdef object _looked_at
    cdef public Py_ssize_t _withdrawn_count

    cpdef bint is_idle(self)
    cpdef object touch(self, EgressLink link=*)
    cpdef object flowed(self, EgressLink link)
    cpdef bint keeps_waiting(self) except -1
    cpdef object returned(self, IngressCircuitLink link)
    cpdef object begin(self, IngressLink link, Transfer transfer, bytes data)
    @cython.locals(link=IngressLink, is_ready=bint)
    cpdef object take(self, Transfer transfer)
    @cython.locals(machine=CreditScheduler, circuit=IngressCircuitLink, is_behind=bint, is_kept=bint, result=Py_ssize_t)
    cdef _take_new(self, Transfer transfer, IngressLink link, bint is_ready)
    cdef _keep(self, Transfer transfer, bint is_kept, bint is_ready)
    @cython.locals(link=SubscriberLink, beside=dict)
    cdef _look_beside(self, Port port)
    cpdef object _sent_at_once(self)
    cpdef bint _is_ready(self, Transfer transfer)
    cpdef object drop(self, Transfer transfer)
    @cython.locals(actions=list)
    cpdef object turn(self, double now)
    cpdef object look_again(self)
    cpdef double next_deadline(self)
    @cython.locals(link=IngressLink, is_own=bint)
    cdef _let_wait(self, Transfer transfer, bint is_credited)
    cpdef bint _restate(self, double now)
    @cython.locals(beside=dict, unspent=Py_ssize_t, is_withdrawn=bint)
    cdef _see_withdrawal(self, SubscriberLink link)
    cpdef Py_ssize_t lendable(self, SubscriberLink link)
    cdef Py_ssize_t _measure_lendable(self, SubscriberLink link)
    @cython.locals(credit=Py_ssize_t)
    cdef Py_ssize_t _measure(self, EgressLink link)
    @cython.locals(link=EgressCircuitLink, due=double)
    cdef double _end_idle_circuits(self, double now)
    @cython.locals(was_acting=bint)
    cdef _carry_out(self, list actions)
    cpdef object _act(self, CreditAction action)
    cpdef object send(self, Transfer transfer, object egress)
    @cython.locals(handle=size_t, left=Py_ssize_t, taken=Py_ssize_t, kept=Py_ssize_t)
    cpdef object grant(self, PublisherLink link, Py_ssize_t credit)
    cpdef object grant_circuit(self, IngressCircuitLink circuit, Py_ssize_t credit)
    cpdef object give_back(self, EgressLink link)
