"""One YAML file to the settings of a whole mesh or of one router of it; all that is wrong with the file at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

import attrs

from mesh_config import defaults_merging, yaml_text
from mesh_config.check_security import has_known_routers
from mesh_config.connector_matching import dials_itself, link_address, router_listener
from mesh_config.findings import MOST_HINTS, Finding, SettingsError, Severity, Step, in_order, nearest, not_utf8
from mesh_config.models import (
    AddressSettings,
    ConnectorSettings,
    MeshSettings,
    NeighborSettings,
    Role,
    RouterSettings,
)
from mesh_config.settings_file_format import DEFAULTS_SECTIONS, MESH_FILE_KEYS, MESH_KEYS, ROUTER_FILE_KEYS, DefaultsKey
from mesh_config.structuring import structure, unknown_key
from mesh_config.value_rules import fault_of, field_of, fields_of, found_words
from mesh_config.yaml_text import MapNode, Node, Place

FilePath = str | os.PathLike[str]

ROUTER_KEYS: Final = tuple(field.name for field in fields_of(RouterSettings))

MOST_BYTES: Final = 16 * 1024 * 1024
"""Largest file of settings: more than ten thousand routers have, and read within the memory of one."""


@attrs.frozen(kw_only=True)
class Document:
    """Content of a file, as far as it could be read."""

    file: str
    mesh: MeshSettings
    """Routers with which nothing is wrong; `to` of their connectors is resolved where possible."""
    findings: tuple[Finding, ...]
    is_whole_mesh: bool
    """False for a file of one router, whose neighbors are unknown."""
    nodes: Mapping[str, MapNode]
    """Settings in the file of each router, defaults merged into it; also of routers that are not in `mesh`."""
    remarks: tuple[Finding, ...] = ()
    """Warnings about what stands in the file and has no effect."""
    unresolved: frozenset[tuple[str, int]] = frozenset()
    """Router and index of connectors whose `to` gives no address, as `findings` say: host and port say nothing."""

    def place(self, router_id: str, *steps: Step) -> Place:
        """Find the place of a setting of a router: the line of the nearest thing around it that the file has."""
        root: tuple[Step, ...] = ("routers", router_id) if self.is_whole_mesh else ("router",)
        node: Node | None = self.nodes.get(router_id)
        if node is None:
            return Place(file=self.file, line=1, path=(*root, *steps))
        for count, step in enumerate(steps):
            below = _child(node, step)
            if below is None:
                # Absent, so its place would be in the router itself, though what is around it may come from `defaults`.
                return attrs.evolve(node.place, path=(*node.place.path, *steps[count:]))
            node = below
        return node.place


def load_mesh(path: FilePath) -> MeshSettings:
    """Settings of every router of a file, each complete: defaults merged, `to` resolved to host and port.

    A file of one router is a mesh of one, named after it.
    Raises:
        SettingsError: the file cannot be read or anything in it is wrong; it has all findings.
    """
    document = read_document(path)
    if document.findings:
        raise SettingsError(document.findings)
    return document.mesh


def load_router(path: FilePath, router_id: str | None = None) -> RouterSettings:
    """Settings of one router of a file.

    Args:
        path: of the file.
        router_id: may be left out when the file has one router only.
    Raises:
        SettingsError: as `load_mesh`; or the file has no such router, or several when none is named.
    """
    document = read_document(path)
    if document.findings:
        raise SettingsError(document.findings)
    routers = document.mesh.routers
    return with_mesh(routers[chosen(path, routers, router_id)], document)


def with_mesh(router: RouterSettings, document: Document) -> RouterSettings:
    """Settings of one router of a file with what the others of the file are to it: its mesh's name, and who may join.

    So it needs nothing more of the file, and may run from a file of its own.
    """
    if not document.is_whole_mesh:
        return router
    if (name := document.mesh.name_of(router)) != router.mesh:
        router = attrs.evolve(router, mesh=name)
    if not router.neighbors and any(has_known_routers(listener) for listener in router.listeners):
        others = tuple(NeighborSettings(user=key) for key in document.nodes if key != router.id)
        router = attrs.evolve(router, neighbors=others)
    return router


def chosen(path: FilePath, routers: Mapping[str, object], router_id: str | None) -> str:
    """Choose one of a file's routers: the one that is named, or the only one.

    Raises:
        SettingsError: as `load_router`.
    """
    if router_id is None and len(routers) == 1:
        return next(iter(routers))
    if router_id is not None and router_id in routers:
        return router_id
    is_only = len(routers) == 1  # `router:` may be its key
    start = Place(file=os.fspath(path), line=1, path=() if is_only else ("routers",))
    message = "the file has several routers" if router_id is None else f"no router `{router_id}`"
    near = nearest(router_id, routers) if router_id is not None else None
    expected = f"{'' if router_id is not None else '--router with '}one of {_some(routers)}"
    raise SettingsError([start.finding(message, expected=expected, nearest=near)])


def read_document(path: FilePath) -> Document:
    """Read a file as far as it can be read; what is wrong with it is told by `findings`, and raises nothing."""
    file = os.fspath(path)
    start = Place(file=file, line=None, path=())
    try:
        with Path(path).open("rb") as opened:
            raw = opened.read(MOST_BYTES + 1)  # a device may have no end
        if len(raw) > MOST_BYTES:
            return _nothing(file, start.finding(f"cannot be read: it has more than {MOST_BYTES} bytes"))
        text = raw.decode().replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        return _nothing(file, start.finding(f"cannot be read: {error.strerror}"))
    except UnicodeDecodeError as error:
        return _nothing(file, not_utf8(file, error))
    return parse_document(text, file)


def parse_document(text: str, file: str) -> Document:
    """Parse a settings document from text, like `read_document`; *file* is for the findings."""
    root, findings = yaml_text.read(text, file)
    if root is None:
        return Document(file=file, mesh=MeshSettings(), findings=findings, is_whole_mesh=False, nodes={})
    reading = _Reading(file, findings)
    return reading.document(root)


def _nothing(file: str, finding: Finding) -> Document:
    return Document(file=file, mesh=MeshSettings(), findings=(finding,), is_whole_mesh=False, nodes={})


def _for_whole_mesh(top: MapNode) -> str | None:
    """The key of whole meshes by which `routers` is meant where `router` stands without an id; None for none."""
    router = top.items.get("router")
    if "routers" in top.items or not isinstance(router, MapNode) or "id" in router.items:
        return None
    return next((key for key in top.items if key in MESH_FILE_KEYS and key not in ROUTER_FILE_KEYS), None)


class _Reading:
    """One pass over a file; collects findings on its way."""

    def __init__(self, file: str, findings: tuple[Finding, ...]) -> None:
        """*findings*: what the reader of YAML has found."""
        self._file = file
        self._unreadable = findings
        self._findings: list[Finding] = []
        self._unsound: set[str] = set()
        """Settings of routers whose value in `defaults` can't be used."""
        self._unresolved: set[tuple[str, int]] = set()
        self._overruled: dict[tuple[Step, ...], Place] = {}
        """Places of a host or port in `defaults` that a connector with `to` doesn't use, by path."""
        self._in_use: set[tuple[Step, ...]] = set()
        """Paths of a host or port in `defaults` that some connector uses."""

    def document(self, root: Node) -> Document:
        top = self._mapping(root, expected="`router`, or `routers` and what belongs to them")
        if not isinstance(root, MapNode):
            findings = (*self._unreadable, *self._further())
            return Document(file=self._file, mesh=MeshSettings(), findings=findings, is_whole_mesh=False, nodes={})
        if (other := _for_whole_mesh(top)) is not None:
            place = top.key_places.get("router", top.items["router"].place)
            expected = "`routers`, with each router below its id"
            said = place.finding(f"`router` beside `{other}`, of a whole mesh", expected=expected, nearest="routers")
            return attrs.evolve(_nothing(self._file, said), findings=in_order((*self._unreadable, said)))
        is_whole_mesh = "router" not in top.items
        known = MESH_FILE_KEYS if is_whole_mesh else ROUTER_FILE_KEYS
        if {"router", "routers"} <= top.items.keys():
            place = top.items["routers"].place
            self._findings.append(place.finding("`routers` beside `router`", expected="one of them in a file"))
            known = (*known, "routers")
        self._refuse_unknown(top, known if top.items.keys() & {"router", "routers"} else (*MESH_FILE_KEYS, "router"))
        if is_whole_mesh:
            name, nodes = self._whole_mesh(top)
        else:
            router = self._mapping(top.items["router"])
            id_node = router.items.get("id")
            name = id_node.value if isinstance(id_node, yaml_text.ScalarNode) and isinstance(id_node.value, str) else ""
            nodes = {name: router} if isinstance(top.items["router"], MapNode) else {}
        routers = dict(self._routers(nodes))
        self._refuse_unknown_targets(nodes)
        routers = {key: self._with_targets(router, nodes[key], routers) for key, router in routers.items()}
        unused = [place for path, place in self._overruled.items() if path not in self._in_use]
        return Document(
            file=self._file,
            mesh=MeshSettings(name=name, routers=routers),
            findings=in_order((*self._unreadable, *self._further())),
            is_whole_mesh=is_whole_mesh,
            nodes=nodes,
            remarks=in_order(map(_overruled, unused)),
            unresolved=frozenset(self._unresolved),
        )

    def _further(self) -> Iterator[Finding]:
        """Findings where the file could be read: of an alias it needs no saying that nothing is there."""
        unreadable = {(finding.line, finding.key) for finding in self._unreadable}
        return (finding for finding in self._findings if (finding.line, finding.key) not in unreadable)

    def _whole_mesh(self, top: MapNode) -> tuple[str, dict[str, MapNode]]:
        """Name of the mesh, and the node of each router with all defaults in it."""
        mesh = self._mapping(top.items["mesh"]) if "mesh" in top.items else None
        name = self._mesh_name(mesh) if mesh is not None else MeshSettings().name
        defaults = self._defaults(self._mapping(top.items["defaults"])) if "defaults" in top.items else {}
        addresses = self._addresses(top.items["addresses"]) if "addresses" in top.items else None
        if "routers" not in top.items:
            self._findings.append(top.place.finding("`routers` is missing", expected="a mapping", at=("routers",)))
            return name, {}
        routers = self._mapping(top.items["routers"], expected="a mapping, with each router below its id")
        if not routers.items and isinstance(top.items["routers"], MapNode):
            self._findings.append(routers.place.finding("no router", expected="at least one"))
        nodes: dict[str, MapNode] = {}
        for router_id, node in routers.items.items():
            raw = self._mapping(node)
            if "id" not in raw.items:
                raw = defaults_merging.with_item(raw, "id", router_id, routers.key_places[router_id])
            nodes[router_id] = defaults_merging.router_with_defaults(raw, defaults, addresses)
        return name, nodes

    def _mesh_name(self, node: MapNode) -> str:
        self._refuse_unknown(node, MESH_KEYS)
        name = node.items.get("name")
        if name is None:
            return MeshSettings().name
        if isinstance(name, yaml_text.ScalarNode) and isinstance(name.value, str):
            fault = fault_of(field_of(MeshSettings, "name"), name.value)
            if fault is not None:
                self._findings.append(name.place.finding(fault.message, expected=fault.expected))
            return name.value
        self._findings.append(name.place.finding(found_words(yaml_text.plain(name)), expected="text"))
        return MeshSettings().name

    def _defaults(self, node: MapNode) -> dict[str, MapNode]:
        self._refuse_unknown(node, tuple(DEFAULTS_SECTIONS))
        sections: dict[str, MapNode] = {}
        for word, section in DEFAULTS_SECTIONS.items():
            if word not in node.items:
                continue
            found = self._mapping(node.items[word])
            self._refuse_unknown(found, section.keys, without=section)
            sections[word] = defaults_merging.only(
                found, [key for key in section.keys if self._is_sound(found, key, section)]
            )
        return sections

    def _is_sound(self, node: MapNode, key: str, section: DefaultsKey) -> bool:
        """Whether a default can be used: a bad one is told here, once, and not again at each router."""
        trial = defaults_merging.only(node, [key])
        if section.cls is RouterSettings:
            trial = defaults_merging.with_item(trial, "id", "trial", node.place)
        findings = structure(trial, section.cls)[1]
        self._findings += findings
        if findings and section.cls is RouterSettings:
            self._unsound.add(key)
        return not findings

    def _addresses(self, node: Node) -> yaml_text.ListNode | None:
        if not isinstance(node, yaml_text.ListNode):
            self._findings.append(node.place.finding(found_words(yaml_text.plain(node)), expected="a list"))
            return None
        sound = []
        for item in node.items:
            settings, findings = structure(item, AddressSettings)
            self._findings += findings
            if settings is not None:
                sound.append(item)
        return attrs.evolve(node, items=tuple(sound))

    def _routers(self, nodes: Mapping[str, MapNode]) -> Iterator[tuple[str, RouterSettings]]:
        for router_id, node in nodes.items():
            settings, findings = structure(node, RouterSettings)
            self._findings += findings
            if settings is None or self._unsound - node.items.keys():
                continue  # what names things of an unsound default, as a listener does, would seem to name nothing
            if settings.id != router_id:
                place = node.items["id"].place
                self._findings.append(
                    place.finding(f"id `{settings.id}` is not the key `{router_id}`", expected="the key, or no id")
                )
            yield router_id, settings

    def _refuse_unknown_targets(self, nodes: Mapping[str, MapNode]) -> None:
        """Look for `to` without a router, in the nodes, since the routers with other faults have no settings."""
        hints: dict[tuple[str, str], str | None] = {}

        def hint(to: str, but: str) -> str | None:
            if (to, but) not in hints and len(hints) < MOST_HINTS:
                hints[to, but] = nearest(to, [key for key in nodes if key != but])
            return hints.get((to, but))

        for key, router in nodes.items():
            connectors = router.items.get("connectors")
            for node in connectors.items if isinstance(connectors, yaml_text.ListNode) else ():
                to = _child(node, "to")
                if not isinstance(to, yaml_text.ScalarNode) or not isinstance(to.value, str) or to.value in nodes:
                    continue
                if _own_address(node) != {"host", "port"}:
                    others = _some(nodes, but=key)
                    expected = f"one of {others}, or also `host` and `port`" if others else "`host` and `port`"
                    message = f"no router `{to.value}` in this file"
                    near = hint(to.value, "")  # of all, and so the same for all that connect to it
                    near = hint(to.value, key) if near == key else near
                    self._findings.append(to.place.finding(message, expected=expected, nearest=near))

    def _with_targets(
        self, router: RouterSettings, node: MapNode, routers: Mapping[str, RouterSettings]
    ) -> RouterSettings:
        """The router, host and port of its connectors taken from the listener that `to` stands for."""
        connectors = []
        for index, connector in enumerate(router.connectors):
            target = routers.get(connector.to) if connector.to is not None else None
            written = _child(_child(node, "connectors"), index)
            self._note_defaults(written, is_overruled=target is not None)
            resolved: ConnectorSettings | None = connector  # without `to`, or with an address of its own
            if connector.to is not None and isinstance(written, MapNode) and _own_address(written) != {"host", "port"}:
                # None too for a target whose faults are told already.
                resolved = self._resolved(router, connector, written, target) if target is not None else None
            if resolved is None:
                self._unresolved.add((router.id, index))
            connectors.append(resolved or connector)
        return attrs.evolve(router, connectors=tuple(connectors))

    def _resolved(
        self, router: RouterSettings, connector: ConnectorSettings, node: MapNode, target: RouterSettings
    ) -> ConnectorSettings | None:
        """A connector with the host and port of its *target*; None where that has none, which is told."""
        if target.id == router.id:
            self._findings.append(dials_itself(node.items["to"].place, router.id))
            return None
        own = _own_address(node)
        address = link_address(target, needs_host="host" not in own)
        if isinstance(address, str):
            expected = "a fixed address to connect to"
            if router_listener(target) is None:
                expected = f"one among its `listeners`, such as `{{port: 25672, role: {Role.INTER_ROUTER}}}`"
            self._findings.append(node.items["to"].place.finding(address, expected=expected))
            return None
        host, port = address
        return attrs.evolve(
            connector, host=connector.host if "host" in own else host, port=connector.port if "port" in own else port
        )

    def _note_defaults(self, connector: Node | None, *, is_overruled: bool) -> None:
        items = connector.items if isinstance(connector, MapNode) else {}
        for place in (items[key].place for key in ("host", "port") if key in items):
            if place.path[0] != "defaults":
                continue
            if is_overruled:
                self._overruled[place.path] = place
            else:
                self._in_use.add(place.path)

    def _mapping(self, node: Node, *, expected: str = "a mapping") -> MapNode:
        if isinstance(node, MapNode):
            return node
        self._findings.append(node.place.finding(found_words(yaml_text.plain(node)), expected=expected))
        return MapNode(place=node.place, items={}, key_places={})

    def _refuse_unknown(self, node: MapNode, known: tuple[str, ...], *, without: DefaultsKey | None = None) -> None:
        """Tell of keys that are not *known*; those that *without* leaves out stand at each router, or in its lists."""
        for key in (key for key in node.items if key not in known):
            elsewhere = ""
            if key in MESH_FILE_KEYS and node.place.path:
                elsewhere = "at the top of the file"
            elif not node.place.path and key in ROUTER_KEYS:
                elsewhere = _place_in(node, key)
            elif without is not None and key in without.without:
                elsewhere = f"at each {without.list_key.removesuffix('s') if without.list_key else 'router'} itself"
            elif without is not None:
                elsewhere = _other_section(key)
            self._findings.append(unknown_key(node, key, known, elsewhere=elsewhere))


