import cython
from router.core.forwarding.credit_actions cimport Grant
from router.core.forwarding.doubling_window cimport DoublingWindow
from router.core.forwarding.fair_queue cimport FairQueue


cdef class Publisher


cdef class LoweredCredit:
    cdef public Publisher publisher
    cdef public Py_ssize_t credit
    cdef public double until


cdef class Publisher(DoublingWindow):
    cdef public object key
    cdef public object client
    cdef public Py_ssize_t held
    cdef public Py_ssize_t lowered
    cdef public list quarantined
    cdef public dict queue
    cdef public Py_ssize_t coming
    cdef public Py_ssize_t excess
    cdef public Py_ssize_t lent
    cdef public Py_ssize_t returning
    cdef public double active_at
    cdef public bint is_attached
    cdef public bint is_busy
    cdef public bint is_wanting

    cpdef Py_ssize_t standing(self)
    cpdef Py_ssize_t kept(self)


cdef class LocalPublishers:
    cdef list _actions
    cdef object _timing
    cdef public dict attached
    cdef public object waiting
    cdef FairQueue _turns
    cdef public FairQueue left
    cdef public bint is_left_next
    cdef public dict coming
    cdef public Py_ssize_t departed
    cdef public Py_ssize_t lent
    cdef public Py_ssize_t lowered
    cdef public Py_ssize_t returning
    cdef public Py_ssize_t demand
    cdef public object _recent
    cdef public object _starved
    cdef public object _fresh
    cdef public object _wanting
    cdef public object wanting_again
    cdef public object _holders
    cdef public object _slow
    cdef public object _quarantined

    cpdef object add(self, object key, Py_ssize_t held=*, object client=*)
    cdef _wait(self, object message, Publisher publisher)
    @cython.locals(publisher=Publisher)
    cpdef object remove(self, object key)
    @cython.locals(publisher=Publisher)
    cpdef object published(self, object key, object message, double now, bint is_ready=*)
    @cython.locals(publisher=Publisher)
    cpdef object add_uncredited(self, object message, object client)
    cpdef object pass_on(self, Publisher publisher, double now)
    @cython.locals(publisher=Publisher)
    cpdef object ready(self, object message)
    @cython.locals(publisher=Publisher)
    cpdef object sent(self, double now)
    cdef _use(self, Publisher publisher, double now)
    cdef _want(self, Publisher publisher)
    cdef _want_nothing(self, Publisher publisher)
    @cython.locals(publisher=Publisher)
    cpdef object sent_left(self)
    cdef _leaves(self, object message, Publisher publisher)
    cdef _depart(self, Py_ssize_t change)
    cdef _was_active(self, Publisher publisher, double now)
    @cython.locals(publisher=Publisher)
    cpdef bint drop(self, object message)
    @cython.locals(publisher=Publisher, credit=Py_ssize_t)
    cpdef object give_again(self, Py_ssize_t allotted, double now)
    @cython.locals(publisher=Publisher)
    cpdef bint lend(self, Py_ssize_t allotted, double now)
    @cython.locals(missing=Py_ssize_t)
    cpdef object top_up(self, Publisher publisher, Py_ssize_t allotted, double now)
    @cython.locals(target=Py_ssize_t, has=Py_ssize_t)
    cdef Py_ssize_t _missing(self, Publisher publisher, Py_ssize_t allotted)
    cdef _grant(self, Publisher publisher, Py_ssize_t credit, Py_ssize_t allotted, double now)
    cdef _give(self, Publisher publisher, Py_ssize_t credit, double now)
    @cython.locals(publisher=Publisher)
    cpdef double lower_idle(self, double now)
    @cython.locals(publisher=Publisher)
    cpdef object lower_for(self, Py_ssize_t credit, double now)
    @cython.locals(publisher=Publisher)
    cpdef object lower_all(self, double now)
    cdef _lower(self, Publisher publisher, Py_ssize_t to, double now)
    cdef _count_lowered(self, Publisher publisher, Py_ssize_t change)
    @cython.locals(used=Py_ssize_t, latest=LoweredCredit)
    cdef _use_lowered(self, Publisher publisher, Py_ssize_t credit)
    @cython.locals(publisher=Publisher, oldest=LoweredCredit)
    cpdef object expire(self, double now)
    @cython.locals(publisher=Publisher)
    cpdef double next_deadline(self)
    @cython.locals(standing=Py_ssize_t, is_attached=bint, lent=Py_ssize_t, returning=Py_ssize_t, waits=Py_ssize_t, is_busy=bint)
    cdef _update(self, Publisher publisher)
