import cython


cdef class Route:
    cdef public object router
    cdef public object connection
    cdef public object next_hop
    cdef public Py_ssize_t cost
    cdef public double doubtful_until


cdef class AddressEntry:
    cdef public str text
    cdef public object kind
    cdef public object treatment
    cdef public Py_ssize_t group
    cdef public object owner
    cdef public list subscribers
    cdef public dict remotes
    cdef public dict publishers
    cdef public object controller
    cdef public double distance
    cdef public object service
    cdef public Py_ssize_t service_bytes
    cdef public object waiting
    cdef public list names
    cdef public Py_ssize_t waiting_bytes
    cdef public Py_ssize_t turn
    cdef public object holder
    cdef public double stream_debt_s
    cdef public double stream_debt_at
    cdef public Py_ssize_t ingress
    cdef public Py_ssize_t egress
    cdef public Py_ssize_t transit
    cdef public Py_ssize_t released
    cdef public Py_ssize_t dropped


cdef class Fib:
    cdef public object me
    cdef public object treatments
    cdef public dict routes
    cdef public dict _mobile
    cdef public dict _local
    cdef public dict _toward
    cdef public dict _reply
    cdef public dict _trees
    cdef public list groups
    cdef public list gone
    cdef public list times
    cdef dict _places
    cdef list _place_of_rule
    cdef public dict _targets
    cdef object _tree_of
    cdef object _flood_of
    cdef dict _floods

    cpdef AddressEntry find(self, str text)
    @cython.locals(entry=AddressEntry)
    cpdef AddressEntry target(self, str text)
    cdef _forget_names(self, AddressEntry entry)
    cpdef Route route(self, object router)
