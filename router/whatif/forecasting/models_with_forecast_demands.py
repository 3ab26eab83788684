"""Models of a mesh with the demands of a history, or of a forecast, in the place of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from router.whatif.formats.mesh_settings import built_in_treatment
from router.whatif.model.demands import Demand
from router.whatif.model.elements import AddressNode
from router.whatif.model.mesh_model import Model


def with_measured(model: Model, rows: Iterable[Mapping[str, Any]], level: str) -> Model:
    """The model with measured demands instead of its own.

    Args:
        model: of the mesh.
        rows: with `router`, `address`, `msg_bytes` and a rate; those of routers that the model lacks are left out.
        level: column that has the rate, messages/s; less than nothing is nothing.
    Raises: ModelError when the demands are more than can be.
    """
    routers = {router.id for router in model.routers}
    demands = [
        Demand(src=row["router"], address=row["address"], msgs_per_s=row[level], msg_bytes=row["msg_bytes"] or 0.0)
        for row in rows
        if row["router"] in routers and row[level] > 0
    ]
    known = {address.text for address in model.addresses}
    used = {demand.address for demand in demands if demand.address is not None}
    new = [AddressNode(text=text, treatment=built_in_treatment(text)) for text in sorted(used - known)]
    found = attrs.evolve(model, demands=demands, addresses=(*model.addresses, *new))
    found.check()
    return found
