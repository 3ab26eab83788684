"""Match of connectors with the listeners that they reach: hosts, ports, and what two ends make of a cost."""

from __future__ import annotations

import functools
import heapq
import ipaddress
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

import attrs

from mesh_config.findings import Finding
from mesh_config.models import ConnectorSettings, ListenerSettings, MeshSettings, Role, RouterSettings
from mesh_config.yaml_text import Place

LOOPBACK: Final = "(loopback)"
"""`host_key` of all hosts that only processes of the same machine reach."""
LOCALHOST: Final = "localhost"
MOST_HOSTS: Final = 65_536
"""Maximum number of hosts whose kind is remembered."""


@attrs.frozen(kw_only=True)
class Link:
    """A connector and the listener that it reaches, of any role."""

    router: str
    """Key of the router that connects."""
    index: int
    """Index of the connector in that router, from 0."""
    connector: ConnectorSettings
    target: str
    """Key of the router that listens."""
    target_index: int
    listener: ListenerSettings

    @property
    def pair(self) -> tuple[str, str]:
        """Both routers, in the order of their ids."""
        return (min(self.router, self.target), max(self.router, self.target))

    @property
    def cost(self) -> int:
        """Cost that counts. Source: design of the protocol; the larger of both ends, as Qpid Dispatch has it."""
        return max(self.connector.cost, self.listener.cost)

    @property
    def is_between_routers(self) -> bool:
        """Whether both ends take it for a link between routers."""
        return self.connector.role is Role.INTER_ROUTER and self.listener.role is Role.INTER_ROUTER


def is_wildcard(host: str) -> bool:
    """Whether a listener of that host binds to all addresses."""
    return host in ("0.0.0.0", "::", "*", "")


