import cython

from router.whatif.kernel.c_arrays cimport array, ints, longs
from router.whatif.kernel.address_delivery cimport AddressDelivery
from router.whatif.kernel.credit_bounded_balancing cimport BalancedAddresses
from router.whatif.kernel.path_delays cimport PathDelays
from router.whatif.kernel.graph cimport Graph
from router.whatif.kernel.link_loads cimport LinkLoads
from router.whatif.kernel.ecmp_loads cimport EcmpLoads
from router.whatif.kernel.spf_trees cimport SpfTrees


@cython.final
cdef class MeshState:
    cdef Graph graph
    cdef readonly SpfTrees trees
    cdef LinkLoads traffic
    cdef AddressDelivery audience
    cdef BalancedAddresses balance
    cdef PathDelays delays

    @cython.locals(
        kept=tuple, srcs=cython.p_int, dsts=cython.p_int, rates=cython.p_longlong, volumes=cython.p_longlong,
        index=Py_ssize_t,
    )
    cdef _add_demands(self, object network)
    @cython.locals(link=Py_ssize_t, router=Py_ssize_t)
    cdef fail(self, list links, list routers)
    cdef void restore(self) noexcept
