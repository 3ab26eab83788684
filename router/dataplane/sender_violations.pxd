import cython

from router.binding.proton_functions cimport *
from router.dataplane.links cimport IngressLink, Transfer
from router.dataplane.message_forwarder cimport Forwarder
from router.dataplane.settlement cimport Settlement
from router.dataplane.unfinished_deliveries cimport UnfinishedDeliveries
from router.dataplane.transfer_stages cimport *


cdef class ViolatingLinks:
    cdef Settlement _settlement
    cdef Forwarder _forwarder
    cdef UnfinishedDeliveries _unfinished
    cdef object _faults
    cdef public dict links

    cpdef object add_too_large(self, IngressLink link, Transfer transfer)
    cpdef bint is_beyond_credit(self, IngressLink link) except -1
    cpdef object add_beyond_credit(self, IngressLink link)
    cdef _add(self, IngressLink link, object condition, object description)
    @cython.locals(link=IngressLink, links=dict)
    cpdef object close(self)
    @cython.locals(link=IngressLink)
    cpdef object give_up_stalled(self, double now)
    @cython.locals(transfer=Transfer, link=IngressLink)
    cpdef object give_up_slow(self, list transfers)
    cdef _give_up_safely(self, IngressLink link, str description, bint is_to_close)
    @cython.locals(transfer=Transfer)
    cdef _give_up(self, IngressLink link, str description, bint is_to_close)
    cdef _reject(self, Transfer transfer, object condition, object description)
