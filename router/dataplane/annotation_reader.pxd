from router.dataplane.scan_result cimport Scan
from router.dataplane.value_skipping cimport skip, text_end

cpdef object read_annotations(bytes data, Scan found, Py_ssize_t pos, Py_ssize_t end, Py_ssize_t count, bint from_client)
