cdef class CreditAction:
    pass


cdef class Grant(CreditAction):
    cdef public object publisher
    cdef public Py_ssize_t credit


cdef class GrantCircuit(CreditAction):
    cdef public object circuit
    cdef public Py_ssize_t credit


cdef class DrainCircuit(CreditAction):
    cdef public object circuit


cdef class TellNeighborSubscribersWithdrew(CreditAction):
    cdef public object circuit


cdef class Send(CreditAction):
    cdef public object message
    cdef public object egress


cdef class ReturnCredit(CreditAction):
    cdef public object root
    cdef public object neighbor


cdef class TellWeight(CreditAction):
    cdef public object root
    cdef public object neighbor
    cdef public Py_ssize_t weight
