import cython


@cython.freelist(64)
@cython.no_gc
cdef class Scan:
    cdef public Py_ssize_t annotations_start
    cdef public Py_ssize_t properties_start
    cdef public Py_ssize_t properties_end
    cdef public Py_ssize_t rest_offset
    cdef public Py_ssize_t user_start
    cdef public Py_ssize_t user_end
    cdef public Py_ssize_t user_count
    cdef public bint has_router_annotations
    cdef public object to
    cdef public object user_id
    cdef public object to_override
    cdef public int phase
    cdef public bint stream
    cdef public object ingress
    cdef public object egress
    cdef public tuple trace
    cdef public int priority
    cdef public object ttl_ms
