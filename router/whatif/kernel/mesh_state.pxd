import cython

from router.whatif.kernel.arrays cimport array, ints, longs
from router.whatif.kernel.address_delivery cimport Audience
from router.whatif.kernel.balanced_addresses cimport Balance
from router.whatif.kernel.path_delays cimport Delays
from router.whatif.kernel.graph cimport Graph
from router.whatif.kernel.link_loads cimport Loads
from router.whatif.kernel.ecmp_loads cimport SplitLoads
from router.whatif.kernel.spf_trees cimport Trees


@cython.final
cdef class State:
    cdef Graph graph
    cdef readonly Trees trees
    cdef Loads traffic
    cdef Audience audience
    cdef Balance balance
    cdef Delays delays

    @cython.locals(
        kept=tuple, srcs=cython.p_int, dsts=cython.p_int, rates=cython.p_longlong, volumes=cython.p_longlong, index=int
    )
    cdef _add_demands(self, object network)
    @cython.locals(link=int, router=int)
    cdef fail(self, list links, list routers)
    cdef void restore(self) noexcept
