"""Details that an operator knows of a mesh beside its links: groups, failure rates, capacities, subscribers. YAML.

defaults: {link: {failures_per_year: 2, repair_hours: 4}, router: {failures_per_year: 0.5, repair_hours: 6}}
routers: [{id: A, site: east}]
links: [{id: A--B, capacity_bytes: 1.25e9, delay_ms: 3.5}]
new_links: [{a: A, b: D, cost: 2}]
addresses: [{text: orders, treatment: closest}]
subscribers: [{address: orders, router: B, count: 2, credit: 200, service_ms: 5}]
groups: [{name: duct 7, kind: srlg, links: [A--B, A--C]}]
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import attrs

from mesh_config import yaml_text
from mesh_config.findings import Finding
from mesh_config.models import setting
from mesh_config.structuring import structure, unknown_key
from mesh_config.value_rules import found_words
from mesh_config.yaml_text import ListNode, MapNode, Node, Place, ScalarNode
from router.core.addressing.address import normalise
from router.whatif.formats.input_file import FileFindings, FilePath, in_file, read_text
from router.whatif.formats.mesh_settings import TreatmentOf
from router.whatif.model import validation
from router.whatif.model.elements import (
    MAX_COST,
    AddressNode,
    Group,
    LinkEdge,
    RouterNode,
    SubscriberSite,
    free_link_id,
    nearest_name,
)
from router.whatif.model.geography import fibre_between_ms
from router.whatif.model.mesh_model import Model, ModelError


def _optional(cls: type[attrs.AttrsInstance], name: str) -> Any:
    """A field as another class has it, absent by default."""
    metadata = getattr(attrs.fields(cls), name).metadata
    return setting(metadata["doc"], default=None, unit=metadata["unit"], low=metadata["low"], high=metadata["high"])


@attrs.frozen(kw_only=True)
class RouterDefaults:
    """Values of routers where nothing else is said."""

    failures_per_year: float | None = _optional(RouterNode, "failures_per_year")
    repair_hours: float | None = _optional(RouterNode, "repair_hours")


@attrs.frozen(kw_only=True)
class RouterDetails(RouterDefaults):
    """Details of one router."""

    id: str = setting("Id of the router.")
    site: str | None = setting("Where it stands.", default=None)
    latitude: float | None = _optional(RouterNode, "latitude")
    longitude: float | None = _optional(RouterNode, "longitude")


@attrs.frozen(kw_only=True)
class LinkDefaults:
    """Values of links where nothing else is said."""

    delay_ms: float | None = _optional(LinkEdge, "delay_ms")
    capacity_msgs: float | None = _optional(LinkEdge, "capacity_msgs")
    capacity_bytes: float | None = _optional(LinkEdge, "capacity_bytes")
    failures_per_year: float | None = _optional(LinkEdge, "failures_per_year")
    repair_hours: float | None = _optional(LinkEdge, "repair_hours")


@attrs.frozen(kw_only=True)
class LinkDetails(LinkDefaults):
    """Details of one link."""

    id: str = setting("Id of the link: `a--b`, the smaller router id first; of parallel links `a--b#2` and so on.")
    cost: int | None = _optional(LinkEdge, "cost")


@attrs.frozen(kw_only=True)
class NewLink(LinkDefaults):
    """A link that is planned."""

    a: str = setting("One end.")
    b: str = setting("The other end.")
    cost: int = setting("Cost, the same in both directions.", default=1, low=1, high=MAX_COST)


@attrs.frozen(kw_only=True)
class Defaults:
    """Values that many have in common."""

    router: RouterDefaults = setting("Of routers.", factory=RouterDefaults)
    link: LinkDefaults = setting("Of links.", factory=LinkDefaults)


LISTS: Final[Mapping[str, type[attrs.AttrsInstance]]] = {
    "routers": RouterDetails,
    "links": LinkDetails,
    "new_links": NewLink,
    "addresses": AddressNode,
    "subscribers": SubscriberSite,
    "groups": Group,
}
"""Keys of the file under which a list stands, and what its items are."""
KEYS: Final = ("defaults", *LISTS)
OWN_KEYS: Final = frozenset({"links", "new_links", "subscribers", "groups"})
"""Keys that the settings of a mesh don't have."""
NewLinkKind = TypeVar("NewLinkKind", bound=NewLink)
Item = tuple[Node, Any]
"""Place of an item, and its content."""
DefaultedFields = set[tuple[type, str, str]]
"""Fields that have only a default: RouterNode or LinkEdge, id, name of the field."""


