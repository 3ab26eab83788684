"""Effects of each link and each router that fails alone, for a picture in which one can let it fail."""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import MICRO, Network
from router.whatif.model.mesh_model import Model
from router.whatif.wording import counted, lose_each_other, percent, rate

STEPS: Final = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Borders of the classes of utilisation."""
DOWN: Final = "x"
MOST: Final = 100_000
"""Maximum of failures times links: with more the page would grow beyond what a browser opens at once."""


@attrs.frozen(kw_only=True)
class SingleFailure:
    """A link or router that fails alone."""

    name: str
    """Name with its kind: `link A--B`."""
    said: str
    """Effect, in a sentence."""
    links: str
    """Letters, one for each link of the model in its order: the class of its utilisation, or DOWN."""


def single_failures(model: Model, *, is_split: bool) -> tuple[SingleFailure, ...]:
    """All of a mesh, links first; none where they are too many for a page.

    Args:
        model: the mesh as it is.
        is_split: as `Kernel` has it.
    """
    count = len(model.links) + len(model.routers)
    if count * len(model.links) > MOST:
        return ()
    network = Network.of(model)
    kernel = Kernel(network, is_split=is_split, has_percentiles=False)
    places = {router.id: at for at, router in enumerate(model.routers)}
    found = []
    candidates: list[tuple[str, list[int], list[int]]] = [
        (f"link {link.id}", [at], []) for at, link in enumerate(model.links)
    ]
    candidates += [(f"router {router.id}", [], [at]) for at, router in enumerate(model.routers)]
    for name, links, routers in candidates:
        kernel.fail(links, routers)
        share = kernel.utilisations().reshape(-1, 2).max(axis=1, initial=0.0)
        classes = np.searchsorted(STEPS, share).tolist()
        down = {*links, *(at for at, it in enumerate(model.links) if {places[it.a], places[it.b]} & set(routers))}
        letters = [DOWN if at in down else str(each) for at, each in enumerate(classes)]
        found.append(SingleFailure(name=name, said=_said(kernel, network), links="".join(letters)))
        kernel.restore()
    return tuple(found)


def _said(kernel: Kernel, network: Network) -> str:
    """Describe what the failure does, of a kernel in which it is."""
    pairs = kernel.unreachable_pairs - kernel.dead_end_pairs
    parts = [f"{counted(pairs, 'pair')} of living routers {lose_each_other(pairs)}"] if pairs else []
    if kernel.lost_rate:
        parts.append(f"{rate(kernel.lost_rate / MICRO)} reach nobody")
    if kernel.starved_publishers:
        parts.append(f"{counted(kernel.starved_publishers, 'publisher')} without a subscriber")
    text = ", ".join(parts) or "nobody loses a path and no message is lost"
    if kernel.max_utilisation_link >= 0:
        _, src, dst = network.directed_link(kernel.max_utilisation_link)
        text += f"; the busiest link is {src} to {dst}, at {percent(kernel.max_utilisation)}"
    return f"{text[0].upper()}{text[1:]}."
