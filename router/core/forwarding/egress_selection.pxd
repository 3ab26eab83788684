import cython

from router.core.forwarding.fib cimport AddressEntry, Route
from router.core.forwarding.egress_load cimport EgressLoad


cpdef choose(AddressEntry entry, dict routes, object passed, Py_ssize_t remote_window, double now)
cpdef choose_local(AddressEntry entry)
@cython.locals(subscribers=list, count=Py_ssize_t, step=Py_ssize_t, index=Py_ssize_t)
cpdef next_local(AddressEntry entry)
@cython.locals(nearest=list, route=Route, cost=Py_ssize_t)
cdef _closest(AddressEntry entry, dict routes, object passed, double now)
@cython.locals(found=list, route=Route, best=Route, load=EgressLoad, best_load=EgressLoad, least=double, wait=double, latest=Py_ssize_t)
cdef _balanced(AddressEntry entry, dict routes, object passed, Py_ssize_t window, double now)
@cython.locals(count=Py_ssize_t, step=Py_ssize_t, index=Py_ssize_t, best_index=Py_ssize_t)
cdef _least_busy(AddressEntry entry)
@cython.locals(found=list, route=Route, is_any_sure=bint)
cpdef list candidates(AddressEntry entry, dict routes, object passed, double now)
