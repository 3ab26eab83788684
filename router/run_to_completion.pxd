import cython

from router.dataplane.credit_manager cimport CreditManager
from router.dataplane.links cimport forget_unwritten
from router.dataplane.connection_port cimport Port
from router.dataplane.router_data_plane cimport RouterDataPlane
from router.dataplane.settlement cimport Settlement
from router.engine.connection cimport Connection
from router.net.poller cimport RoundHandler

cdef int MOST_FAULTS


cdef class ConnectionTurns(RoundHandler):
    cdef public RouterDataPlane data_plane
    cdef public object clock
    cdef public dict connections
    cdef public dict flushers
    cdef public list events
    cdef public double runtime_deadline
    cdef public double work_at
    cdef public double teardowns_at
    cdef public double account_at
    cdef public double next_look
    cdef public object account
    cdef public double trim_at
    cdef object _deadline_changed
    cdef object _deadline_came
    cdef object _quieted
    cdef object _work
    cdef object _look
    cdef list _dirty
    cdef bint _is_round_due

    cpdef object touched(self, Port port)
    cpdef object arrived(self, Connection connection)
    cpdef object turn(self, Connection connection)
    cpdef object written(self, Connection connection)
    cdef _dispatch(self, Connection connection)
    cpdef object settle(self)
    @cython.locals(data_plane=RouterDataPlane, credit_manager=CreditManager, settlement=Settlement, now=double, port=Port, dirty=list, faults=int, steps=int)
    cdef _settle(self)
    @cython.locals(port=Port)
    cdef _give_up_writing(self)
    cpdef _port_fault(self, Port port, object error)
    @cython.locals(connection=Connection)
    cdef _flush(self, Port port)
    cpdef double earliest(self)
