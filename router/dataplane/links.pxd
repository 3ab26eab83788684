import cython

from libc.stdint cimport uint64_t

from router.binding.proton_functions cimport *
from router.core.forwarding.fib cimport AddressEntry
from router.core.forwarding.egress_load cimport EgressLoad
from router.dataplane.link_counters cimport LinkCounters
from router.dataplane.arrival_progress cimport ArrivalProgress
from router.dataplane.connection_port cimport Port
from router.dataplane.scan_result cimport Scan
from router.dataplane.section_tracker cimport SectionTracker
from router.dataplane.transfer_stages cimport *

cdef Py_ssize_t SIZES_ROOM
cdef Py_ssize_t SMALL_BYTES


cdef class IngressLink:
    cpdef bint shares_session(self) except -1
    cpdef object change_credit(self, Py_ssize_t change)
    cdef public object id
    cdef public Port port
    cdef public size_t handle
    cdef public size_t session
    cdef public str name
    cdef public Py_ssize_t window
    cdef public uint64_t most_bytes
    cdef public AddressEntry entry
    cdef public object address
    cdef public object rate
    cdef public object user_id
    cdef public bint asks_other_router
    cdef public SectionTracker sections
    cdef public object controller
    cdef public Py_ssize_t withheld
    cdef public bint was_lowered
    cdef public Transfer current
    cdef public uint64_t current_bytes
    cdef public ArrivalProgress progress
    cdef public Py_ssize_t in_flight
    cdef public Py_ssize_t backlog_bytes
    cdef public bint is_numbered
    cdef public bint is_paused
    cdef public bint is_gone
    cdef public dict streams
    cdef public LinkCounters counters


cdef class PublisherLink(IngressLink):
    cdef public Py_ssize_t most_window
    cdef public Py_ssize_t used
    cdef public double attached_at
    cdef public Py_ssize_t owed


cdef class IngressCircuitLink(IngressLink):
    cdef public object root


cdef class IngressDatagramLink(IngressLink):
    cpdef bint shares_session(self) except -1


cdef class IngressLargeMessagesLink(IngressDatagramLink):
    pass


cdef class EgressLink:
    cdef public object id
    cdef public Port port
    cdef public size_t handle
    cdef public size_t session
    cdef public str name
    cdef public object address
    cdef public object controller
    cdef public bint has_aborted
    cdef public bint is_answering
    cdef public bint is_gone
    cdef public bint is_presettled
    cdef public Transfer current
    cdef public uint64_t current_bytes
    cdef public tuple default_outcome
    cdef public uint64_t most_bytes
    cdef public Py_ssize_t outstanding
    cdef public EgressLoad load
    cdef public object waiting
    cdef public Py_ssize_t waiting_bytes
    cdef public object settled_sizes
    cdef public LinkCounters counters

    cpdef object end(self)
    @cython.locals(unwritten=Py_ssize_t)
    cpdef Py_ssize_t unwritten_bytes(self)
    cpdef object note_settled(self, Py_ssize_t size)
    cpdef object lose_settled(self)
    cpdef bint can_send(self)
    cpdef bint is_full(self)
    cpdef Py_ssize_t backlog(self)
    cpdef bint is_idle(self)
    cpdef bint has_credit(self)


cdef class SubscriberLink(EgressLink):
    cdef public AddressEntry entry
    cdef public double attached_at
    cdef public Py_ssize_t brokered
    cdef public Py_ssize_t unspent
    cdef public bint is_withdrawn
    cdef public Py_ssize_t deferred

    cpdef Py_ssize_t backlog(self)
    cpdef bint is_idle(self)


cdef class EgressCircuitLink(EgressLink):
    cdef public object root
    cdef public object key
    cdef public Py_ssize_t weight
    cdef public double idle_since
    cdef public bint is_refused


cdef class EgressDatagramLink(EgressLink):
    pass


cdef class EgressLargeMessagesLink(EgressDatagramLink):
    cdef public Py_ssize_t bound


# What it refers to never keeps it in a circle for longer than it passes through: no work for the garbage collector.
@cython.freelist(256)
@cython.no_gc
cdef class Transfer:
    cdef public IngressLink ingress
    cdef public size_t ingress_delivery
    cdef public double arrived
    cdef public double age_s
    cdef public int state
    cdef public bint is_complete
    cdef public bint is_settled
    cdef public bint is_brokered
    cdef public bint is_coming
    cdef public bint may_stream
    cdef public bint is_ready
    cdef public bytes data
    cdef public list parts
    cdef public Py_ssize_t size
    cdef public object leaving
    cdef public Py_ssize_t leaving_at
    cdef public Py_ssize_t leaving_bytes
    cdef public Py_ssize_t given_bytes
    cdef public Scan scan
    cdef public Py_ssize_t scanned_bytes
    cdef public bytes tag
    cdef public object to
    cdef public AddressEntry entry
    cdef public EgressLink egress
    cdef public size_t egress_delivery
    cdef public EgressLoad load
    cdef public double waits_until
    cdef public Port held_for

    @cython.locals(parts=list)
    cpdef object append(self, bytes data)
    cpdef bytes whole(self)
    cpdef bytes head(self)
    cpdef bint has_all(self, bytes data)
    cpdef object clear(self)


@cython.locals(transfer=Transfer)
cpdef Transfer new_transfer(IngressLink ingress, size_t delivery, double now)


cpdef list local_subscribers(AddressEntry entry)


cpdef object keep_unwritten(Port port, Transfer transfer)


@cython.locals(transfer=Transfer)
cpdef object forget_unwritten(Port port)
