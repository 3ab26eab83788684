import cython

from router.binding.handles cimport *
from router.core.forwarding.fib cimport Fib
from router.dataplane.broker cimport Broker
from router.dataplane.brokerage cimport Brokerage
from router.dataplane.egress cimport Egress
from router.dataplane.forwarder cimport Forwarder
from router.dataplane.data_plane cimport DataPlane
from router.dataplane.interface cimport EgressLink, IngressLink, LinkCounters, Port, Transfer
from router.dataplane.reader cimport Reader
from router.dataplane.repair cimport Repair
from router.dataplane.settlement cimport Settlement
from router.dataplane.unfinished cimport UnfinishedMessages
from router.dataplane.waiting cimport WaitingRoom
from router.dataplane.states cimport *


cdef class Relay(DataPlane):
    cdef public Fib fib
    cdef public double now
    cdef public dict ports
    cdef public dict links
    cdef public LinkCounters gone_ingress
    cdef public LinkCounters gone_egress
    cdef public dict gone_ingress_of
    cdef public dict gone_egress_of
    cdef public Settlement settlement
    cdef public WaitingRoom waiting
    cdef public UnfinishedMessages unfinished
    cdef public Egress egress
    cdef public Brokerage brokerage
    cdef public Repair repair
    cdef public Forwarder _forwarder
    cdef public Reader _reader

    @cython.locals(was_busy=bint)
    cdef _disposed(self, EgressLink link, size_t delivery)
    @cython.locals(event=size_t, delivery=size_t, kind=int, credit=Py_ssize_t)
    cpdef size_t pump(self, size_t collector) except? 0
    cpdef Py_ssize_t sent(self) except? -1
    cpdef object set_now(self, double now)
    cpdef double next_deadline(self)
    @cython.locals(link=EgressLink, source=IngressLink, paused=list)
    cpdef object written(self, Port port)
    cpdef bint has_unread(self) except -1
    cpdef object go_on(self)
    cpdef bint is_quiet(self)
    cpdef object flowed(self, EgressLink link)
    @cython.locals(delivery=size_t, transfer=Transfer, settlement=Settlement)
    cpdef object remove_ingress(self, IngressLink link)