def with_details(
    model: Model, path: FilePath, treatment_of: TreatmentOf, defaulted: DefaultedFields | None = None
) -> Model:
    """The model with what a file says of it.

    Routers and links get what is written, defaults only where they have nothing, or no more than a default of an
    earlier file; new links are added. A subscriber takes the place of what the model has for its address at its router,
    a group that of the group with its name.
    Args:
        model: has the routers and links.
        path: of a YAML file.
        treatment_of: of addresses of subscribers that the file doesn't list.
        defaulted: what earlier files gave by their defaults; it is brought up to date.
    Raises: SettingsError with all that is wrong with the file.
    """
    faults = FileFindings(path)
    text, expected = read_text(path), f"a mapping with {', '.join(f'`{key}`' for key in KEYS)}"
    root, findings = yaml_text.read(text, faults.file, expected=expected)
    faults.extend(findings)
    if root is not None and not isinstance(root, MapNode):
        faults.extend([root.place.finding(found_words(yaml_text.plain(root)), expected=expected)])
    if not isinstance(root, MapNode):
        faults.check()
        raise AssertionError("without a root there are findings")
    faults.extend(unknown_key(root, key, KEYS) for key in root.items if key not in KEYS)
    defaults = _defaults(root, faults)
    parts = {key: list(_items(root, key, faults)) for key in LISTS}
    model = attrs.evolve(model, links=(*model.links, *_new_links(model, parts["new_links"], faults)))
    _refuse_unknown(model, root, faults)
    _refuse_twice(parts, faults)
    _refuse_empty(parts["groups"], faults)
    faults.check()
    defaulted = set() if defaulted is None else defaulted
    found = attrs.evolve(
        model,
        routers=_detailed(model.routers, parts["routers"], defaults.router, defaulted),
        links=_detailed(model.links, parts["links"], defaults.link, defaulted),
        groups=_replaced(model.groups, parts["groups"], "name"),
        subscribers=_replaced(model.subscribers, parts["subscribers"], "address", "router"),
        addresses=_addresses(model, parts, treatment_of),
    )
    try:
        found.check()
    except ModelError as error:  # what no single item shows, say a member given twice
        raise ModelError(in_file(error.findings, path)) from error
    return found


def is_details(path: FilePath) -> bool:
    """Whether a file has keys of this format alone, and no mesh.

    Raises: SettingsError when it can't be read.
    """
    root, _ = yaml_text.read(read_text(path), str(path), expected="")
    if not isinstance(root, MapNode) or not set(root.items) <= set(KEYS):
        return False
    return bool(OWN_KEYS & set(root.items)) or isinstance(root.items.get("routers"), ListNode)


def _defaults(root: MapNode, faults: FileFindings) -> Defaults:
    if "defaults" not in root.items:
        return Defaults()
    defaults, findings = structure(root.items["defaults"], Defaults)
    faults.extend(findings)
    return defaults or Defaults()


def _items(root: MapNode, key: str, faults: FileFindings) -> Iterator[Item]:
    """The sound items of a list; what is wrong with the others is told."""
    node = root.items.get(key)
    if node is None:
        return
    if not isinstance(node, ListNode):
        faults.extend([node.place.finding(found_words(yaml_text.plain(node)), expected="a list")])
        return
    for item in node.items:
        found, findings = structure(item, LISTS[key])
        faults.extend(findings)
        if isinstance(found, SubscriberSite):
            found = attrs.evolve(found, address=normalise(found.address))
        elif isinstance(found, AddressNode):
            found = attrs.evolve(found, text=normalise(found.text))
        if found is not None:
            yield item, found


def _new_links(model: Model, items: list[Item], faults: FileFindings) -> list[LinkEdge]:
    planned = planned_links(model, [(node.place, link) for node, link in items], faults)
    return [link for link, _ in planned]


def planned_links(
    model: Model, items: Iterable[tuple[Place, NewLinkKind]], faults: FileFindings
) -> Iterator[tuple[LinkEdge, NewLinkKind]]:
    """Make links with the next usual ids that are free; a delay that is not given is that of straight fibre.

    Those that lead from a router to itself are told; those with an unknown end are left out.

    Args:
        model: to which they are added.
        items: the links, each with its place in the file.
        faults: gets what is wrong.
    Yields: each link as the model would have it, and as it was given.
    """
    routers = {router.id: router for router in model.routers}
    taken = {link.id for link in model.links}
    fields = {field.name for field in attrs.fields(LinkEdge)}
    for place, new in items:
        a, b = sorted((new.a, new.b))
        if a == b:
            faults.extend([place.finding(f"a link from `{a}` to itself", expected="two routers")])
        if a == b or a not in routers or b not in routers:
            continue
        values = {name: value for name, value in _values(new).items() if name in fields}
        values = {"delay_ms": fibre_between_ms(routers[a], routers[b]), **values}
        link = LinkEdge(**{**values, "id": free_link_id(a, b, taken), "a": a, "b": b})
        taken.add(link.id)
        yield link, new


