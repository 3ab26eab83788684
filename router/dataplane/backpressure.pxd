import cython

from router.binding.proton_functions cimport *
from router.core.forwarding.timer_queue cimport TimerQueue
from router.dataplane.arrival_progress cimport ArrivalProgress
from router.dataplane.links cimport EgressLink, IngressCircuitLink, IngressLink, SubscriberLink, Transfer
from router.dataplane.message_sender cimport MessageSender
from router.dataplane.connection_port cimport Port
from router.dataplane.unfinished_deliveries cimport UnfinishedDeliveries
from router.dataplane.transfer_stages cimport *
from router.dataplane.waiting_messages cimport WaitingMessages


cdef class IngressBackpressure:
    cdef WaitingMessages _waiting
    cdef MessageSender _egress
    cdef UnfinishedDeliveries _unfinished
    cdef public dict unread
    cdef public dict slowed
    cdef dict _queues
    cdef TimerQueue _rates
    cdef public double slowed_due
    cdef dict _alone
    cdef Py_ssize_t _left

    cpdef object pause(self, IngressLink link, double now)
    @cython.locals(alone=dict)
    cpdef object forget(self, IngressLink link)
    cpdef object begin_turn(self)
    @cython.locals(unread=dict)
    cpdef dict take_unread(self)
    cpdef bint postpone_if_turn_is_full(self, IngressLink link) except -1
    cpdef object postpone(self, IngressLink link, double now)
    cpdef bint count_read(self, IngressLink link, Py_ssize_t count, double now) except -1
    @cython.locals(wait_s=double)
    cpdef bint pause_for_rate(self, IngressLink link, double now) except -1
    cdef _wait_for(self, IngressLink link, object bound, double at)
    cdef _leave_rate(self, IngressLink link)
    @cython.locals(link=IngressLink, wait_s=double)
    cpdef IngressLink take_slowed(self, double now)
    @cython.locals(sibling=IngressLink)
    cpdef object watch(self, IngressLink link, Py_ssize_t received, double now)
    cpdef bint has_to_wait(self, IngressLink link) except -1
    @cython.locals(egress=EgressLink)
    cdef bint _must_wait(self, IngressLink link, Transfer transfer) except -1
    @cython.locals(is_over=bint)
    cpdef bint pause_in_message(self, IngressLink link, Transfer transfer, double now) except -1
    cdef object _resume_with_sibling(self, IngressLink link)
    @cython.locals(port=Port, asking=Transfer)
    cpdef bint pause_before_message(self, IngressLink link) except -1
    cdef bint _is_large(self, Transfer transfer) except -1
