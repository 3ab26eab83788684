import cython

from router.whatif.kernel.c_arrays cimport NONE


@cython.locals(node=Py_ssize_t, first=Py_ssize_t, parent=Py_ssize_t, index=Py_ssize_t, place=Py_ssize_t)
cdef Py_ssize_t number_tree(
    int* parents, Py_ssize_t root, Py_ssize_t size, int* order, int* counts, Py_ssize_t base, short* orders,
    short* sizes, short* places, Py_ssize_t places_base,
) noexcept
@cython.locals(node=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, parent=Py_ssize_t)
cdef Py_ssize_t _put_in_order(int* parents, Py_ssize_t root, Py_ssize_t size, int* order, int* counts) noexcept
