"""Loads of links by scenario, as they are played: taken from the kernel, held as numbers, made rows of many at once.

There are a hundred times as many of these rows as of all others. So a link is a number as long as it may be: texts are
codes of a dictionary here, lists of numbers on their way through Spark, and come into the last file alone.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import MICRO, utilisation
from router.whatif.pipeline.table_layouts import SCENARIO_LOAD

LOAD_ROWS: Final = 1_000_000
"""A file of loads has not many more."""

Numbers = NDArray[np.int32]


class ScenarioLoads:
    """Loads of the scenarios that have been added, by scenario and directed link.

    Args:
        kernel: in which scenarios fail.
        only_changed: whether loads are left out that are those of the base state.
    """

    def __init__(self, kernel: Kernel, *, only_changed: bool) -> None:
        self._kernel = kernel
        self._only_changed = only_changed
        network = kernel.network
        self._every = np.arange(2 * len(network.links), dtype=np.int32)
        # Not by `byte_rates`: utilisation is worked out of the same numbers as the kernel's own.
        self._limits = np.repeat(kernel.limits(), 2, axis=0).T
        self._links = pa.array(network.links, pa.string())
        self._routers = pa.array(network.routers, pa.string())
        ends = np.stack((network.link_a, network.link_b), axis=1).reshape(-1)
        self._senders = ends.astype(np.int32)
        self._receivers = ends.reshape(-1, 2)[:, ::-1].reshape(-1).astype(np.int32)
        self._found: list[tuple[int, Numbers, NDArray[Any], NDArray[Any], NDArray[np.bool_]]] = []
        self.count = 0
        """Rows that `taken` would give."""

    def add(self, scenario: int, links: Numbers, routers: Numbers) -> None:
        """Take the loads as they are now for those of a scenario.

        Args:
            scenario: its number.
            links: that have failed, by place.
            routers: that have failed, by place.
        """
        numbers = self._kernel.changed_links() if self._only_changed else self._every
        if not len(numbers):
            return
        rates, sizes = self._kernel.loads()
        if self._only_changed:
            rates, sizes = rates[numbers], sizes[numbers]
        is_down = np.isin(numbers >> 1, links)
        if len(routers):
            is_down |= np.isin(self._senders[numbers], routers) | np.isin(self._receivers[numbers], routers)
        self._found.append((scenario, numbers, rates, sizes, is_down))
        self.count += len(numbers)

    def clear(self) -> None:
        """Forget what has not been taken."""
        self._found, self.count = [], 0

    def taken(self) -> pa.Table:
        """The rows, in the order of the table's key; none are left here. Texts are codes of a dictionary."""
        scenarios = np.array([found[0] for found in self._found], dtype=np.int64)
        numbers, rates, sizes, is_down = (np.concatenate(column) for column in list(zip(*self._found, strict=True))[1:])
        counts = [len(found[1]) for found in self._found]
        self.clear()
        columns = [
            pa.array(np.repeat(scenarios, counts)),
            pa.DictionaryArray.from_arrays(pa.array(numbers >> 1), self._links),
            pa.DictionaryArray.from_arrays(pa.array(self._senders[numbers]), self._routers),
            pa.DictionaryArray.from_arrays(pa.array(self._receivers[numbers]), self._routers),
            pa.array(rates / MICRO),
            pa.array(self._kernel.network.byte_rates(sizes) / MICRO),
            pa.array(utilisation(rates, sizes, self._limits[:, numbers])),
            pa.array(is_down),
        ]
        return pa.table(columns, names=SCENARIO_LOAD.names)


def loads_as_laid_out(rows: pa.Table) -> pa.Table:
    """Rows of `taken` with texts as the layout of the table has them."""
    return rows.cast(SCENARIO_LOAD.schema)
