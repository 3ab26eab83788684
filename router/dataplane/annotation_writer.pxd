from router.dataplane.scan_result cimport Scan

cpdef bytes annotate(object data, Scan found, object to, str ingress, object trace, int phase=*, object egress=*)
cpdef bytes strip(object data, Scan found)
