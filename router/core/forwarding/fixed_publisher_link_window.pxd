import cython


@cython.locals(free=Py_ssize_t)
cpdef Py_ssize_t change(bint is_open, Py_ssize_t window, Py_ssize_t held, Py_ssize_t in_flight)
