import cython
from router.core.forwarding.timer_queue cimport TimerQueue


cdef class Subscriber:
    cdef public object key
    cdef public Py_ssize_t credit
    cdef public bint is_draining
    cdef public object state
    cdef public bint is_live
    cdef public bint is_excluded
    cdef public bint is_withdrawn
    cdef public Py_ssize_t usual
    cdef public double zero_since
    cdef public double held_from
    cdef public double held_s
    cdef public Py_ssize_t window_from
    cdef public double excluded_at
    cdef public double granted_at
    cdef public double readmitted_at
    cdef public double pause_s
    cdef public Py_ssize_t missed

    cpdef object enter(self, object event)


cdef class MulticastSubscribers:
    cdef public object patience
    cdef public dict subscribers
    cdef public dict draining
    cdef public bint is_elsewhere
    cdef dict _live
    cdef dict _excluded
    cdef dict _zero
    cdef TimerQueue _limits
    cdef Py_ssize_t _sent
    cdef Py_ssize_t _drains
    cdef Py_ssize_t _willing
    cdef TimerQueue _returns
    cdef TimerQueue _windows
    cdef double _held_s
    cdef double _noted_at
    cdef bint _is_pressed
    cdef dict _hasty
    cdef double _deserted_s
    cdef double _deserted_at
    cdef double _deserted_to
    cdef tuple _typical

    cpdef object add(self, object key)
    cpdef object set_elsewhere(self, bint is_elsewhere)
    @cython.locals(subscriber=Subscriber)
    cpdef object remove(self, object key, double now)
    @cython.locals(held_s=double)
    cdef _note_deserter(self, Subscriber subscriber, double now)
    @cython.locals(is_counted=bint, held_s=double)
    cdef double _held_by(self, Subscriber subscriber, double now)
    cdef double _deserted(self, double now)
    @cython.locals(deserted_s=double)
    cdef bint _is_waited_for(self, Subscriber subscriber, double now)
    @cython.locals(subscriber=Subscriber)
    cpdef object changed(self, object key, Py_ssize_t credit, double now, bint is_draining=*, bint is_withdrawn=*)
    cdef _leave_out(self, Subscriber subscriber)
    @cython.locals(limit=double)
    cdef _count(self, Subscriber subscriber, double now)
    cdef _stall(self, Subscriber subscriber, double now)
    @cython.locals(is_usual=bint, pause_s=double)
    cdef _put_off(self, Subscriber subscriber)
    @cython.locals(subscriber=Subscriber)
    cpdef tuple spend(self, double now)
    cpdef list miss(self)
    @cython.locals(subscriber=Subscriber)
    cdef list _miss(self, dict subscribers)
    cpdef object drained(self, Subscriber subscriber, double now)
    cpdef double held_s(self, double now)
    @cython.locals(held_s=double)
    cdef _note_grant(self, Subscriber subscriber, double now)
    @cython.locals(is_relapse=bint, pause_s=double)
    cdef _give_up(self, Subscriber subscriber, double now, double held_s)
    cdef _exclude(self, Subscriber subscriber, double now, double pause_s, double held_s)
    cdef _readmit(self, Subscriber subscriber, double now)
    cpdef double next_deadline(self)
