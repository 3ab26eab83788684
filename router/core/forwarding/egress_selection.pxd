import cython

from router.core.forwarding.fib cimport AddressEntry, Route
from router.core.forwarding.egress_load cimport EgressLoad


cpdef choose(AddressEntry entry, dict routes, object passed, Py_ssize_t remote_window, double now, object local)
@cython.locals(nearest=list, route=Route, cost=Py_ssize_t)
cdef _closest(AddressEntry entry, dict routes, object passed, double now, object local)
@cython.locals(found=list, route=Route, best=Route, load=EgressLoad, best_load=EgressLoad, least=double, wait=double, latest=Py_ssize_t)
cdef _balanced(AddressEntry entry, dict routes, object passed, Py_ssize_t window, double now, object local)
@cython.locals(found=list, route=Route, is_any_sure=bint)
cpdef list candidates(AddressEntry entry, dict routes, object passed, double now)
