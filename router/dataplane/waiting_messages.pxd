import cython

from router.dataplane.links cimport EgressLink, IngressLink, IngressLargeMessagesLink, Transfer
from router.dataplane.settlement cimport Settlement
from router.dataplane.transfer_lifecycle cimport advance
from router.dataplane.transfer_stages cimport *
from router.dataplane.turn_clock cimport TurnClock

cdef double NEVER


cdef class WaitingMessages:
    cdef TurnClock _clock
    cdef object _settings
    cdef public Settlement _settlement
    cdef public Py_ssize_t count
    cdef public Py_ssize_t total_bytes
    cdef public bint is_closed
    cdef public list _deadlines
    cdef public Py_ssize_t _deadlines_room
    cdef public Py_ssize_t _number
    cdef public dict refused
    cdef public dict given_up
    cdef object _expired
    cdef public list relieved

    @cython.locals(relieved=list)
    cpdef list take_relieved(self)
    @cython.locals(size=Py_ssize_t, is_full=bint)
    cpdef object enter(self, Transfer transfer, object place, bint is_bounded=*, bint is_credited=*)
    cpdef object grew(self, Transfer transfer, Py_ssize_t added)
    cpdef Transfer oldest(self, object place)
    @cython.locals(transfer=Transfer)
    cpdef Transfer take(self, object place)
    cpdef object give_up(self, Transfer transfer)
    cdef _leave(self, Transfer transfer)
    cdef _take_out(self, Transfer transfer, object place)
    cdef _relieve(self, IngressLink source, Py_ssize_t size)
    cpdef object leave_source(self, Transfer transfer)
    cpdef bint is_backlogged(self, IngressLink source)
    cpdef double next_deadline(self)
    cpdef object refuse(self, Transfer transfer)
    cdef _release(self, Transfer transfer, int reason)
