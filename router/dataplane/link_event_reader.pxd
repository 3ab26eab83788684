import cython

from router.binding.proton_functions cimport *
from router.dataplane.backpressure cimport IngressBackpressure
from router.dataplane.credit_controller cimport CreditController
from router.dataplane.credit_manager cimport CreditManager
from router.dataplane.data_plane cimport LinkEventHandler
from router.dataplane.message_sender cimport MessageSender
from router.dataplane.message_forwarder cimport Forwarder
from router.dataplane.links cimport EgressCircuitLink, EgressLink, EgressLargeMessagesLink, IngressCircuitLink, IngressLink
from router.dataplane.links cimport Transfer, new_transfer
from router.dataplane.arrival_progress cimport ArrivalProgress
from router.dataplane.sender_violations cimport ViolatingLinks
from router.dataplane.settlement cimport Settlement
from router.dataplane.unfinished_deliveries cimport UnfinishedDeliveries
from router.dataplane.waiting_messages cimport WaitingMessages
from router.dataplane.transfer_stages cimport *
from router.dataplane.turn_clock cimport TurnClock

cdef Py_ssize_t PART_BYTES
cdef Py_ssize_t TAG_BYTES


cdef class LinkEventReader(LinkEventHandler):
    cdef TurnClock _clock
    cdef Settlement _settlement
    cdef WaitingMessages _waiting
    cdef MessageSender _egress
    cdef Forwarder _forwarder
    cdef CreditManager _credit_manager
    cdef UnfinishedDeliveries _unfinished
    cdef public IngressBackpressure backpressure
    cdef public ViolatingLinks violations
    cdef bint _is_resuming
    cdef bint _is_ending
    cdef object _faults

    cpdef Py_ssize_t sent(self) except? -1
    @cython.locals(event=size_t, delivery=size_t, kind=int, egress=EgressLink, credit=Py_ssize_t)
    cdef size_t _pump(self, size_t collector) except? 0
    cpdef size_t pump(self, size_t collector) except? 0
    @cython.locals(controller=CreditController)
    cdef _returned(self, IngressCircuitLink link)
    @cython.locals(was_busy=bint)
    cdef _disposed(self, EgressLink link, size_t delivery)
    @cython.locals(transfer=Transfer)
    cdef _arrived(self, IngressLink link, size_t delivery)
    @cython.locals(was_resuming=bint)
    cpdef object resume(self, IngressLink link)
    cpdef object resume_safely(self, IngressLink link)
    @cython.locals(link=IngressLink)
    cpdef object go_on(self)
    @cython.locals(delivery=size_t)
    cpdef object end(self, IngressLink link)
    cdef bint _count_read(self, IngressLink link, Py_ssize_t count) except -1
    @cython.locals(delivery=size_t, is_bounded=bint)
    cpdef object read(self, IngressLink link)
    @cython.locals(link=IngressLink)
    cpdef object resume_slowed(self, double now)
    @cython.locals(transfer=Transfer, pending=Py_ssize_t, has_moved_on=bint)
    cdef bint _take_limited(self, IngressLink link, size_t delivery) except -1
    cdef _count(self, IngressLink link, Py_ssize_t received, Py_ssize_t unread)
    @cython.locals(transfer=Transfer, pending=Py_ssize_t, is_complete=bint, data=bytes)
    cdef bint _take(self, IngressLink link, size_t delivery) except -1
    @cython.locals(controller=CreditController, forwarder=Forwarder, is_first=bint)
    cdef _pass_on(self, IngressLink link, Transfer transfer, bytes data)
    @cython.locals(transfer=Transfer)
    cdef Transfer _begin(self, IngressLink link, size_t delivery)
    @cython.locals(tag=bytes)
    cdef _read_number(self, Transfer transfer, size_t delivery)
    cdef _complete(self, IngressLink link, Transfer transfer, size_t delivery)
    cdef _swallow(self, IngressLink link, size_t delivery)
    cdef _used_for_nothing(self, IngressLink link)
    cdef bint _pause_in_message(self, IngressLink link, Transfer transfer) except -1
    @cython.locals(transfer=Transfer)
    cdef Transfer _begin_above_mark(self, IngressLink link, size_t delivery)
    @cython.locals(transfer=Transfer)
    cdef _aborted(self, IngressLink link, size_t delivery)
