import cython

from router.binding.proton_functions cimport *
from router.dataplane.links cimport EgressLink, IngressLink
from router.dataplane.connection_port cimport Port
from router.dataplane.transfer_stages cimport *


cdef class MemoryMeter:
    cdef Port _port
    cdef dict _links
    cdef dict _sessions
    cdef Py_ssize_t _to_write
    cdef Py_ssize_t _due_bytes

    @cython.locals(port=Port, change=Py_ssize_t)
    cpdef bint is_due(self, Py_ssize_t moved)
    @cython.locals(
        port=Port, taken=Py_ssize_t, given=Py_ssize_t, backlog=Py_ssize_t, unread=Py_ssize_t, session=size_t,
        ingress=IngressLink, egress=EgressLink)
    cpdef object count(self, Py_ssize_t caused)
    @cython.locals(queued=Py_ssize_t, session=size_t)
    cdef Py_ssize_t _queued_bytes(self)
