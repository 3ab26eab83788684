"""Number of messages that should arrive: each once, but a multicast once at each router that has subscribers.

What is lost is counted so, and shares are shares of this.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mesh_config.models import Treatment
from router.whatif.kernel.network_arrays import MICRO
from router.whatif.model.mesh_model import Model


def deliveries(model: Model) -> float:
    """Messages/s that should arrive, of all demands."""
    demands = model.demands
    return math.fsum((*_rates(model)[demands.address < 0].tolist(), *deliveries_to(model).values()))


def deliveries_to(model: Model) -> Mapping[str, float]:
    """Messages/s that should arrive, by address; of those alone to which something is sent."""
    demands = model.demands
    treatment = {address.text: address.treatment for address in model.addresses}
    sites = Counter(site.address for site in model.subscribers)
    is_address = demands.address >= 0
    sums = np.bincount(demands.address[is_address], _rates(model)[is_address], len(demands.names))
    found = {}
    for number in np.unique(demands.address[is_address]).tolist():
        name = demands.names[number]
        # Without subscribers it is lost once.
        copies = max(1, sites[name]) if treatment[name] is Treatment.MULTICAST else 1
        found[name] = float(sums[number]) * copies
    return found


def _rates(model: Model) -> NDArray[np.float64]:
    """Messages/s of each demand in whole millionths, as loads and losses are counted: else all of it were not all."""
    found: NDArray[np.float64] = np.rint(model.demands.msgs_per_s * MICRO) / MICRO
    return found
