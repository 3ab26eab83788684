cdef class LinkCounters:
    cdef public Py_ssize_t accepted
    cdef public Py_ssize_t deliveries
    cdef public Py_ssize_t dropped
    cdef public Py_ssize_t modified
    cdef public Py_ssize_t presettled
    cdef public Py_ssize_t rejected
    cdef public Py_ssize_t released
