"""Loads that the authors of TopoHub have published with their networks, compared with the kernel's.

Theirs are by ECMP with the hop count as cost, in percent of the busiest directed link (`tests/whatif/data/SOURCES.md`).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import Network
from router.whatif.model.demands import Demand
from router.whatif.model.elements import LinkEdge, RouterNode
from router.whatif.model.mesh_model import Model

LOADS_WITHIN = 0.00501
"""Percentage points: TopoHub gives loads with two decimals, the kernel counts in millionths of a message."""


def router_id(number: object) -> str:
    return f"n{int(str(number)):04}"


def topohub_model(found: dict[str, Any], kind: str) -> Model:
    """Every link costs 1. `uni`: the same demand between all, or all cities; `org`: the file's, in both directions."""
    routers = [router_id(node["id"]) for node in found["nodes"]]
    rates: Counter[tuple[str, str]] = Counter()
    if kind == "uni":
        ends = [router_id(node["id"]) for node in found["nodes"] if node.get("type", "City") == "City"]
        rates.update({(src, dst): 1.0 for src in ends for dst in ends if src != dst})
    else:
        for src, row in found["graph"]["demands"].items():
            for dst, rate in row.items():
                rates[router_id(src), router_id(dst)] += rate
                rates[router_id(dst), router_id(src)] += rate
    links = []
    for number, edge in enumerate(found["edges"]):
        a, b = sorted((router_id(edge["source"]), router_id(edge["target"])))
        links.append(LinkEdge(id=f"{number:04}", a=a, b=b))
    return Model(
        routers=[RouterNode(id=router) for router in routers],
        links=links,
        demands=[
            Demand(src=src, dst=dst, msgs_per_s=rate, msg_bytes=1.0) for (src, dst), rate in rates.items() if src != dst
        ],
    )


def largest_difference(found: dict[str, Any], kind: str) -> float:
    """Of all directed links, in percentage points of the busiest one."""
    model = topohub_model(found, kind)
    model.check()
    network = Network.of(model)
    rates, _ = Kernel(network, is_split=True).loads()
    percent = 100 * rates / rates.max()
    assert len(network.links) == len(found["edges"]) > 0
    worst = 0.0
    for number, edge in enumerate(found["edges"]):
        is_turned = router_id(edge["source"]) > router_id(edge["target"])
        forth, back = percent[2 * number + is_turned], percent[2 * number + 1 - is_turned]
        worst = max(worst, abs(forth - edge["ecmp_fwd"][kind]), abs(back - edge["ecmp_bwd"][kind]))
    return worst


def published_kinds(found: dict[str, Any]) -> list[str]:
    """Of `uni` and `org`, what the file has loads of."""
    return [kind for kind in ("uni", "org") if kind in found["edges"][0]["ecmp_fwd"]]
