import cython


@cython.locals(free=Py_ssize_t)
cpdef Py_ssize_t change(bint is_open, Py_ssize_t window, Py_ssize_t held, Py_ssize_t in_flight)

cpdef Py_ssize_t first_window(Py_ssize_t most)
cpdef bint is_used(Py_ssize_t window, Py_ssize_t used)
cpdef Py_ssize_t grown(Py_ssize_t window, Py_ssize_t most)
cpdef Py_ssize_t shrunk(Py_ssize_t window)
