"""Checks of a whole mesh for what is wrong or looks so: routers that do not fit each other, and each by itself."""

from __future__ import annotations

import functools
import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from mesh_config.check_links import link_findings
from mesh_config.check_router import Locate, router_findings
from mesh_config.check_security import neighbor_findings
from mesh_config.check_vhosts import vhost_differences
from mesh_config.connector_matching import (
    Link,
    host_key,
    is_loopback,
    is_same_host,
    is_same_target,
    is_wildcard,
    links,
    may_share_machine,
    network_addresses,
)
from mesh_config.findings import (
    MOST_HINTS,
    Finding,
    SettingsError,
    Severity,
    Step,
    has_errors,
    in_order,
    key_path,
    nearest,
)
from mesh_config.loader import Document, FilePath, chosen, read_document, with_mesh
from mesh_config.models import ConnectorSettings, MeshSettings, Role, RouterSettings
from mesh_config.yaml_text import Place

__all__ = ["Finding", "Severity", "check_file", "check_files", "check_mesh", "check_router", "has_errors"]


def check_mesh(mesh: MeshSettings) -> tuple[Finding, ...]:
    """Findings about a mesh that a program made; they have key paths, but no file and line."""

    def locate(key: str, *steps: Step) -> Place:
        return Place(file=None, line=None, path=("routers", key, *steps))

    findings = [
        locate(key, "id").finding(f"id `{router.id}` is not the key `{key}`", expected="the key")
        for key, router in mesh.routers.items()
        if router.id != key
    ]
    findings += _alone(mesh, locate)
    findings += _together(mesh, locate)
    return in_order(findings)


def check_file(path: FilePath) -> tuple[Finding, ...]:
    """All findings about one file."""
    return check_files([path])


def check_files(paths: Iterable[FilePath]) -> tuple[Finding, ...]:
    """All findings about files, by file and line.

    Each mesh file is a mesh. Several files of one router each are taken for one mesh, so that they are checked against
    each other. Routers are compared only when each can be read: a value that is wrong would breed further findings.
    """
    return check_documents([read_document(path) for path in dict.fromkeys(paths)])


def check_router(path: FilePath, router_id: str | None = None) -> tuple[RouterSettings, tuple[Finding, ...]]:
    """Settings of one router, though other routers of its file may be wrong.

    Args:
        path: of the file.
        router_id: may be left out when the file has one router only.
    Returns: the settings; all findings about the file, also about other routers.
    Raises:
        SettingsError: the router cannot run; as `check_router_and_mesh`.
    """
    router, _, findings = check_router_and_mesh(path, router_id)
    return router, findings


def check_router_and_mesh(
    path: FilePath, router_id: str | None = None
) -> tuple[RouterSettings, MeshSettings | None, tuple[Finding, ...]]:
    """Check a router's settings like `check_router`, with the mesh that the router is part of.

    Args:
        path: of the file.
        router_id: may be left out when the file has one router only.
    Returns: the settings; the mesh, those of its routers whose settings are right, None for a file of one router; all
        findings about the file, also about other routers.
    Raises:
        SettingsError: the router cannot run: the file cannot be read, or has no such router; or something is wrong with
            the router itself, with what all routers share, or with a router that it connects to by `to`.
    """
    document = read_document(path)
    if not all(finding.key.startswith("routers.") for finding in document.findings):
        raise SettingsError(document.findings)
    key = chosen(path, document.nodes, router_id)
    router = document.mesh.routers.get(key)
    needed = {key, *(connector.to for connector in router.connectors if connector.to is not None)} if router else {key}
    roots = [key_path(("routers", name)) for name in sorted(needed)]
    errors = [it for it in document.findings if any(it.key == root or it.key.startswith(f"{root}.") for root in roots)]
    if router is not None:
        alone = MeshSettings(routers={key: with_mesh(router, document)})
        errors += [*_alone(alone, document.place, document.unresolved), *_collisions(alone, document.place)]
    if has_errors(errors):
        raise SettingsError(in_order(errors))
    assert router is not None, "a router without settings has findings"
    whole = document.mesh if document.is_whole_mesh else None
    return with_mesh(router, document), whole, check_documents([document])


def check_documents(documents: Sequence[Document]) -> tuple[Finding, ...]:
    """All findings about files that were read, like `check_files`."""
    findings = [finding for document in documents for finding in (*document.findings, *document.remarks)]
    for document in documents:
        findings += _alone(document.mesh, document.place, document.unresolved)
    for group in [[document] for document in documents if document.is_whole_mesh] + [
        [document for document in documents if not document.is_whole_mesh]
    ]:
        if not any(document.findings for document in group):
            findings += _group_findings(group)
    return in_order(findings)


