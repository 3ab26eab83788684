import cython

from router.binding.handles cimport *
from router.core.forwarding.allotting cimport Allotting
from router.core.forwarding.fib cimport AddressEntry
from router.dataplane.broker cimport Broker
from router.dataplane.anycast cimport AnycastBroker
from router.dataplane.house cimport House
from router.dataplane.interface cimport EgressLink, IngressLink, Transfer


cdef class Brokerage(House):
    cdef public object fault
    cdef public set rerouted
    cdef public bint is_replanted
    cdef public bint is_stopping
    cdef public dict _brokers
    cdef public list _deadlines
    cdef public Py_ssize_t _deadlines_room
    cdef public Py_ssize_t _number
    cdef public Allotting _nobody

    @cython.locals(broker=Broker)
    cpdef Broker of(self, AddressEntry entry)
    cpdef Broker find(self, AddressEntry entry)
    cpdef Broker of_link(self, IngressLink link)
    cpdef object flowed(self, EgressLink link)
    cpdef object used_by_copies(self, AddressEntry entry)
    cpdef object freed(self)
    cpdef bint is_due(self)
    @cython.locals(due=double)
    cpdef double next_deadline(self)
    cdef bint _must_be_written(self, EgressLink link) except -1
    cpdef object turn(self)
    cdef _turn(self, Broker broker)
