import cython


cpdef Py_ssize_t first_window(Py_ssize_t most)
cpdef bint is_used(Py_ssize_t window, Py_ssize_t used)
cpdef Py_ssize_t grown(Py_ssize_t window, Py_ssize_t most)
cpdef Py_ssize_t shrunk(Py_ssize_t window)


cdef class DoublingWindow:
    cdef public double since
    cdef public Py_ssize_t window
    cdef public Py_ssize_t used
    cdef public Py_ssize_t goal
    cdef public double look_s
    cdef public double look_at
    cdef public Py_ssize_t to_use
    cdef public bint was_slow

    @cython.locals(is_look=bint)
    cpdef bint use(self, double now, Py_ssize_t most, Py_ssize_t left)
    cpdef object rest(self, Py_ssize_t window)
