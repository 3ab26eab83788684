"""Maximum load and loss over the scenarios of some families, computed in process: for searches over many meshes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import MICRO, Network, capacity_units
from router.whatif.kernel.scenario_loop import fail_one_by_one
from router.whatif.model.mesh_model import Model
from router.whatif.scenarios.failure_families import Batch, FailureCandidates, Family
from router.whatif.scenarios.scenario_plan import LARGEST_CHUNK, Plan
from router.whatif.wording import BASE

TRIES: Final = 2_000
"""Meshes that a search plays at most, unless it is told otherwise."""

Floats = NDArray[np.float64]


@attrs.frozen(kw_only=True, eq=False)
class FailureSweep:
    """Worst of what happens to a mesh; the mesh as it is, with nothing failed, is one scenario."""

    max_utilisation: float
    """Maximum utilisation of any link with a known capacity in any scenario."""
    lost_pairs: int
    """Most ordered pairs of living routers that lose each other."""
    lost_msgs_per_s: float
    """Most messages/s that reach nobody."""
    loads: Floats
    """Highest load in either direction, by link: millionths of messages/s and of bytes/s."""

    @classmethod
    def of(cls, model: Model, families: Sequence[Family], *, is_split: bool = False) -> FailureSweep:
        """Play all scenarios.

        Args:
            model: that has been checked.
            families: of failures.
            is_split: as `Kernel` has it.
        Raises: NetworkError; PlanError for families that a run of the model refuses, too.
        """
        plan = Plan.of([(BASE, FailureCandidates.of(model))], families)
        network = Network.of(model)
        kernel = Kernel(network, is_split=is_split, has_percentiles=False)
        rates, sizes = (each.copy() for each in kernel.base_loads())
        highest, pairs, lost = kernel.max_utilisation, 0, kernel.lost_rate
        for batch in _batches(plan):
            for _ in fail_one_by_one(
                kernel,
                batch.links.tolist(),
                batch.link_offsets.tolist(),
                batch.routers.tolist(),
                batch.router_offsets.tolist(),
            ):
                now_rates, now_sizes = kernel.loads()
                np.maximum(rates, now_rates, out=rates)
                np.maximum(sizes, now_sizes, out=sizes)
                highest = max(highest, kernel.max_utilisation)
                pairs = max(pairs, kernel.unreachable_pairs - kernel.dead_end_pairs)
                lost = max(lost, kernel.lost_rate)
        both = np.stack((rates.astype(np.float64), network.byte_rates(sizes)), axis=1)
        return cls(
            max_utilisation=highest,
            lost_pairs=pairs,
            lost_msgs_per_s=lost / MICRO,
            loads=both.reshape(-1, 2, 2).max(axis=1),
        )

    def utilisations(self, model: Model) -> Floats:
        """Highest utilisation by link of the model that was played, as a share; 0 where no capacity is known."""
        limits = np.array(
            [[capacity_units(link.capacity_msgs), capacity_units(link.capacity_bytes)] for link in model.links],
            dtype=np.float64,
        ).reshape(-1, 2)
        found: Floats = (self.loads / limits).max(axis=1, initial=0.0)
        return found


def _batches(plan: Plan) -> Iterator[Batch]:
    """All failures of a plan, never so many at once that they take much memory."""
    for first in range(0, len(plan), LARGEST_CHUNK):
        for _, _, batch in plan.batches(first, min(first + LARGEST_CHUNK, len(plan))):
            yield batch
