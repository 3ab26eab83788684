import cython

from router.simulation.whatif.arrays cimport array, ints, longs
from router.simulation.whatif.audience cimport Audience
from router.simulation.whatif.balance cimport Balance
from router.simulation.whatif.delays cimport Delays
from router.simulation.whatif.graph cimport Graph
from router.simulation.whatif.loads cimport Loads
from router.simulation.whatif.split cimport SplitLoads
from router.simulation.whatif.trees cimport Trees


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