@functools.lru_cache(MOST_HOSTS)
def host_key(host: str) -> str:
    """Text that two hosts have in common which `is_same_host` may take for one: to look for such among many.

    Source: a mesh of a thousand machines compares each host with all others, in half a million pairs.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.lower()
        return LOOPBACK if name == LOCALHOST or name.endswith(f".{LOCALHOST}") else name
    return LOOPBACK if address.is_loopback else str(address)


def is_loopback(host: str) -> bool:
    """Whether only processes of the same machine reach that host."""
    return host_key(host) == LOOPBACK


def is_same_host(one: str, other: str) -> bool:
    """Whether two names are certainly one address; `localhost` may be any loopback address."""
    if host_key(one) != host_key(other):
        return False
    names = one.lower(), other.lower()
    if not is_loopback(one) or names[0] == names[1] or LOCALHOST in names:
        return True
    try:
        return ipaddress.ip_address(one) == ipaddress.ip_address(other)
    except ValueError:
        return False


def is_same_target(one: ConnectorSettings, other: ConnectorSettings) -> bool:
    """Whether two connectors dial certainly one address."""
    return one.port == other.port and is_same_host(one.host, other.host)


def may_share_machine(one: RouterSettings, other: RouterSettings) -> bool:
    """Whether two routers may run on one machine: they do not if both say their `host` and the hosts differ."""
    return one.host is None or other.host is None or is_same_host(one.host, other.host)


def network_addresses(router: RouterSettings) -> frozenset[str]:
    """The addresses of a network at which a router listens, by their `host_key`."""
    hosts = (each.host for each in router.listeners if not is_wildcard(each.host) and not is_loopback(each.host))
    return frozenset(map(host_key, hosts))


def router_listener(router: RouterSettings) -> ListenerSettings | None:
    """The listener that `to` stands for: the first for other routers."""
    return next((listener for listener in router.listeners if listener.role is Role.INTER_ROUTER), None)


def dials_itself(place: Place, router_id: str) -> Finding:
    """The finding, at *place*, that a connector of a router leads to that router."""
    return place.finding(f"router `{router_id}` connects to itself", expected="another router")


def link_address(router: RouterSettings, *, needs_host: bool = True) -> tuple[str, int] | str:
    """Host and port at which other routers reach *router*, or why there are none.

    Args:
        router: the one that is dialled.
        needs_host: False when the host is known from elsewhere; a wildcard will do then.
    """
    listener = router_listener(router)
    if listener is None:
        return f"router `{router.id}` has no listener for other routers"
    if listener.port == 0:
        return f"the system chooses the port of router `{router.id}`, so no connector can know it"
    host = listener.host
    if is_wildcard(host) and needs_host:
        if router.host is None:
            return f"router `{router.id}` listens on all addresses and says no `host`"
        host = router.host
    return host, listener.port


def links(mesh: MeshSettings) -> Iterator[Link]:
    """Every connector that reaches a listener of the mesh, in the order of the file."""
    listeners = ListenerIndex(mesh)
    for key, router in mesh.routers.items():
        for index, connector in enumerate(router.connectors):
            found = listeners.target_of(key, connector)
            if found is not None:
                target, target_index = found
                listener = mesh.routers[target].listeners[target_index]
                yield Link(
                    router=key,
                    index=index,
                    connector=connector,
                    target=target,
                    target_index=target_index,
                    listener=listener,
                )


class ListenerIndex:
    """The listeners of a mesh, to find the one that a connector reaches without a look at each."""

    def __init__(self, mesh: MeshSettings) -> None:
        self._routers = mesh.routers
        self._by_place: defaultdict[tuple[int, str | None], list[tuple[int, str, int]]] = defaultdict(list)
        """Number in the order of the mesh, router and index of listeners, by port and each `host_key` by which they may
        be reached; None where no host rules them out."""
        for number, (name, index, listener) in enumerate(
            (name, index, listener)
            for name, router in self._routers.items()
            for index, listener in enumerate(router.listeners)
        ):
            host = self._routers[name].host
            keys: set[str | None] = {host_key(listener.host)}
            if host is not None:
                keys.add(host_key(host))
            if is_wildcard(listener.host):  # reached by loopback too
                keys |= {LOOPBACK, None} if host is None else {LOOPBACK}
            for key in keys:
                self._by_place[listener.port, key].append((number, name, index))

    def target_of(self, key: str, connector: ConnectorSettings) -> tuple[str, int] | None:
        """Router and index of the listener that a connector of the router *key* reaches, the first in the mesh.

        Returns: None if it is none of the mesh.
        """
        if connector.to is not None:
            listeners = self._routers[connector.to].listeners if connector.to in self._routers else ()
            found = [(connector.to, index) for index in range(len(listeners))]
        else:
            places = (self._by_place.get((connector.port, each), []) for each in (host_key(connector.host), None))
            found = [(name, index) for _, name, index in heapq.merge(*places)]
        for name, index in found:
            target = self._routers[name]
            if _reaches(self._routers[key], connector, target, target.listeners[index]):
                return name, index
        return self._forwarded(connector)

    def _forwarded(self, connector: ConnectorSettings) -> tuple[str, int] | None:
        """Router and index of the listener that `to` stands for, where the connector has an address that leads there.

        Such as the published port of a container, or a host name: what a host that is not the router's own leads to
        only the operator knows. At the listener's own port, loopback leads nowhere else.
        """
        target = self._routers.get(connector.to or "")
        listener = router_listener(target) if target is not None else None
        if target is None or listener is None or listener.port == 0:
            return None
        if any(is_same_host(connector.host, each.host) for each in target.listeners):
            return None
        if connector.port == listener.port and (is_loopback(connector.host) or is_loopback(listener.host)):
            return None
        return connector.to or "", target.listeners.index(listener)


def _reaches(
    router: RouterSettings, connector: ConnectorSettings, target: RouterSettings, listener: ListenerSettings
) -> bool:
    if listener.port == 0 or listener.port != connector.port:
        return False
    if is_loopback(connector.host):
        if not may_share_machine(router, target):
            return False
        return is_wildcard(listener.host) or is_same_host(connector.host, listener.host)
    if is_wildcard(listener.host):
        # Without a host of its own nothing says that the target is elsewhere; with `to` the operator says where it is.
        return connector.to is not None or target.host is None or is_same_host(connector.host, target.host)
    is_hosted = target.host is not None and is_same_host(connector.host, target.host)
    return is_same_host(connector.host, listener.host) or (is_hosted and not is_loopback(listener.host))


def link_costs(mesh: MeshSettings) -> dict[tuple[str, str], int]:
    """Cost of each pair of neighbors, in the order of the file; of parallel connections that of the cheapest.

    What check.py calls an error is left out.
    """
    found: dict[tuple[str, str], int] = {}
    for link in links(mesh):
        if link.is_between_routers and link.router != link.target:
            found[link.pair] = min(link.cost, found.get(link.pair, link.cost))
    return found
