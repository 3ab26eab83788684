import cython

from router.whatif.kernel.c_arrays cimport NONE


@cython.locals(node=int, first=int, parent=int, index=int, place=int)
cdef int number_tree(
    int* parents, int root, int size, int* order, int* counts, int base, short* orders, short* sizes, short* places,
    int places_base,
) noexcept
@cython.locals(node=int, first=int, last=int, parent=int)
cdef int _put_in_order(int* parents, int root, int size, int* order, int* counts) noexcept
