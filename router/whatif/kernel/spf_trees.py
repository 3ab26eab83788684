# cython: cdivision=True
"""The tree of shortest paths of every router, and its repair when links or routers fail.

The trees are those of `router/core/linkstate/spf.py`: of the predecessors that a shortest path may use, the one with
the least (distance from the root, id). A failure changes nothing outside the subtrees below failed links: distances
there stay, and the predecessor that was chosen is still there and still the least. So only these subtrees are taken off
and attached again, by Dijkstra's algorithm restricted to their routers; a base state is made in the same way, from a
tree of which all is taken off. What is changed is logged, and `restore` takes it back.

On the hot path: numbers in flat arrays. A matrix has a row for each root, and in it a place for each router. A slot is
the place of an arc among those of one router.
"""

from __future__ import annotations

from array import array

import cython

from router.whatif.kernel.graph import Graph

if not cython.compiled:  # else they come by the .pxd
    from router.whatif.kernel.c_arrays import FAR, NONE, ints, longs, shorts
    from router.whatif.kernel.preorder import number_tree


class SpfTrees:
    """The trees of all routers as they are now: the base state, or one with failures."""

    def __init__(self, graph: Graph, origin: SpfTrees | None = None) -> None:
        """The base state.

        Args:
            graph: in the state that is the base.
            origin: trees of the same mesh in its own base state, before something failed in *graph*, which is not yet
                kept there: from them it takes less time.
        """
        self.graph = graph
        self._take_pointers(self.graph)
        self._make_state(self.size, origin is None)
        self._make_log(self.size)
        if origin is None:
            self._grow()
        else:
            self._inherit(origin)
        self._list_users()
        self._sizes = array("h", bytes(2))
        self.sizes = shorts(self._sizes)
        self.graph.keep_failures()
        self._put_base_slots()

    def _take_pointers(self, graph: Graph) -> None:
        """Keep pointers to the arrays that are often looked at."""
        self.size = graph.size
        self.firsts = graph.firsts
        self.heads = graph.heads
        self.backs = graph.backs
        self.pairs = graph.pairs
        self.costs = graph.costs
        self.used_links = graph.used_links
        self.dead = graph.dead

    def _make_state(self, n: int, is_new: bool) -> None:
        """Matrices, and what a repair needs for one root."""
        if is_new:
            self._distances = array("i", [FAR]) * (n * n)
            self.distances = ints(self._distances)
            self._slots = array("h", [NONE]) * (n * n)
            self.slots = shorts(self._slots)
            self._vias = array("h", [NONE]) * (n * n)
            self.vias = shorts(self._vias)
            self._orders = array("h", bytes(2 * n * n))
            self.orders = shorts(self._orders)
        self._sizes = array("h", bytes(2 * n * n))
        self.sizes = shorts(self._sizes)
        self._base_slots = array("h", bytes(2 * n * n))
        self.base_slots = shorts(self._base_slots)
        self._kept_rows = array("h", [NONE]) * n
        self.kept_rows = shorts(self._kept_rows)
        self._kept_vias = array("h", [NONE])
        self.kept_vias = shorts(self._kept_vias)
        self._kept_stamps = array("i", [0])
        self.kept_stamps = ints(self._kept_stamps)
        self.kept_stamp = 0
        self.kept_row = NONE
        self._kept_log = array("i", [NONE])
        self.kept_log = ints(self._kept_log)
        self.kept_count = 0
        self._pending = array("i", bytes(4 * n))
        self.pending = ints(self._pending)
        self._touched = array("i", bytes(4 * n))
        self.touched = ints(self._touched)
        self._nearest = array("i", bytes(4 * n))
        self.nearest = ints(self._nearest)
        self._nearer = array("i", bytes(4 * n))
        self.nearer = ints(self._nearer)
        self._ways_in = array("i", bytes(4 * n))
        self.ways_in = ints(self._ways_in)
        self._places = array("h", bytes(2 * n))
        self.places = shorts(self._places)
        # A router is offered once at first, then at most once over each of its arcs.
        self._heap = array("q", bytes(8 * (n + self.graph.arcs + 1)))
        self.heap = longs(self._heap)
        self.is_base = False

    def _make_log(self, n: int) -> None:
        """Make the log of what failures changed: each pair of a root and a router at most once."""
        self._log_roots = array("h", bytes(2 * n * n))
        self.log_roots = shorts(self._log_roots)
        self._log_nodes = array("h", bytes(2 * n * n))
        self.log_nodes = shorts(self._log_nodes)
        self._log_distances = array("i", bytes(4 * n * n))
        self.log_distances = ints(self._log_distances)
        self._log_slots = array("h", bytes(2 * n * n))
        self.log_slots = shorts(self._log_slots)
        self._log_new_slots = array("h", bytes(2 * n * n))
        self.log_new_slots = shorts(self._log_new_slots)
        self.log_size = 0
        self._touched_roots = array("i", bytes(4 * n))
        self.touched_roots = ints(self._touched_roots)
        self.touched_count = 0
        self._segments = array("i", [NONE]) * n
        self.segments = ints(self._segments)

    # The base state.

    def _grow(self) -> None:
        """All trees from nothing."""
        n = self.size
        self.is_base = True
        for root in range(n):
            count = 0
            for node in range(n):
                if node != root:
                    self.touched[count] = node
                    self.pending[node] = 1
                    count += 1
            self.distances[root * n + root] = 0
            self._attach(root, count)
            self.log_size = 0
            self._number(root)
        self.is_base = False

    def _list_users(self) -> None:
        """List for each arc the roots that reach its head over it, and the slices of their trees below it."""
        n = self.size
        arcs = self.graph.arcs
        self._user_firsts = array("i", bytes(4 * arcs + 8))
        self.user_firsts = ints(self._user_firsts)
        for root in range(n):
            for place in range(1, self.sizes[root * n]):
                self.user_firsts[self.arc_to(root, self.orders[root * n + place]) + 1] += 1
        for arc in range(arcs):
            self.user_firsts[arc + 1] += self.user_firsts[arc]
        count = self.user_firsts[arcs]
        self._user_roots = array("h", bytes(2 * count + 2))
        self.user_roots = shorts(self._user_roots)
        self._user_starts = array("h", bytes(2 * count + 2))
        self.user_starts = shorts(self._user_starts)
        self._user_sizes = array("h", bytes(2 * count + 2))
        self.user_sizes = shorts(self._user_sizes)
        self._user_nexts = array("i", bytes(4 * count + 4))
        self.user_nexts = ints(self._user_nexts)
        filled = array("i", self._user_firsts)
        free = ints(filled)
        for root in range(n):
            for place in range(1, self.sizes[root * n]):
                arc = self.arc_to(root, self.orders[root * n + place])
                user = free[arc]
                free[arc] = user + 1
                self.user_roots[user] = root
                self.user_starts[user] = place
                self.user_sizes[user] = self.sizes[root * n + place]

    def _inherit(self, origin: SpfTrees) -> None:
        """The trees of another base state, repaired for what has failed in the graph."""
        n = self.size
        self._distances = array("i", origin._distances)
        self.distances = ints(self._distances)
        self._slots = array("h", origin._slots)
        self.slots = shorts(self._slots)
        self._vias = array("h", origin._vias)
        self.vias = shorts(self._vias)
        self._orders = array("h", origin._orders)
        self.orders = shorts(self._orders)
        # What uses an arc is looked up in the old lists, then listed anew.
        self._user_firsts = origin._user_firsts
        self.user_firsts = ints(self._user_firsts)
        self._user_roots = origin._user_roots
        self.user_roots = shorts(self._user_roots)
        self._user_starts = origin._user_starts
        self.user_starts = shorts(self._user_starts)
        self._user_sizes = origin._user_sizes
        self.user_sizes = shorts(self._user_sizes)
        self._user_nexts = array("i", bytes(4 * len(self._user_roots)))
        self.user_nexts = ints(self._user_nexts)
        for root in range(n):
            self.sizes[root * n] = 1
        for user in range(self.user_firsts[self.graph.arcs]):
            root = self.user_roots[user]
            self.sizes[root * n + self.user_starts[user]] = self.user_sizes[user]
            self.sizes[root * n] += 1
        self.is_base = True
        self.repair()
        for index in range(self.touched_count):
            self._number(self.touched_roots[index])
        self.is_base = False
        self.log_size = self.touched_count = 0

    def _number(self, root: int) -> None:
        """Put a tree that was attached in pre-order."""
        base = root * self.size
        parents = self.nearest
        for node in range(self.size):
            via = self.vias[base + node]
            parents[node] = NONE if via == NONE else self.heads[self.firsts[node] + via]
        number_tree(parents, root, self.size, self.touched, self.nearer, base, self.orders, self.sizes, self.places, 0)

    def _put_base_slots(self) -> None:
        """Next hops in the base state by destination, for walks along the tree toward it."""
        n = self.size
        for root in range(n):
            for node in range(n):
                self.base_slots[node * n + root] = self.slots[root * n + node]

    def keep(self, roots: array[int]) -> None:
        """Have the predecessors of these trees at hand after failures too, for multicasts. Only in the base state.

        Args:
            roots: type code `i`, each once.
        """
        n = self.size
        count = len(roots)
        self._kept_vias = array("h", [NONE]) * (count * n + 1)
        self.kept_vias = shorts(self._kept_vias)
        self._kept_stamps = array("i", [0]) * (count * n + 1)
        self.kept_stamps = ints(self._kept_stamps)
        self._kept_log = array("i", [NONE]) * (2 * count * n + 1)
        self.kept_log = ints(self._kept_log)
        places = ints(roots)
        for row in range(count):
            root = places[row]
            self.kept_rows[root] = row
            for node in range(n):
                self.kept_vias[row * n + node] = self.vias[root * n + node]

    def kept_arc_to(self, root: int, node: int) -> int:
        """The arc over which the tree of *root*, which is kept, reaches *node* now; NONE when it does not."""
        via = self.kept_vias[self.kept_rows[root] * self.size + node]
        return NONE if via == NONE else self.backs[self.firsts[node] + via]

    def arc_to(self, root: int, node: int) -> int:
        """The arc over which the base tree of *root* reaches *node*; NONE when it does not."""
        via = self.vias[root * self.size + node]
        return NONE if via == NONE else self.backs[self.firsts[node] + via]

    # Failures.

    def repair(self) -> None:
        """Make the trees those of what is left."""
        self._next_stamp()
        graph = self.graph
        for index in range(graph.hit_count):
            pair = graph.hits[index]
            if graph.choose_links(pair):
                self._take_off(graph.forths[pair])
                self._take_off(self.backs[graph.forths[pair]])
        for index in range(self.touched_count):
            root = self.touched_roots[index]
            self._attach(root, self._collect(root))

    def _next_stamp(self) -> None:
        """Take another stamp, with which all marks made so far are void."""
        self.kept_stamp += 1
        if self.kept_stamp == FAR:
            for place in range(len(self._kept_stamps)):
                self.kept_stamps[place] = 0
            self.kept_stamp = 1

    def distance_to(self, dst: int, node: int) -> int:
        """Distance from *node* to *dst* now; read where those to *dst* lie together if costs have no direction."""
        if self.graph.has_asymmetric_costs:
            return self.distances[node * self.size + dst]
        return self.distances[dst * self.size + node]

    def was_attached(self, root: int, node: int) -> bool:
        """Whether a router was attached again to the tree of *root*, which is kept: else its path is what it was."""
        return self.kept_stamps[self.kept_rows[root] * self.size + node] == self.kept_stamp

    def _take_off(self, arc: int) -> None:
        """Note what has to be attached again at every root that uses an arc."""
        for user in range(self.user_firsts[arc], self.user_firsts[arc + 1]):
            root = self.user_roots[user]
            if self.segments[root] == NONE:
                self.touched_roots[self.touched_count] = root
                self.touched_count += 1
            self.user_nexts[user] = self.segments[root]
            self.segments[root] = user

    def _collect(self, root: int) -> int:
        """Mark the routers that were taken off the tree of *root*. Returns: how many they are."""
        count = 0
        user = self.segments[root]
        self.segments[root] = NONE
        while user != NONE:
            start = root * self.size + self.user_starts[user]
            for place in range(start, start + self.user_sizes[user]):
                node = self.orders[place]
                if not self.pending[node]:
                    self.pending[node] = 1
                    self.touched[count] = node
                    count += 1
            user = self.user_nexts[user]
        return count

    def restore(self) -> None:
        """Take back every failure."""
        n = self.size
        for index in range(self.log_size):
            at = self.log_roots[index] * n + self.log_nodes[index]
            self.distances[at] = self.log_distances[index]
            self.slots[at] = self.log_slots[index]
        self.log_size = 0
        for index in range(self.kept_count):
            self.kept_vias[self.kept_log[2 * index]] = self.vias[self.kept_log[2 * index + 1]]
        self.kept_count = 0
        self.touched_count = 0
        self.graph.restore()

    # Views of the arrays, for numpy.

    def log_pairs(self) -> tuple[array[int], array[int]]:
        """Roots and routers of which something has changed, as many as `log_size` says, type code `h`."""
        return self._log_roots, self._log_nodes

    def log_costs(self) -> array[int]:
        """Distances of these before, type code `i`."""
        return self._log_distances

    def costs_now(self) -> array[int]:
        """The matrix of distances, type code `i`; FAR where there is no path."""
        return self._distances

    # Both.

    def _attach(self, root: int, count: int) -> None:
        """Attach the first *count* touched routers, which are pending, to the tree of *root* again."""
        firsts, heads, costs, pending = self.firsts, self.heads, self.costs, self.pending
        nearest, nearer, ways_in, heap = self.nearest, self.nearer, self.ways_in, self.heap
        base = root * self.size
        waiting = 0
        self.kept_row = self.kept_rows[root]
        if not self.dead[root]:
            for index in range(count):
                node = self.touched[index]
                self._offer(base, node)
                if nearest[node] < FAR:
                    through = nearest[node]
                    _push(heap, waiting, (through << 16) | node)
                    waiting += 1
        while waiting > 0:
            waiting -= 1
            key = _pop(heap, waiting)
            node = key & 0xFFFF
            if pending[node]:  # else it was offered again, nearer, later
                pending[node] = 0
                distance = key >> 16
                self._settle(root, node, distance, ways_in[node])
                for arc in range(firsts[node], firsts[node + 1]):
                    peer = heads[arc]
                    if pending[peer]:
                        through = distance + costs[arc]
                        if through < nearest[peer]:
                            nearest[peer] = through
                            nearer[peer] = distance
                            ways_in[peer] = self.backs[arc]
                            _push(heap, waiting, (through << 16) | peer)
                            waiting += 1
                        elif through == nearest[peer] and (
                            distance < nearer[peer] or (distance == nearer[peer] and node < heads[ways_in[peer]])
                        ):
                            nearer[peer] = distance
                            ways_in[peer] = self.backs[arc]
        for index in range(count):
            node = self.touched[index]
            if pending[node]:
                pending[node] = 0
                self._settle(root, node, FAR, NONE)

    def _offer(self, base: int, node: int) -> None:
        """The best way to a pending router from a neighbor that is not pending: by (cost, distance of that, its id)."""
        nearest = nearer = FAR
        way_in = NONE
        for arc in range(self.firsts[node], self.firsts[node + 1]):
            peer = self.heads[arc]
            if not self.pending[peer]:
                distance = self.distances[base + peer]
                through = distance + self.costs[self.backs[arc]]
                # Heads ascend: of equally near ones the first is the one with the least id.
                if through < nearest or (through == nearest and distance < nearer):
                    nearest = through
                    nearer = distance
                    way_in = arc
        self.nearest[node] = nearest
        self.nearer[node] = nearer
        self.ways_in[node] = way_in

    def _settle(self, root: int, node: int, distance: int, way_in: int) -> None:
        """Set the place of a router in the tree; its predecessor is there already."""
        base = root * self.size
        at = base + node
        slot = via = NONE
        if way_in != NONE:
            peer = self.heads[way_in]
            slot = self.backs[way_in] - self.firsts[root] if peer == root else self.slots[base + peer]
            via = way_in - self.firsts[node]
        if self.is_base:
            self.vias[at] = via
        elif self.kept_row != NONE:
            self._keep_via(at, self.kept_row * self.size + node, via)
        if distance != self.distances[at] or slot != self.slots[at]:
            index = self.log_size
            self.log_roots[index] = root
            self.log_nodes[index] = node
            self.log_distances[index] = self.distances[at]
            self.log_slots[index] = self.slots[at]
            self.log_new_slots[index] = slot
            self.log_size = index + 1
            self.distances[at] = distance
            self.slots[at] = slot

    def _keep_via(self, at: int, place: int, via: int) -> None:
        self.kept_stamps[place] = self.kept_stamp
        if self.kept_vias[place] != via:
            self.kept_log[2 * self.kept_count] = place
            self.kept_log[2 * self.kept_count + 1] = at
            self.kept_count += 1
            self.kept_vias[place] = via


def _push(heap: array[int], size: int, key: int) -> None:
    """Put a key into a binary heap of *size* others."""
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        if heap[parent] <= key:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = key


def _pop(heap: array[int], size: int) -> int:
    """Take the least key out of a binary heap, in which *size* others are left."""
    least = heap[0]
    key = heap[size]
    place = 0
    child = 1
    while child < size:
        if child + 1 < size:
            child += heap[child + 1] < heap[child]
        if key <= heap[child]:
            break
        heap[place] = heap[child]
        place = child
        child = 2 * place + 1
    heap[place] = key
    return least
