"""Defaults of a mesh put into each router, on the nodes of the file, so that every value keeps its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import attrs

from mesh_config.models import Role
from mesh_config.settings_file_format import DEFAULTS_SECTIONS
from mesh_config.value_rules import field_of
from mesh_config.yaml_text import ListNode, MapNode, Node, Place, Scalar, ScalarNode


def router_with_defaults(router: MapNode, defaults: Mapping[str, MapNode], addresses: ListNode | None) -> MapNode:
    """Merge what a file says of a router, directly and by its `defaults` and mesh-wide `addresses`.

    Args:
        router: what stands at the router itself; goes first.
        defaults: by the words of `DEFAULTS_SECTIONS`.
        addresses: mesh-wide treatments; those of a prefix or pattern that the router has too are left out.
    """
    merged = merge(router, defaults["router"]) if "router" in defaults else router
    for list_key in ("listeners", "connectors"):
        found = merged.items.get(list_key)
        if isinstance(found, ListNode):
            items = tuple(_item_with_defaults(item, list_key, defaults) for item in found.items)
            merged = _with_node(merged, list_key, attrs.evolve(found, items=items))
    return _with_addresses(merged, addresses) if addresses is not None else merged


def merge(own: MapNode, base: MapNode) -> MapNode:
    """*own*, and of *base* what it lacks; mappings that both have are merged, lists and scalars are *own*'s."""
    items: dict[str, Node] = dict(own.items)
    for key, node in base.items.items():
        mine = own.items.get(key)
        if mine is None:
            items[key] = node
        elif isinstance(mine, MapNode) and isinstance(node, MapNode):
            items[key] = merge(mine, node)
    return attrs.evolve(own, items=items, key_places={**base.key_places, **own.key_places})


def only(node: MapNode, keys: Iterable[str]) -> MapNode:
    """*node* with none but the keys named."""
    return attrs.evolve(node, items={key: node.items[key] for key in keys if key in node.items})


def with_item(node: MapNode, key: str, value: Scalar, place: Place) -> MapNode:
    """*node* and one more scalar, said to stand at *place*."""
    return _with_node(node, key, ScalarNode(place=place, value=value))


def address_key(prefix: str | None, pattern: str | None) -> tuple[str, ...]:
    """Key under which two treatments are one: words of the prefix or pattern, whatever their separators."""
    kind, text = ("prefix", prefix) if prefix is not None else ("pattern", pattern or "")
    return (kind, *re.split(r"[/.]", (text or "").strip("/.")))


def _with_node(node: MapNode, key: str, item: Node) -> MapNode:
    key_places = node.key_places if key in node.key_places else {**node.key_places, key: item.place}
    return attrs.evolve(node, items={**node.items, key: item}, key_places=key_places)


def _item_with_defaults(item: Node, list_key: str, defaults: Mapping[str, MapNode]) -> Node:
    if not isinstance(item, MapNode):
        return item
    sections = [(word, section) for word, section in DEFAULTS_SECTIONS.items() if section.list_key == list_key]
    (general,) = (word for word, section in sections if section.role is None)
    role = _role(item, defaults.get(general), list_key)
    merged = item
    for word, section in sections:
        if section.role is not None and section.role == role and word in defaults:
            merged = merge(merged, defaults[word])
    return merge(merged, defaults[general]) if general in defaults else merged


def _role(item: MapNode, general: MapNode | None, list_key: str) -> str:
    """The role of a listener or connector before it is structured: its own, the default's, the model's."""
    for node in (item, general):
        role = node.items.get("role") if node is not None else None
        if isinstance(role, ScalarNode):
            return str(role.value)
    cls = next(section.cls for section in DEFAULTS_SECTIONS.values() if section.list_key == list_key)
    default = field_of(cls, "role").default
    assert isinstance(default, Role), "the models give every role a default"
    return default.value


def _with_addresses(router: MapNode, addresses: ListNode) -> MapNode:
    own = router.items.get("addresses", ListNode(place=addresses.place, items=()))
    if not isinstance(own, ListNode):
        return router
    taken = {_node_key(item) for item in own.items}
    others = tuple(item for item in addresses.items if _node_key(item) not in taken)
    return _with_node(router, "addresses", attrs.evolve(own, items=own.items + others))


def _node_key(node: Node) -> tuple[str, ...] | None:
    if not isinstance(node, MapNode):
        return None
    texts = [node.items.get(key) for key in ("prefix", "pattern")]
    values = [node.value if isinstance(node, ScalarNode) else None for node in texts]
    if all(value is None for value in values):
        return None
    prefix, pattern = (str(value) if value is not None else None for value in values)
    return address_key(prefix, pattern)
