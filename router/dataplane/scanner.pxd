import cython
from router.dataplane.scan_result cimport Scan

@cython.locals(found=Scan, size=Py_ssize_t, pos=Py_ssize_t, last=int, body=Py_ssize_t, code=int, end=Py_ssize_t, raw=bytes)
cpdef Scan scan(object data, bint complete, bint stop_at_annotations=*, bint from_client=*)
cdef Py_ssize_t _descriptor_end(bytes data, Py_ssize_t pos, Py_ssize_t size, bint complete) except -2
@cython.locals(form=int, compound=int, end=Py_ssize_t)
cdef Py_ssize_t _section_end(bytes data, Py_ssize_t body, Py_ssize_t size, int code, bint complete) except -2
cdef object _read_section(bytes data, Scan found, Py_ssize_t body, Py_ssize_t end, bint from_client)
cdef object _read_header(bytes data, Scan found, Py_ssize_t pos, Py_ssize_t end, Py_ssize_t count)
cdef object _read_properties(bytes data, Scan found, Py_ssize_t pos, Py_ssize_t end, Py_ssize_t count)
