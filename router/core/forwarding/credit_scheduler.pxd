cdef class CreditScheduler:
    cdef public list actions
    cdef public list egresses
    cdef public double _deadline

    cpdef list take_actions(self)
    cpdef Py_ssize_t published(self, object key, object message, double now, bint is_ready=*)
    cpdef Py_ssize_t arrived(self, object root, object key, object message, double now, bint is_ready=*)
    cpdef object set_stopping(self, bint is_stopping)
    cpdef list turn(self, double now)
    cpdef double next_deadline(self)
