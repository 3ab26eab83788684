import cython

from router.binding.proton_functions cimport *
from router.dataplane.transfer_stages cimport *


cdef class Port:
    cdef public object id
    cdef public object touched
    cdef public bint is_dirty
    cdef public bint is_router
    cdef public object neighbor
    cdef public bint takes_numbers
    cdef public object vhost
    cdef public object rights
    cdef public list data_links
    cdef public dict data_sessions
    cdef public object open_stream
    cdef public list streams
    cdef public object open_circuit
    cdef public object close_circuit
    cdef public object close_link
    cdef public object end_circuit
    cdef public object withdraw
    cdef public object tell_circuits
    cdef public dict circuits_in
    cdef public dict circuits_out
    cdef public list unwritten
    cdef public Py_ssize_t unwritten_room
    cdef public Py_ssize_t unwritten_bytes
    cdef public dict lost_bytes
    cdef public Py_ssize_t held_bytes
    cdef public Py_ssize_t leaving_bytes
    cdef public object charge
    cdef public bint is_over
    cdef public bint is_laden
    cdef public bint is_leaving
    cdef public bint is_stopped
    cdef public dict stopped
    cdef public object asking
    cdef public dict paused
    cdef public dict blocked

    cpdef bint may_be_unwritten(self)
    @cython.locals(links=dict)
    cpdef object block(self, object link, size_t session)
    cpdef object lose_unwritten(self, Py_ssize_t size)
    cpdef object touch(self)
