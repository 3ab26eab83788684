import cython

from libc.stdint cimport uint64_t

from router.binding.proton_functions cimport *
from router.core.forwarding.doubling_window cimport grown, is_used, shrunk
from router.core.forwarding.fixed_publisher_link_window cimport change as change_of
from router.core.forwarding.duration_histogram cimport DurationHistogram
from router.core.forwarding.fib cimport AddressEntry
from router.core.forwarding.egress_load cimport EgressLoad
from router.dataplane.link_counters cimport LinkCounters
from router.dataplane.links cimport EgressLink, IngressLink, PublisherLink, Transfer
from router.dataplane.connection_port cimport Port
from router.dataplane.transfer_lifecycle cimport advance
from router.dataplane.transfer_stages cimport *
from router.dataplane.turn_clock cimport TurnClock


cdef class Settlement:
    cdef public Py_ssize_t count
    cdef object _resume
    cdef public list freed
    cdef public list stranded
    cdef dict untold
    cdef public double untold_due
    cdef public bint is_stopping
    cdef TurnClock _clock
    cdef public list times
    cdef double _timed_at
    cdef public list dropped
    cdef public Py_ssize_t unaddressed

    @cython.locals(freed=list)
    cpdef list take_freed(self)
    @cython.locals(stranded=list)
    cpdef list take_stranded(self)
    @cython.locals(found=Transfer)
    cpdef Transfer find(self, size_t delivery)
    cpdef object keep(self, size_t delivery, Transfer transfer)
    @cython.locals(found=Transfer)
    cpdef Transfer forget(self, size_t delivery)
    @cython.locals(transfer=Transfer, state=uint64_t, is_final=bint)
    cpdef object disposed(self, EgressLink link, size_t delivery)
    @cython.locals(entry=AddressEntry, times=DurationHistogram)
    cdef _take_time(self, Transfer transfer)
    cdef void _count(self, LinkCounters counters, uint64_t state) noexcept
    @cython.locals(ingress=size_t, remote=size_t, local=size_t, is_modified=bint)
    cdef _copy_outcome(self, size_t delivery, Transfer transfer, uint64_t state)
    @cython.locals(link=IngressLink, due=double)
    cdef _tell(self, Transfer transfer, int outcome)
    @cython.locals(transfer=Transfer, outcome=int, due=double, told=list)
    cpdef object tell_early(self, double now)
    @cython.locals(delivery=size_t)
    cdef bint _set_rejected(self, Transfer transfer, object condition, object description) except -1
    @cython.locals(delivery=size_t)
    cpdef object settle(self, Transfer transfer, int outcome, int reason=*)
    cpdef object tell_rejected(self, Transfer transfer, object condition, object description)
    cpdef object grow(self, PublisherLink link)
    @cython.locals(publisher=PublisherLink)
    cdef _shrink(self, IngressLink link)
    cpdef object count_dropped(self, Transfer transfer, int reason)
    cpdef object finish(self, Transfer transfer)
    @cython.locals(link=IngressLink)
    cpdef object resume(self, Transfer transfer)
    cpdef object unhold(self, Transfer transfer)
    @cython.locals(delivery=size_t, local=size_t, outcome=int)
    cpdef object tell_leaving(self, Transfer transfer)
    cpdef object lose_ingress(self, Transfer transfer)
    @cython.locals(delivery=size_t, link=IngressLink, outcome=int)
    cpdef object leave_ingress(self, Transfer transfer)
    @cython.locals(delivery=size_t, link=EgressLink)
    cpdef object leave_egress(self, Transfer transfer)
    cpdef object strand(self, Transfer transfer)
    @cython.locals(entry=AddressEntry, load=EgressLoad)
    cdef _leave_load(self, Transfer transfer)
    @cython.locals(queued=Py_ssize_t, held=Py_ssize_t, change=Py_ssize_t, is_open=bint, in_flight=Py_ssize_t)
    cpdef object top_up(self, IngressLink link)
    cdef Py_ssize_t _for_questions(self, IngressLink link, Py_ssize_t held, Py_ssize_t change) except? -1
