import cython

from router.binding.proton_functions cimport *
from router.core.forwarding.fib cimport AddressEntry
from router.core.forwarding.timer_queue cimport TimerQueue
from router.dataplane.credit_controller cimport CreditController
from router.dataplane.anycast_controller cimport AnycastController
from router.dataplane.controller_context cimport ControllerContext
from router.dataplane.links cimport EgressCircuitLink, SubscriberLink, Transfer


cdef class CreditManager(ControllerContext):
    cdef public set rerouted
    cdef public bint is_replanted
    cdef public bint is_stopping
    cdef public dict _controllers
    cdef public TimerQueue _timers

    @cython.locals(controller=CreditController)
    cpdef CreditController of(self, AddressEntry entry)
    @cython.locals(controller=CreditController)
    cdef CreditController _make(self, AddressEntry entry)
    cpdef CreditController find(self, AddressEntry entry)
    cpdef object used_by_copies(self, AddressEntry entry)
    cpdef object freed(self)
    cpdef bint is_due(self)
    @cython.locals(due=double, other=double)
    cpdef double next_deadline(self)
    @cython.locals(controller=CreditController, due=double)
    cpdef object look_at_timers(self, double now)
    cdef bint _must_be_written(self, EgressCircuitLink link) except -1
    @cython.locals(controller=CreditController, touched=dict)
    cpdef object turn(self)
    cpdef object expired(self, Transfer transfer)
    @cython.locals(due=double)
    cdef _turn(self, CreditController controller)
