import cython

from router.dataplane.links cimport Transfer
from router.dataplane.transfer_stages cimport *

cdef extern from *:
    """
    static inline int next_stage(int stage, int event) {
        static const signed char next[8][10] = {
            {1, -1, 7, 0, 2, 3, 4, 6, -1, 5},
            {-1, 0, -1, -1, -1, -1, -1, -1, -1, 5},
            {-1, -1, -1, 0, -1, -1, -1, -1, -1, 5},
            {-1, -1, -1, -1, -1, -1, 4, 6, -1, 5},
            {-1, -1, -1, -1, -1, -1, -1, 6, -1, 5},
            {-1, -1, -1, -1, -1, -1, -1, -1, -1, 5},
            {-1, -1, -1, -1, -1, -1, -1, -1, 0, 5},
            {1, -1, 7, 0, 2, -1, -1, -1, -1, 5},
        };
        return next[stage][event];
    }
    """
    int next_stage(int stage, int event) noexcept

@cython.locals(stage=int)
cpdef object advance(Transfer transfer, int event)
