import cython

from router.binding.proton_functions cimport *
from router.core.forwarding.fib cimport Fib
from router.dataplane.credit_controller cimport CreditController
from router.dataplane.credit_manager cimport CreditManager
from router.dataplane.message_sender cimport MessageSender
from router.dataplane.message_forwarder cimport Forwarder
from router.dataplane.data_plane cimport DataPlane
from router.dataplane.link_counters cimport LinkCounters
from router.dataplane.links cimport EgressCircuitLink, EgressLink
from router.dataplane.links cimport IngressCircuitLink, IngressDatagramLink, IngressLink
from router.dataplane.connection_port cimport Port
from router.dataplane.links cimport PublisherLink, SubscriberLink, Transfer
from router.dataplane.link_event_reader cimport LinkEventReader
from router.dataplane.multicast_repair cimport MulticastRepair
from router.dataplane.settlement cimport Settlement
from router.dataplane.slow_streams cimport SlowStreams
from router.dataplane.unfinished_deliveries cimport UnfinishedDeliveries
from router.dataplane.waiting_messages cimport WaitingMessages
from router.dataplane.transfer_stages cimport *
from router.dataplane.turn_clock cimport TurnClock


cdef class RouterDataPlane(DataPlane):
    cdef public Fib fib
    cdef public TurnClock clock
    cdef public dict ports
    cdef public dict links
    cdef public LinkCounters gone_ingress
    cdef public LinkCounters gone_egress
    cdef public dict gone_ingress_of
    cdef public dict gone_egress_of
    cdef public Settlement settlement
    cdef public WaitingMessages waiting
    cdef public UnfinishedDeliveries unfinished
    cdef public SlowStreams streams
    cdef public MessageSender egress
    cdef public CreditManager credit_manager
    cdef public MulticastRepair repair
    cdef public Forwarder _forwarder
    cdef public LinkEventReader _reader

    @cython.locals(controller=CreditController)
    cpdef object _spared(self, EgressLink link)
    cpdef Py_ssize_t sent(self) except? -1
    cpdef object set_now(self, double now)
    @cython.locals(due=double, other=double)
    cpdef double next_deadline(self)
    @cython.locals(session=size_t, links=dict, has_drained=bint, source=IngressLink, paused=dict)
    cpdef object written(self, Port port)
    @cython.locals(link=EgressLink)
    cdef _go_on_sending(self, Port port, size_t session, dict links)
    cpdef bint has_unread(self) except -1
    cpdef object go_on(self)
    cpdef bint is_quiet(self)
    cpdef object flowed(self, EgressLink link)
    @cython.locals(delivery=size_t, transfer=Transfer, settlement=Settlement)
    cpdef object remove_ingress(self, IngressLink link)
