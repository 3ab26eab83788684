import cython

from router.binding.proton_functions cimport *
from router.dataplane.data_plane cimport DataPlane, LinkEventHandler
from router.dataplane.connection_port cimport Port
from router.engine.byte_streams cimport ByteStreams
from router.engine.memory_meter cimport MemoryMeter


cdef class Connection(ByteStreams):
    cdef public object id
    cdef public object settings
    cdef public Port port
    cdef public bint is_server
    cdef public object identity
    cdef public object peer
    cdef public dict links
    cdef public dict _session_links
    cdef public object rights
    cdef public object rate
    cdef public bint is_denied
    cdef public Py_ssize_t publishers
    cdef public Py_ssize_t _most_sessions
    cdef public object host
    cdef public double since
    cdef public Py_ssize_t connector
    cdef public object refused
    cdef public bint was_of_use
    cdef public str told_refusal
    cdef public object closed_links
    cdef public dict _sessions
    cdef public MemoryMeter weight
    cdef public object _unanswered
    cdef public object _failure
    cdef public Py_ssize_t _after_end
    cdef public object _unbinding
    cdef public bint _is_unbound
    cdef public size_t _next_link
    cdef public DataPlane _data_plane
    cdef public object _handler
    cdef public size_t _collector
    cdef public size_t _connection

    @cython.locals(event=size_t, reader=LinkEventHandler, before=Py_ssize_t)
    cpdef object dispatch(self)
    cpdef object weigh(self)
