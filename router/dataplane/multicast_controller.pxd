import cython

from router.binding.proton_functions cimport *
from router.core.forwarding.credit_actions cimport CreditAction
from router.core.forwarding.multicast_subscribers cimport MulticastSubscribers
from router.dataplane.controller_context cimport ControllerContext
from router.dataplane.credit_controller cimport CreditController
from router.dataplane.links cimport EgressCircuitLink, EgressLink, IngressCircuitLink, IngressLink, SubscriberLink, Transfer
from router.dataplane.transfer_lifecycle cimport advance
from router.dataplane.transfer_stages cimport *


cdef class MulticastController(CreditController):
    cdef public dict _known
    cdef dict _children

    @cython.locals(link=IngressLink, circuit=IngressCircuitLink, is_first=bint)
    cpdef object take(self, Transfer transfer)
    cdef _drop_counted(self, Transfer transfer, IngressCircuitLink link)
    cpdef bint _is_ready(self, Transfer transfer)
    @cython.locals(link=EgressLink)
    cpdef bint _restate(self, double now)
    @cython.locals(subscribers=MulticastSubscribers, is_draining=bint)
    cdef _restate_subscriber(self, SubscriberLink link, double now)
    cpdef object _act(self, CreditAction action)
    @cython.locals(
        message=Transfer, context=ControllerContext, source=IngressLink, own=bytes, circuit=EgressCircuitLink,
        link=EgressLink)
    cdef _send_copies(self, object action)
    cdef _send_copy(self, bytes data, Transfer message, EgressLink link)
