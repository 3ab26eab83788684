# What c_arrays.py is to compiled modules: pointers into arrays, which the caller keeps alive, and the same numbers.
# Whatever is not in an array is 64 bits wide: a matrix of 32,000 routers has more bytes than 32 bits can count.

from cpython.array cimport array

cdef enum:
    FAR = 0x3FFFFFFF
    NONE = -1
    CAUSES = 10
    CLOSEST = 0
    BALANCED = 1
    MULTICAST = 2
    BOUNDED = 3

cdef inline signed char* bytes_of(array cells):
    assert cells.ob_descr.typecode == 98
    return cells.data.as_schars

cdef inline short* shorts(array cells):
    assert cells.ob_descr.typecode == 104
    return cells.data.as_shorts

cdef inline int* ints(array cells):
    assert cells.ob_descr.typecode == 105
    return cells.data.as_ints

cdef inline long long* longs(array cells):
    assert cells.ob_descr.typecode == 113
    return cells.data.as_longlongs

cdef inline double* doubles(array cells):
    assert cells.ob_descr.typecode == 100
    return cells.data.as_doubles
