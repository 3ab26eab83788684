"""Routes as the routers themselves report them, and the paths that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs


@attrs.frozen(kw_only=True)
class RouteEntry:
    """Route of one router to another that it can reach."""

    next_hop: str
    """The other itself when it is a neighbor."""
    cost: int


Routes = Mapping[str, Mapping[str, RouteEntry]]
"""Routes by the router that has them and the router they lead to; a router that did not answer is absent."""


def is_full(routes: Routes, routers: Sequence[str]) -> bool:
    """Whether every router reaches every other directly."""
    return all(
        one in routes and other in routes[one] and routes[one][other].next_hop == other
        for one in routers
        for other in routers
        if one != other
    )


def are_neighbors(routes: Routes, one: str, other: str) -> bool:
    """Whether both say that messages go from one to the other directly."""
    there, back = routes.get(one, {}).get(other), routes.get(other, {}).get(one)
    return there is not None and back is not None and (there.next_hop, back.next_hop) == (other, one)


def path(routes: Routes, source: str, target: str) -> tuple[str, ...] | None:
    """The routers from *source* to *target*, both included, by their next hops; None while they disagree."""
    way = [source]
    while way[-1] != target:
        route = routes.get(way[-1], {}).get(target)
        if route is None or route.next_hop in way:
            return None
        way.append(route.next_hop)
    return tuple(way)


def path_text(way: Sequence[str] | None) -> str:
    """`C -> B -> A`."""
    return " -> ".join(way) if way else "?"


def to_json(routes: Routes) -> dict[str, dict[str, list[str | int]]]:
    """Return *routes* as lists and dicts, for `from_json`."""
    return {
        router: {other: [route.next_hop, route.cost] for other, route in known.items()}
        for router, known in routes.items()
    }


def from_json(value: Mapping[str, Mapping[str, tuple[str, int]]]) -> Routes:
    """Read back what `to_json` was given."""
    return {
        router: {other: RouteEntry(next_hop=next_hop, cost=cost) for other, (next_hop, cost) in known.items()}
        for router, known in value.items()
    }