def _refuse_unknown(model: Model, root: MapNode, faults: FileFindings) -> None:
    """Tell what names a router or a link that the model does not have, also in items with other faults."""
    routers, links = ({it.id: it for it in items} for items in (model.routers, model.links))
    places = (
        ("routers", "id", "router", routers),
        ("links", "id", "link", links),
        ("new_links", "a", "router", routers),
        ("new_links", "b", "router", routers),
        ("subscribers", "router", "router", routers),
        ("groups", "links", "link", links),
        ("groups", "routers", "router", routers),
    )
    faults.extend(unknown_names(root, places))


def unknown_names(root: MapNode, places: Iterable[tuple[str, str, str, Collection[str]]]) -> Iterator[Finding]:
    """Tell of names that a model does not have, also in items with other faults.

    Args:
        root: of a file.
        places: key of a list, field of its items with a name or a list of names, what these name, names that there are.
    """
    for part, field, what, known in places:
        for item in _list(root.items.get(part)):
            value = item.items.get(field) if isinstance(item, MapNode) else None
            for node in _list(value) if isinstance(value, ListNode) else (value,):
                name = node.value if isinstance(node, ScalarNode) else None
                if node is not None and isinstance(name, str) and name not in known:
                    message, near = f"no {what} `{name}`", nearest_name(name, known)
                    yield node.place.finding(message, expected=f"a {what} of the model", nearest=near)


def _refuse_empty(groups: list[Item], faults: FileFindings) -> None:
    """Tell of groups without members."""
    for node, group in groups:
        if not group.links and not group.routers:
            faults.extend([node.place.finding("nothing belongs to it", expected="`links` or `routers`")])


def _refuse_twice(parts: Mapping[str, list[Item]], faults: FileFindings) -> None:
    """Tell what a list has twice."""
    for part, key_of in validation.KEYS.items():
        seen: dict[object, int | None] = {}
        for node, item in parts.get(part, ()):
            key = key_of(item)
            if key in seen:
                message = f"`{' at '.join(key)}` is given twice, first in line {seen[key]}"
                faults.extend([node.place.finding(message, expected="each once")])
            seen.setdefault(key, node.place.line)


def _detailed(
    old: Iterable[Any], items: list[Item], defaults: attrs.AttrsInstance, defaulted: DefaultedFields
) -> list[Any]:
    """Routers or links with what is said of each, and of all."""
    details = {item.id: item for _, item in items}
    found = []
    for it in old:
        said = _values(details[it.id]) if it.id in details else {}
        if "cost" in said:
            said["cost_back"] = None
        defaulted.difference_update([(type(it), it.id, name) for name in said])
        usual = {
            name: value
            for name, value in _values(defaults).items()
            if name not in said and (getattr(it, name) is None or (type(it), it.id, name) in defaulted)
        }
        defaulted.update((type(it), it.id, name) for name in usual)
        found.append(attrs.evolve(it, **{**usual, **said}))
    return found


def _values(details: attrs.AttrsInstance) -> dict[str, Any]:
    return {name: value for name, value in attrs.asdict(details, recurse=False).items() if value is not None}


def _replaced(old: Iterable[Any], items: list[Item], *fields: str) -> list[Any]:
    """Join what the model has with the items; of two with the same *fields* the later one stays."""
    every = (*old, *(item for _, item in items))
    return list({tuple(getattr(it, field) for field in fields): it for it in every}.values())


def _addresses(model: Model, parts: Mapping[str, list[Item]], treatment_of: TreatmentOf) -> list[AddressNode]:
    found = {it.text: it for it in (*model.addresses, *(item for _, item in parts["addresses"]))}
    for _, site in parts["subscribers"]:
        if site.address not in found:
            found[site.address] = AddressNode(text=site.address, treatment=treatment_of(site.address))
    return list(found.values())


def _list(node: Node | None) -> tuple[Node, ...]:
    return node.items if isinstance(node, ListNode) else ()
