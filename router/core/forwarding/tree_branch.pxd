cdef class TreeBranch:
    cdef public object neighbor
    cdef object _patience
    cdef public Py_ssize_t credit
    cdef public bint is_draining
    cdef public bint is_closed
    cdef public Py_ssize_t told_weight
    cdef public Py_ssize_t routers
    cdef public double held_s
    cdef public Py_ssize_t taken
    cdef public Py_ssize_t missed
    cdef public double excluded_at
    cdef public double readmitted_at
    cdef public double pause_s
    cdef bint _is_holding
    cdef double _noted_at

    cpdef object lose_circuit(self)
    cpdef bint exclude(self, double now)
