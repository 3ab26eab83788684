cdef class CreditScheduler:
    cpdef bint published(self, object key, object message, double now, bint is_ready=*)
    cpdef bint arrived(self, object root, object key, object message, double now, bint is_ready=*)
    cpdef object turn(self, double now)
    cpdef double next_deadline(self)


cdef class CreditActions:
    cpdef object grant(self, object publisher, Py_ssize_t credit)
    cpdef object grant_circuit(self, object circuit, Py_ssize_t credit)
    cpdef object drain_circuit(self, object circuit)
    cpdef object close_circuit(self, object circuit)
    cpdef object send(self, object message, object egress)
    cpdef object drained(self, object egress, Py_ssize_t credit)
    cpdef object weigh(self, object egress, Py_ssize_t weight)