def _group_findings(group: list[Document]) -> Iterator[Finding]:
    """Findings about routers of a mesh file, or of several files of one router each, together."""
    if not group:
        return
    if group[0].is_whole_mesh:
        yield from _together(group[0].mesh, group[0].place)
        return
    routers: dict[str, RouterSettings] = {}
    owners: dict[str, tuple[Document, str]] = {}
    for document in group:
        for router_id, router in document.mesh.routers.items():
            # Two files may have the same id, which is what a check is for; keys must differ.
            key = router_id if router_id not in routers else f"{router_id} of {document.file}"
            routers[key] = router
            owners[key] = (document, router_id)

    def locate(key: str, *steps: Step) -> Place:
        document, router_id = owners[key]
        return document.place(router_id, *steps)

    mesh = MeshSettings(routers=routers)
    # The file of one router says nothing about who its neighbors are.
    yield from _together(mesh, locate) if len(routers) > 1 else _collisions(mesh, locate)


def _alone(
    mesh: MeshSettings, locate: Locate, unresolved: frozenset[tuple[str, int]] = frozenset()
) -> Iterator[Finding]:
    for key, router in mesh.routers.items():
        dialled = [each for index, each in enumerate(router.connectors) if (router.id, index) not in unresolved]
        yield from router_findings(key, router, locate, dialled)
        if len(mesh.routers) == 1:
            yield from neighbor_findings(router, functools.partial(locate, key))


def _together(mesh: MeshSettings, locate: Locate) -> Iterator[Finding]:
    yield from _duplicate_ids(mesh, locate)
    yield from _collisions(mesh, locate)
    yield from vhost_differences(mesh, locate)
    found = list(links(mesh))
    dangling = list(_dangling(mesh, found, locate))
    yield from dangling
    for link in found:
        yield from link_findings(link, mesh, locate)
    yield from _parallel(found, locate)
    yield from _partitions(
        mesh, found, locate, has_neighbors_outside=any(it.severity is Severity.WARNING for it in dangling)
    )


def _duplicate_ids(mesh: MeshSettings, locate: Locate) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for key, router in mesh.routers.items():
        if router.id in first:
            other = locate(first[router.id], "id")
            yield locate(key, "id").finding(
                f"router id `{router.id}` is taken{_where(other)}", expected="an id of its own in the mesh"
            )
        first.setdefault(router.id, key)


@attrs.frozen(kw_only=True)
class _Bound:
    """A host and port that a router binds: a listener, or HTTP."""

    key: str
    """Key of the router."""
    steps: tuple[Step, ...]
    host: str
    port: int
    is_http: bool = False
    addresses: frozenset[str]
    """`network_addresses` of the router."""
    machine: str | None
    """`host_key` of the router's machine; None for any."""

    @property
    def keys(self) -> _Keys:
        """Keys by which others that may be at the same place are found."""
        return self.machine, None if is_wildcard(self.host) else host_key(self.host)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}{' (HTTP)' if self.is_http else ''}"


_Keys = tuple[str | None, str | None]
"""`host_key` of a router's machine, and of an address; None for any."""


def _bound(mesh: MeshSettings) -> Iterator[_Bound]:
    for key, router in mesh.routers.items():
        machine = host_key(router.host) if router.host is not None else None
        make = functools.partial(_Bound, key=key, addresses=network_addresses(router), machine=machine)
        for index, each in enumerate(router.listeners):
            if each.port:
                yield make(steps=("listeners", index), host=each.host, port=each.port)
        if router.http.port:
            yield make(steps=("http",), host=router.http.host, port=router.http.port, is_http=True)


def _collisions(mesh: MeshSettings, locate: Locate) -> Iterator[Finding]:
    by_port: defaultdict[int, list[_Bound]] = defaultdict(list)
    for bound in _bound(mesh):
        by_port[bound.port].append(bound)
    for _, found in sorted(by_port.items()):
        before = _BoundIndex()
        for bound in found:
            taken = next((other for other in before.near(bound) if _collide(mesh, bound, other)), None)
            before.add(bound)
            if taken is not None:
                where = _where(locate(taken.key, *taken.steps, "port"))
                yield locate(bound.key, *bound.steps, "port").finding(
                    f"{bound} collides with {taken} of router `{taken.key}`{where}",
                    expected="another port, or a different `host` of each router when they have a machine each",
                )


class _BoundIndex:
    """Index of what is bound at one port, to find what one more may collide with."""

    def __init__(self) -> None:
        self._by_keys: dict[_Keys, list[tuple[int, _Bound]]] = defaultdict(list)
        self._count = 0

    def add(self, bound: _Bound) -> None:
        self._count += 1
        self._by_keys[bound.keys].append((self._count, bound))

    def near(self, bound: _Bound) -> Iterator[_Bound]:
        """Find those before it that may be on its machine and at its address, in the order of the mesh."""
        machine, address = bound.keys
        machines = (machine, None) if machine is not None else {each for each, _ in self._by_keys}
        addresses = (address, None) if address is not None else {each for _, each in self._by_keys}
        if len(machines) * len(addresses) < len(self._by_keys):
            found = [self._by_keys.get(each, []) for each in itertools.product(machines, addresses)]
        else:
            found = [every for keys, every in self._by_keys.items() if keys[0] in machines and keys[1] in addresses]
        return (each for _, each in heapq.merge(*found))


