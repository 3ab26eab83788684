import cython

from router.binding.proton_functions cimport *
from router.dataplane.credit_controller cimport CreditController
from router.dataplane.links cimport EgressLink, IngressLink, Transfer
from router.dataplane.transfer_stages cimport *


cdef class MulticastController(CreditController):
    cdef public dict _known

    @cython.locals(link=IngressLink, is_first=bint)
    cpdef object take(self, Transfer transfer)
    cdef _drop_counted(self, Transfer transfer, IngressLink link)
    cpdef bint _is_ready(self, Transfer transfer)
    cpdef bint _restate(self, double now)
