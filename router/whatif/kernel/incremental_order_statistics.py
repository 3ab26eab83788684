# cython: cdivision=True
"""Order statistics of many numbers of which a few are exchanged, again and again."""

from __future__ import annotations

from array import array

import cython

if not cython.compiled:  # else they come by the .pxd
    from router.whatif.kernel.c_arrays import longs


class IncrementalOrderStatistics:
    """Numbers, some taken out and some put in."""

    def __init__(self, values: array[int]) -> None:
        """Keep the first values.

        Args:
            values: type code `q`, ascending, none negative, and one more cell.
        """
        self.replace(values)
        self.room = 256
        self._added = array("q", bytes(8 * self.room))
        self.added = longs(self._added)
        self._removed = array("q", bytes(8 * self.room))
        self.removed = longs(self._removed)
        self.below = 0

    def replace(self, values: array[int]) -> None:
        """Other numbers that are there first."""
        self.count = len(values) - 1
        self._values = values
        self.values = longs(self._values)
        self.added_count = self.removed_count = 0

    def reset(self) -> None:
        """The numbers that were there first."""
        self.added_count = self.removed_count = 0

    def add(self, value: int) -> None:
        """Put a number in."""
        if self.added_count == self.room:
            self._make_room()
        self.added[self.added_count] = value
        self.added_count += 1

    def remove(self, value: int) -> None:
        """Take out a number that is there."""
        if self.removed_count == self.room:
            self._make_room()
        self.removed[self.removed_count] = value
        self.removed_count += 1

    def _make_room(self) -> None:
        """Twice as many can be put in and taken out."""
        self._added.extend(array("q", bytes(8 * self.room)))
        self.added = longs(self._added)
        self._removed.extend(array("q", bytes(8 * self.room)))
        self.removed = longs(self._removed)
        self.room *= 2

    def size(self) -> int:
        """Number of the numbers that are there now."""
        return self.count - self.removed_count + self.added_count

    def percentile(self, percent: int) -> int:
        """The number that so many percent of the numbers do not exceed, from 1 to 100; there must be one."""
        return self.at((percent * self.size() + 99) // 100)

    def at(self, rank: int) -> int:
        """The number that has this rank in ascending order, from 1 to `size`.

        Raises: IndexError when no number has it.
        """
        if not 1 <= rank <= self.size():
            raise IndexError(f"no rank {rank}; there are {self.size()} numbers")
        if self.count == 0:
            return self._select(rank - 1)
        # What was put in and taken out moves a rank so far at most.
        first = rank - 1 - self.added_count
        low = self.values[first] if first >= 0 else 0
        last = rank - 1 + self.removed_count
        if last < self.count:
            high = self.values[last]
        else:
            high = self.values[self.count - 1]
            for index in range(self.added_count):
                high = max(high, self.added[index])
        self.below = 0
        added = self._bring_forward(self.added, self.added_count, low, high, 1)
        removed = self._bring_forward(self.removed, self.removed_count, low, high, -1)
        while low < high:
            middle = (low + high) // 2
            found = self.below + self._count_to(middle)
            for index in range(added):
                found += self.added[index] <= middle
            for index in range(removed):
                found -= self.removed[index] <= middle
            if found >= rank:
                high = middle
            else:
                low = middle + 1
        return low

    def _bring_forward(self, values: array[int], count: int, low: int, high: int, sign: int) -> int:
        """Put the values from *low* to below *high* before all others, and count the lower ones in `below`.

        Returns: how many were put there.
        """
        near = 0
        for index in range(count):
            value = values[index]
            if value < low:
                self.below += sign
            elif value < high:
                values[index] = values[near]
                values[near] = value
                near += 1
        return near

    def _count_to(self, value: int) -> int:
        """Number of the first values that are not greater."""
        first = 0
        last = self.count
        while first < last:
            middle = (first + last) // 2
            if self.values[middle] <= value:
                first = middle + 1
            else:
                last = middle
        return first

    def _select(self, place: int) -> int:
        """Value of the added ones that has *place* others before it (Hoare's selection)."""
        values = self.added
        low = 0
        high = self.added_count - 1
        while low < high:
            pivot = values[(low + high) // 2]
            left = low
            right = high
            while left <= right:
                while values[left] < pivot:
                    left += 1
                while values[right] > pivot:
                    right -= 1
                if left <= right:
                    value = values[left]
                    values[left] = values[right]
                    values[right] = value
                    left += 1
                    right -= 1
            if place <= right:
                high = right
            elif place >= left:
                low = left
            else:
                break
        return values[place]
