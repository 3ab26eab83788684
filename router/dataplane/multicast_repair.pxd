import cython

from router.binding.proton_functions cimport *
from router.core.forwarding.fib cimport AddressEntry, Fib
from router.core.forwarding.sequence_window cimport SequenceWindow
from router.dataplane.message_sender cimport MessageSender
from router.dataplane.links cimport Transfer, new_transfer
from router.dataplane.connection_port cimport Port

cdef double NEVER


cdef class Stream:
    cdef public object number
    cdef public dict windows


cdef class KeptMulticast:
    cdef public double at
    cdef public bytes data
    cdef public AddressEntry entry
    cdef public object flooded
    cdef public object ingress
    cdef public bytes tag
    cdef public tuple sent_to


cdef class KnownSubscribers:
    cdef public Py_ssize_t kept
    cdef public dict since


cdef class MulticastRepair:
    cdef Fib _fib
    cdef dict _ports
    cdef MessageSender _egress
    cdef object _settings
    cdef bytes _instance
    cdef object _streams
    cdef object _highest
    cdef object _kept
    cdef public Py_ssize_t kept_bytes
    cdef public dict subscribers
    cdef public Py_ssize_t resent
    cdef double _changed_at
    cdef public bint is_due

    cpdef object number(self, AddressEntry entry)
    cpdef bint is_new(self, AddressEntry entry, object ingress, bytes tag, bint is_first=*) except -1
    cdef Stream _stream(self, str text, object ingress)
    @cython.locals(known=KnownSubscribers, kept=KeptMulticast)
    cpdef object keep(self, AddressEntry entry, object ingress, bytes tag, bytes data, tuple sent_to, double now)
    @cython.locals(known=KnownSubscribers, kept=KeptMulticast)
    cdef _forget_oldest(self)
    cpdef object expire(self, double now)
    cpdef double next_deadline(self)
