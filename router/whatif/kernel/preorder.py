"""Trees in pre-order: all that is below a router is a slice."""

from __future__ import annotations

from array import array

import cython

if not cython.compiled:  # else they come by the .pxd
    from router.whatif.kernel.c_arrays import NONE


def number_tree(
    parents: array[int],
    root: int,
    size: int,
    order: array[int],
    counts: array[int],
    base: int,
    orders: array[int],
    sizes: array[int],
    places: array[int],
    places_base: int,
) -> int:
    """Put a tree in pre-order.

    Args:
        parents: by router, of `size`; NONE for the root and for who is not in the tree.
        root: router at the root, by place.
        size: number of routers.
        order: of `size`; becomes the routers below the root so that each comes after its parent, at the end.
        counts: of `size`, to work with.
        base: first cell of the row in `orders` and `sizes`.
        orders: becomes the routers in pre-order.
        sizes: becomes, by place in that order, how many a router and those below it are.
        places: becomes the place by router, from its cell `places_base` on.
        places_base: first cell of the row in `places`.
    Returns: where `order` begins.
    """
    first = _put_in_order(parents, root, size, order, counts)
    for node in range(size):
        counts[node] = 1
    for index in range(size - 1, first - 1, -1):
        counts[parents[order[index]]] += counts[order[index]]
    places[places_base + root] = 0
    orders[base] = root
    sizes[base] = counts[root]
    # From here on a count is the next free place below a router.
    counts[root] = 1
    for index in range(first, size):
        node = order[index]
        parent = parents[node]
        place = counts[parent]
        places[places_base + node] = place
        orders[base + place] = node
        sizes[base + place] = counts[node]
        counts[parent] = place + counts[node]
        counts[node] = place + 1
    return first


def _put_in_order(parents: array[int], root: int, size: int, order: array[int], counts: array[int]) -> int:
    """Fill *order* as `number_tree` says. Returns: where it begins."""
    for node in range(size):
        counts[node] = 0
    for node in range(size):
        if parents[node] != NONE:
            counts[parents[node]] += 1
    first = size
    for node in range(size):
        if counts[node] == 0 and parents[node] != NONE:
            first -= 1
            order[first] = node
    # Leaves first, from the end of `order`; who has given all children gets in.
    last = size
    while last > first:
        last -= 1
        parent = parents[order[last]]
        counts[parent] -= 1
        if counts[parent] == 0 and parent != root:
            first -= 1
            order[first] = parent
    return first
