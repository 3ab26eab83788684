import cython

from router.binding.proton_functions cimport *
from router.core.forwarding.fib cimport AddressEntry, Fib, Route
from router.core.forwarding.egress_load cimport EgressLoad
from router.core.forwarding.egress_selection cimport choose
from router.dataplane.anycast_controller cimport AnycastController
from router.dataplane.credit_controller cimport CreditController
from router.dataplane.credit_manager cimport CreditManager
from router.dataplane.message_sender cimport MessageSender
from router.dataplane.datagram_fanout cimport DatagramFanout
from router.dataplane.links cimport EgressLink, IngressCircuitLink, IngressDatagramLink, IngressLink
from router.dataplane.connection_port cimport Port
from router.dataplane.links cimport PublisherLink, SubscriberLink, Transfer, local_subscribers, new_transfer
from router.dataplane.scan_result cimport Scan
from router.dataplane.section_tracker cimport SectionTracker
from router.dataplane.section_scanner cimport read_reply_to, scan
from router.dataplane.settlement cimport Settlement
from router.dataplane.slow_streams cimport SlowStreams
from router.dataplane.waiting_messages cimport WaitingMessages
from router.dataplane.transfer_lifecycle cimport advance
from router.dataplane.transfer_stages cimport *
from router.dataplane.turn_clock cimport TurnClock


cdef class Forwarder:
    cdef public TurnClock clock
    cdef Fib _fib
    cdef dict _ports
    cdef object _settings
    cdef Settlement _settlement
    cdef MessageSender _egress
    cdef WaitingMessages _waiting
    cdef SlowStreams _streams
    cdef public CreditManager credit_manager
    cdef object _faults
    cdef bint _is_last_try
    cdef public bint is_handing_back
    cdef DatagramFanout _fanout

    @cython.locals(state=int, link=EgressLink)
    cpdef object progress(self, Transfer transfer, bytes data)
    @cython.locals(link=IngressLink, sections=SectionTracker)
    cpdef bint follow_sections(self, Transfer transfer, bytes data) except -1
    @cython.locals(link=IngressLink, publisher=PublisherLink)
    cdef _route(self, Transfer transfer)
    @cython.locals(port=Port, found=Scan)
    cdef _read_address(self, Transfer transfer, IngressLink link)
    @cython.locals(found=Scan)
    cdef bint _may_say(self, Transfer transfer, IngressLink link) except -1
    cdef _check_user_id(self, Scan found, IngressLink link)
    cdef _check_reply_to(self, Transfer transfer, Scan found, IngressLink link)
    cdef _check_length(self, str to)
    cpdef object dispatch(self, Transfer transfer)
    @cython.locals(source=IngressLink, controller=CreditController)
    cdef CreditController _controller_of(self, Transfer transfer, AddressEntry entry)
    @cython.locals(source=IngressLink)
    cdef bint _is_brokered(self, Transfer transfer)
    cdef _deliver_whole(self, Transfer transfer, AddressEntry entry)
    @cython.locals(controller=CreditController)
    cdef bint _may_stream(self, Transfer transfer, AddressEntry entry) except -1
    cpdef object fan_out(self, Transfer transfer)
    cdef _dispatch_anycast(self, Transfer transfer, AddressEntry entry)
    @cython.locals(found=Scan, route=Route)
    cdef _choose(self, Transfer transfer, AddressEntry entry)
    @cython.locals(subscribers=list, only=SubscriberLink, controller=CreditController, anycast=AnycastController)
    cdef SubscriberLink _choose_local(self, AddressEntry entry)
    @cython.locals(controller=CreditController, anycast=AnycastController)
    cdef _send_to(self, Transfer transfer, object target)
    @cython.locals(port=Port, entry=AddressEntry, link=EgressLink, load=EgressLoad, has_choice=bint, is_named=bint)
    cpdef object send_datagram(self, Transfer transfer, object route)
    cdef bint _look_into(self, Transfer transfer)
    cdef Scan _scan(self, Transfer transfer, bint stop_at_annotations, bint from_client)
    cpdef object hold(self, Transfer transfer)
    cdef _hold(self, Transfer transfer, Py_ssize_t added)
    @cython.locals(source=IngressLink)
    cdef Py_ssize_t _most_held(self, Transfer transfer, AddressEntry entry)
    cpdef object drop_incomplete(self, Transfer transfer)
    cpdef object abandon(self, Transfer transfer)
    cpdef object end_faulty(self, object error)
    @cython.locals(egress=EgressLink)
    cpdef object fail(self, Transfer transfer, object error)
    @cython.locals(link=IngressLink, is_unknown=bint)
    cpdef object forget(self, Transfer transfer)
    @cython.locals(controller=CreditController)
    cpdef object flowed(self, EgressLink link)
