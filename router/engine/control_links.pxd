import cython

from libc.stdint cimport uint64_t

from router.binding.proton_functions cimport *
from router.dataplane.connection_port cimport Port


cdef class ControlLinks:
    cdef Port _port
    cdef uint64_t _assumed_bytes
    cdef public Py_ssize_t announced_bytes
    cdef public size_t incoming
    cdef public size_t outgoing
    cdef public Py_ssize_t sent
    cdef public Py_ssize_t received
    cdef bytearray _parts
    cdef public dict remembered

    cpdef object add(self, size_t handle, bint is_sender)
    cpdef bint has(self, size_t handle)
    @cython.locals(each=size_t)
    cpdef list of_session(self, size_t session)
    cpdef object remove(self, size_t handle)
    @cython.locals(link=size_t, delivery=size_t, size=uint64_t, most=uint64_t, waiting=size_t)
    cpdef str send(self, bytes message, bint may_drop)
    @cython.locals(link=size_t, size=Py_ssize_t, left=Py_ssize_t, message=bytes)
    cpdef bytes read(self, size_t delivery, Py_ssize_t limit)
    cpdef object known(self, bytes message)
    cpdef object remember(self, bytes message, object read)
