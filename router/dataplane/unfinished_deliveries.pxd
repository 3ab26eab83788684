import cython

from router.binding.proton_functions cimport *
from router.dataplane.links cimport IngressLink
from router.dataplane.arrival_progress cimport ArrivalProgress
from router.dataplane.transfer_stages cimport *


cdef class UnfinishedDeliveries:
    cdef public double due
    cdef object _settings
    cdef dict _links
    cdef dict _by_session

    cpdef object watch(self, IngressLink link, Py_ssize_t received, double now)
    @cython.locals(siblings=dict)
    cpdef object forget(self, IngressLink link)
    @cython.locals(sibling=IngressLink, finished=list, has_other=bint)
    cpdef bint has_sibling(self, IngressLink link) except -1
    @cython.locals(link=IngressLink, progress=ArrivalProgress)
    cpdef list stalled(self, double now)
    cpdef double window_of(self, IngressLink link)
    @cython.locals(sibling=IngressLink, progress=ArrivalProgress)
    cdef bint _is_blocked(self, IngressLink link, double since) except -1
    @cython.locals(delivery=size_t)
    cdef bint _is_finished(self, IngressLink link) except -1
