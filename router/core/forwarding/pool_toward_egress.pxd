import cython
from router.core.forwarding.credit_pool cimport Claimant, CreditPool, total_weight
from router.core.forwarding.egress_load cimport EgressLoad, LoadToldToNeighbor
from router.core.forwarding.fair_queue cimport FairQueue
from router.core.forwarding.credit_actions cimport (
    TellNeighborSubscribersWithdrew, DrainCircuit, GrantCircuit, ReturnCredit, Send, TellWeight
)


cdef Py_ssize_t UNREACHABLE, AWAITED, OPEN, CLOSED


cdef class IncomingCircuit(Claimant):
    cdef public object neighbor
    cdef public LoadToldToNeighbor report
    cdef public Py_ssize_t neighbor_weight
    cdef public bint was_told_closed
    cdef public double answer_due
    cdef public Py_ssize_t unreturned
    cdef public Py_ssize_t late


cdef class PartlyArrivedMessage:
    cdef public IncomingCircuit circuit
    cdef public double since
    cdef public bint is_late


cdef class PoolTowardEgress(CreditPool):
    cdef public object egress
    cdef public Py_ssize_t number
    cdef list _actions
    cdef public Py_ssize_t state
    cdef public Py_ssize_t cost
    cdef public object next_hop
    cdef public bint is_at_egress
    cdef public dict circuits
    cdef public Claimant local
    cdef public object core
    cdef public dict coming
    cdef public Py_ssize_t late
    cdef double _late_at
    cdef public FairQueue uncredited
    cdef public Claimant unbacked
    cdef public bint opens_early
    cdef public Py_ssize_t told_weight
    cdef public Py_ssize_t turns
    cdef public EgressLoad load
    cdef public double distance
    cdef public double wanted_until
    cdef public bint is_missed
    cdef public dict asked

    @cython.locals(circuit=IncomingCircuit)
    cpdef object drained(self, object key, Py_ssize_t credit)
    @cython.locals(circuit=IncomingCircuit)
    cpdef object expect_answers(self, double now)
    @cython.locals(message=PartlyArrivedMessage, due=double)
    cpdef object expect_wholes(self, double now)
    @cython.locals(unfinished=PartlyArrivedMessage)
    cdef _forget_coming(self, object message)
    cpdef object recall(self, IncomingCircuit circuit, double now)
    @cython.locals(dealt=Py_ssize_t)
    cpdef Py_ssize_t free(self)
    cpdef object holders(self)
    cpdef object ask(self, Claimant claimant, double now)
    cpdef bint lets_lend(self, bint is_lending)
    cpdef object enter(self, object event)
    cpdef object set_capacity(self, Py_ssize_t credit, Py_ssize_t returning, double now, bint is_withdrawn)
    @cython.locals(circuit=IncomingCircuit)
    cpdef Py_ssize_t arrived(self, object key, object message, double now, bint is_ready=*)
    cpdef bint drop(self, object message)
    cpdef object set_weight(self, Claimant claimant, Py_ssize_t weight)
    cpdef object spend(self, double now)
    cpdef object choose(self, double now)
    cpdef bint pass_over(self, bint is_better, double now)
    cpdef object take_turn(self, Py_ssize_t least)
    @cython.locals(c=IncomingCircuit, found=list)
    cpdef list claimants(self)
    cpdef object serve_core(self, double now)
    cpdef object add_uncredited(self, object message, object client)
    cdef _weigh_uncredited(self)
    cpdef object serve_uncredited(self, bint is_contended, double now)
    cpdef object deal(self, Py_ssize_t waiting, double now)
    @cython.locals(claimant=Claimant, total=Py_ssize_t, out=Py_ssize_t, credit=Py_ssize_t, level=double, is_left=bint)
    cdef _deal(self, list claimants, Py_ssize_t free, double now)
    @cython.locals(window=Py_ssize_t)
    cpdef Py_ssize_t target(self, Claimant claimant, Py_ssize_t total)
    @cython.locals(target=Py_ssize_t)
    cdef bint _is_worth(self, Claimant claimant, Py_ssize_t credit, Py_ssize_t total, Py_ssize_t out)
    cpdef bint starves_circuits(self)
    cpdef bint has_busy_neighbors(self)
    cpdef Py_ssize_t return_unlent(self, Py_ssize_t unlent, double now)
    @cython.locals(c=IncomingCircuit)
    cpdef double drain_idle(self, double now)
    @cython.locals(c=IncomingCircuit, much=Py_ssize_t)
    cpdef double drain_unneeded(self, double now)
    cpdef object answer_drain(self, double now)
    cpdef object close_if_withdrawn(self, double now)
    @cython.locals(circuit=IncomingCircuit, weight=Py_ssize_t, told=Py_ssize_t)
    cpdef object tell_weight(self)
    @cython.locals(circuit=IncomingCircuit, due=double)
    cpdef double next_deadline(self)
