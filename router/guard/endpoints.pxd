import cython

from router.guard.guard_constants cimport NOBODY, RECEIVER, SENDER


cdef class Table:
    cdef public list dense
    cdef public dict far
    cdef public Py_ssize_t count

    cpdef object get(self, Py_ssize_t number)
    cpdef list values(self)
    cpdef object put(self, Py_ssize_t number, object value)
    cpdef object pop(self, Py_ssize_t number)


cdef class DispositionRange:
    cdef public Py_ssize_t piece
    cdef public Py_ssize_t first
    cdef public Py_ssize_t span


cdef class PeerLink:
    cdef public bytes name
    cdef public bint is_receiver
    cdef public Py_ssize_t channel
    cdef public Py_ssize_t handle
    cdef public Py_ssize_t place
    cdef public Py_ssize_t count
    cdef public Py_ssize_t credit
    cdef public bint drains
    cdef public bint asks
    cdef public Py_ssize_t large_bytes
    cdef public tuple default_outcome
    cdef public OwnLink own


cdef class ReceiversByName:
    cdef dict _links

    cpdef list named(self, bytes name)
    @cython.locals(alike=list)
    cpdef object add(self, PeerLink link)
    @cython.locals(alike=list, last=PeerLink)
    cpdef object remove(self, PeerLink link)


cdef class OwnLink:
    cdef public bytes name
    cdef public bint is_receiver
    cdef public Py_ssize_t handle
    cdef public Py_ssize_t count
    cdef public Py_ssize_t credit
    cdef public bint drains
    cdef public list said
    cdef public PeerLink peer


cdef class PeerSession:
    cdef public Py_ssize_t initial
    cdef public Py_ssize_t handle_max
    cdef public Py_ssize_t next_incoming
    cdef public Table links
    cdef public bytearray roles
    cdef public dict unpaired
    cdef public bint asks
    cdef public Py_ssize_t stated_next
    cdef public Py_ssize_t stated_window
    cdef public Py_ssize_t stated_outgoing
    cdef public Py_ssize_t stated_outgoing_window
    cdef public DispositionRange settled_sent
    cdef public DispositionRange settled_received
    cdef public OwnSession own


cdef class OwnSession:
    cdef public Py_ssize_t channel
    cdef public bint is_first
    cdef public Py_ssize_t next_outgoing
    cdef public Py_ssize_t window
    cdef public Py_ssize_t window_from
    cdef public Py_ssize_t outgoing_window
    cdef public list said
    cdef public Table links
    cdef public dict unpaired
    cdef public PeerSession peer
    cdef public bint was_answered


cpdef object pair(OwnSession own, PeerSession peer)
@cython.locals(own=OwnSession, match=OwnLink, roles=bytearray, size=Py_ssize_t, handle=Py_ssize_t)
cpdef object add_peer_link(PeerSession session, PeerLink link)
@cython.locals(peer=PeerSession, match=PeerLink)
cpdef object add_own_link(OwnSession session, OwnLink link)
@cython.locals(link=PeerLink, own=OwnLink)
cpdef object remove_peer_link(PeerSession session, Py_ssize_t handle)
@cython.locals(link=OwnLink, peer=PeerLink)
cpdef object remove_own_link(OwnSession session, Py_ssize_t handle)
@cython.locals(links=list, link=PeerLink)
cpdef object default_outcome_of(ReceiversByName receivers, bytes name)
