import cython
from router.dataplane.annotation_reader cimport read_annotations
from router.dataplane.scan_result cimport Scan
from router.dataplane.section_codes cimport *
from router.dataplane.value_skipping cimport skip

@cython.locals(found=Scan, size=Py_ssize_t, pos=Py_ssize_t, last=int, body=Py_ssize_t, code=int, end=Py_ssize_t, data=bytes)
cpdef Scan scan(object message, bint complete, bint stop_at_annotations=*, bint from_client=*)
cdef Py_ssize_t _descriptor_end(bytes data, Py_ssize_t pos, Py_ssize_t size, bint complete) except -2
@cython.locals(form=int, compound=int, end=Py_ssize_t)
cdef Py_ssize_t _section_end(bytes data, Py_ssize_t body, Py_ssize_t size, int code, bint complete) except -2
@cython.locals(code=int, count=Py_ssize_t)
cdef object _read_section(bytes data, Scan found, Py_ssize_t body, Py_ssize_t end, bint from_client)
@cython.locals(code=int)
cdef object _read_header(bytes data, Scan found, Py_ssize_t pos, Py_ssize_t end, Py_ssize_t count)
@cython.locals(stop=Py_ssize_t, code=int)
cdef object _read_properties(bytes data, Scan found, Py_ssize_t pos, Py_ssize_t end, Py_ssize_t count)
@cython.locals(end=Py_ssize_t, body=Py_ssize_t, pos=Py_ssize_t, count=Py_ssize_t, stop=Py_ssize_t, code=int)
cpdef object read_reply_to(bytes properties)
