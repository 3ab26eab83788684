from libc.stdint cimport int64_t, uint64_t

from router.bench.load_connection cimport Connection, Endpoint, now_ns, receive_number, send_number
from router.bench.tally cimport Tally
from router.binding.proton_functions cimport (
    ACCEPTED,
    NULL,
    Handle,
    new_delivery,
    pn_delivery_aborted,
    pn_delivery_clear,
    pn_delivery_partial,
    pn_delivery_pending,
    pn_delivery_remote_state,
    pn_delivery_settle,
    pn_delivery_settled,
    pn_delivery_update,
    pn_delivery_updated,
    pn_link_advance,
    pn_link_credit,
    pn_link_current,
    pn_link_flow,
    pn_link_send,
    pn_session_outgoing_bytes,
    receive,
)

cdef int64_t outcome_of(Handle delivery) except -1
cdef int accept(Handle link, Handle delivery, int credit) except -1
cpdef tuple parts_of_request(bytes message)


cdef class Sender(Endpoint):
    cdef Tally _tally
    cdef object _address
    cdef bint _is_presettled
    cdef bytes _head
    cdef Py_ssize_t _head_bytes
    cdef Handle _session, _link
    cdef Connection _connection
    cdef uint64_t _number
    cdef readonly int64_t accepted

    cdef _send(self)


cdef class Receiver(Endpoint):
    cdef Tally _tally
    cdef object _address
    cdef int _credit
    cdef uint64_t _number


cdef class Caller(Endpoint):
    cdef Tally _tally
    cdef object _address
    cdef Py_ssize_t _size
    cdef bytes _head, _rest
    cdef Handle _requests, _replies
    cdef Connection _connection
    cdef uint64_t _called, _number, _calls
    cdef readonly int64_t accepted

    cdef _call(self)
    cdef _heard(self, Handle link, Handle delivery)


cdef class Responder(Endpoint):
    cdef object _address
    cdef int _credit
    cdef Handle _replies
    cdef dict _heads
    cdef uint64_t _number

    cdef _answer(self, bytes message)