def _place_in(top: MapNode, key: str) -> str:
    """The place of a router's *key*, which stands at the *top* of a file, in words."""
    if "routers" not in top.items:
        return "below `router`"
    return "below `defaults.router`, or at a router" if key in DEFAULTS_SECTIONS["router"].keys else "at each router"


def _other_section(key: str) -> str:
    """The sections of `defaults`, of all items of a kind, that may have *key*, in words; empty for none."""
    names = [f"`{word}`" for word, section in DEFAULTS_SECTIONS.items() if key in section.keys and not section.role]
    return f"below {' or '.join(names)}" if names else ""


def _overruled(place: Place) -> Finding:
    return place.finding(
        f"no connector goes by this `{place.path[-1]}`: each has `to`, and dials the listener of that router",
        expected=f"`{place.path[-1]}` at the connector itself, beside `to`",
        severity=Severity.WARNING,
    )


def _own_address(node: Node) -> set[str]:
    """Host and port, those of them that are written at a connector itself; those in `defaults` give way to `to`."""
    items = node.items if isinstance(node, MapNode) else {}
    return {key for key in ("host", "port") if key in items and items[key].place.path[0] != "defaults"}


def _child(node: Node | None, step: Step) -> Node | None:
    if isinstance(node, MapNode) and isinstance(step, str):
        return node.items.get(step)
    if isinstance(node, yaml_text.ListNode) and isinstance(step, int) and step < len(node.items):
        return node.items[step]
    return None


def _some(words: Mapping[str, object], *, but: str | None = None, limit: int = 12) -> str:
    """The first of many words, without *but*, for a message; empty for none."""
    shown = [f"`{word}`" for word in islice((word for word in words if word != but), limit)]
    more = len(words) - (but in words) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
