import cython
from router.core.forwarding.doubling_window cimport DoublingWindow


cdef class Claimant(DoublingWindow):
    cdef public object key
    cdef public Py_ssize_t out
    cdef public Py_ssize_t weight
    cdef public double served
    cdef public bint is_draining
    cdef public bint has_returned

    cpdef object take(self, Py_ssize_t credit)


cdef class CreditPool:
    cdef public object timing
    cdef public Py_ssize_t capacity
    cdef public Py_ssize_t out
    cdef public Py_ssize_t returning
    cdef public double returning_since
    cdef public double withdrawn_at
    cdef public double debt_since

    cpdef Py_ssize_t free(self)
    cpdef object holders(self)
    cpdef list claimants(self)
    cpdef Py_ssize_t target(self, Claimant claimant, Py_ssize_t total)
    cpdef object ask(self, Claimant claimant, double now)
    @cython.locals(claimant=Claimant)
    cpdef object set_returning(self, Py_ssize_t credit, double now)
    cpdef object take_from(self, Claimant claimant, Py_ssize_t credit)
    cpdef object returned(self, Claimant claimant, Py_ssize_t credit)
    cpdef object note_debt(self, double now)
    cpdef object renew_debt(self, double now)
    @cython.locals(claimant=Claimant, target=Py_ssize_t, credit=Py_ssize_t)
    cpdef double share_out(self, list claimants, Py_ssize_t total, Py_ssize_t free, Py_ssize_t batches)
    @cython.locals(claimant=Claimant)
    cpdef object limit_claims(self, list claimants, Py_ssize_t total, double level)
    @cython.locals(other=Claimant)
    cpdef object forget_claim(self, Claimant claimant)
    @cython.locals(claimant=Claimant, total=Py_ssize_t)
    cpdef bint is_starving(self, list claimants)
    @cython.locals(claimant=Claimant, due=double)
    cpdef double ask_unused(self, object holders, double hold_s, double now)
    cpdef bint is_late(self, double now)


@cython.locals(claimant=Claimant, total=Py_ssize_t)
cpdef Py_ssize_t total_weight(list claimants)
