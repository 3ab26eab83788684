cdef class LinkEventHandler:
    cpdef size_t pump(self, size_t collector) except? 0
    cpdef Py_ssize_t sent(self) except? -1


cdef class DataPlane:
    cdef public LinkEventHandler reader
    cdef public object current_settings