def _collide(mesh: MeshSettings, one: _Bound, other: _Bound) -> bool:
    is_of_http = one.is_http or other.is_http
    if one.key == other.key:
        if is_of_http:  # told of the router alone
            return False
    # HTTP is on loopback and may be in `defaults`, so that its host doesn't tell of one machine.
    elif (
        is_of_http and one.addresses and other.addresses and one.addresses.isdisjoint(other.addresses)
    ) or not may_share_machine(mesh.routers[one.key], mesh.routers[other.key]):
        return False
    return is_wildcard(one.host) or is_wildcard(other.host) or is_same_host(one.host, other.host)


def _dangling(mesh: MeshSettings, found: list[Link], locate: Locate) -> Iterator[Finding]:
    """Connectors between routers that reach no listener of the mesh, where all that do are *found*."""
    reaching, hints = {(link.router, link.index) for link in found}, 0
    for key, router in mesh.routers.items():
        for index, connector in enumerate(router.connectors):
            is_ours = connector.to in mesh.routers
            if (key, index) in reaching or connector.role is not Role.INTER_ROUTER:
                continue
            known = []
            if is_ours:
                known = _addresses({connector.to or "": mesh.routers[connector.to or ""]})
            elif hints < MOST_HINTS:
                hints += 1
                known = _addresses({name: each for name, each in mesh.routers.items() if name != key})
            yield locate(key, "connectors", index, "to" if connector.to else "port").finding(
                _dangling_message(mesh, router, connector),
                expected="host and port of a listener for other routers"
                + ("" if is_ours else ", or a router that is not of this file"),
                nearest=nearest(
                    f"{connector.host}:{connector.port}", [f"{host}:{port}" for host, port in known if port]
                ),
                # A neighbor that is not of this file, say another vendor's router, is nothing wrong; not on a host of
                # this mesh either, and many a mesh of a test has all on loopback.
                severity=Severity.ERROR if is_ours else Severity.WARNING,
            )


def _dangling_message(mesh: MeshSettings, router: RouterSettings, connector: ConnectorSettings) -> str:
    address = f"{connector.host}:{connector.port}"
    target = mesh.routers.get(connector.to or "")
    if target is None:
        return f"no router of this mesh listens at {address}"
    if is_loopback(connector.host) and not may_share_machine(router, target):
        return f"router `{target.id}`, on another machine than `{router.id}`, cannot be reached at {address}"
    return f"router `{target.id}` does not listen at {address}"


def _addresses(routers: Mapping[str, RouterSettings]) -> list[tuple[str, int]]:
    """Addresses at which routers listen for other routers."""
    found = []
    for router in routers.values():
        for listener in router.listeners:
            if listener.role is Role.INTER_ROUTER:
                host = (router.host or "127.0.0.1") if is_wildcard(listener.host) else listener.host
                found.append((host, listener.port))
    return found


def _parallel(found: list[Link], locate: Locate) -> Iterator[Finding]:
    count: Counter[tuple[str, str]] = Counter()
    dialled: defaultdict[str, list[ConnectorSettings]] = defaultdict(list)
    for link in found:
        if not link.is_between_routers or link.router == link.target:
            continue
        count[link.pair] += 1
        is_told = any(is_same_target(each, link.connector) for each in dialled[link.router])  # of the router alone
        dialled[link.router].append(link.connector)
        if count[link.pair] > 1 and not is_told:
            yield locate(link.router, "connectors", link.index).finding(
                f"connection {count[link.pair]} between `{link.pair[0]}` and `{link.pair[1]}`: one is active,"
                " the others stand by",
                expected="one connector for each pair of routers",
                severity=Severity.WARNING,
            )


def _partitions(
    mesh: MeshSettings, found: list[Link], locate: Locate, *, has_neighbors_outside: bool
) -> Iterator[Finding]:
    parts = sorted(map(sorted, _connected(mesh, found)), key=lambda part: (-len(part), part))
    if len(parts) < 2:
        return
    names = [_names(part) for part in parts]
    for part, name in list(zip(parts, names, strict=True))[1:]:
        first = next(key for key in mesh.routers if key in part)
        others = " and ".join(other for other in names if other != name) if len(parts) <= 4 else names[0]
        yield locate(first).finding(
            f"the mesh is in {len(parts)} parts: no path from {name} to {others}",
            expected="a connector between the parts",
            severity=Severity.WARNING if has_neighbors_outside else Severity.ERROR,
        )


def _connected(mesh: MeshSettings, found: list[Link]) -> list[set[str]]:
    """Routers that reach each other: by hand, since a router checks its mesh, and networkx would take it 13 MB."""
    part_of: dict[str, set[str]] = {key: {key} for key in mesh.routers}
    for link in found:
        if link.is_between_routers:
            small, large = sorted((part_of[key] for key in link.pair), key=len)
            if small is not large:
                large |= small
                part_of.update(dict.fromkeys(small, large))
    return list({id(part): part for part in part_of.values()}.values())


def _names(part: list[str], limit: int = 8) -> str:
    shown = ", ".join(part[:limit]) + (f" and {len(part) - limit} more" if len(part) > limit else "")
    return f"{{{shown}}}"


def _where(place: Place) -> str:
    return "" if place.line is None else f" ({place.file}:{place.line})"
