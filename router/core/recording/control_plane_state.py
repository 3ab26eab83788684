"""The state of a control plane as plain data, and a control plane with that state again.

A running router keeps it as bytes (`freeze`), which takes little time and leaves the control plane as it is. A file has
it as JSON (`to_plain`), of which nothing but numbers, texts and the classes named here can be made: who reads a file of
a stranger runs none of his code.

In JSON each object, dict, list, deque and set stands once, in a list; the first is the control plane. Elsewhere it is
`["ref", its number]`. What is no JSON is a list that begins with a word.
"""

from __future__ import annotations

import enum
import math
import pickle
import random
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from types import MethodType, ModuleType
from typing import Any, Final, cast

import attrs

from mesh_config.models import addresses, link_state
from router.core import controlplane, events, ids_and_conditions
from router.core.addressing import address_list_parts, address_sync, fib_update_queue
from router.core.controlplane import ControlPlane
from router.core.errors import LocalError
from router.core.linkstate import (
    control_forwarder,
    control_message_sender,
    due_routers,
    duplicate_ids,
    hello_sender,
    link_state_requests,
    lsdb,
    messages,
    neighbors,
    protocol,
    rate_limit,
    routes,
    spf,
    superseded_instances,
    throttle,
)

_MODULES: Final[Sequence[ModuleType]] = (
    fib_update_queue, address_list_parts, address_sync, addresses, control_forwarder, control_message_sender,
    controlplane, due_routers, duplicate_ids, events, hello_sender, ids_and_conditions, link_state,
    link_state_requests, lsdb, messages, neighbors, protocol, rate_limit, routes, spf, superseded_instances, throttle,
)  # fmt: skip


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"


_KINDS: Final[Mapping[str, type]] = {
    _name(kind): kind
    for module in _MODULES
    for kind in vars(module).values()
    if isinstance(kind, type) and kind.__module__ == module.__name__
}
"""Classes of which a state may consist, by name."""


def freeze(control: ControlPlane) -> bytes:
    """The state of *control*, for `thaw` in this very process."""
    return pickle.dumps(control, protocol=pickle.HIGHEST_PROTOCOL)


def thaw(state: bytes) -> ControlPlane:
    """A control plane with the state that `freeze` gave."""
    return cast("ControlPlane", pickle.load(_StateFrames(state)))  # noqa: S301  made by this process


class _StateFrames:
    """Frames of a frozen state, one for each call.

    Args:
        state: that `freeze` gave.
    """

    # Methods of Python, unlike `pickle.loads`, let another thread run in between: a large state takes seconds.
    def __init__(self, state: bytes) -> None:
        self._state = state
        self._at = 0

    def read(self, size: int, /) -> bytes:
        begin, self._at = self._at, self._at + size
        return self._state[begin : self._at]

    def readline(self) -> bytes:
        return self.read(self._state.index(b"\n", self._at) + 1 - self._at)


def to_plain(control: ControlPlane) -> list[object]:
    """The state of *control* as what JSON can hold.

    Raises:
        LocalError: something in it is of no known class.
    """
    writer = _Writer()
    writer.value(control)
    return writer.items


def from_plain(plain: object) -> ControlPlane:
    """A control plane with the state that `to_plain` gave.

    Raises:
        LocalError: it is no such state.
    """
    try:
        made = _Reader(cast("list[Any]", plain)).made
        control = made[0]
        if not isinstance(control, ControlPlane):
            raise TypeError("it is another thing")
        control.own_node(), control.nodes(), control.neighbors(), control.counters(), control.next_deadline()
    except Exception as error:  # whatever somebody else has written there
        raise LocalError(f"no state of a control plane: {type(error).__name__}: {error}") from error
    return control


class _Writer:
    def __init__(self) -> None:
        self.items: list[object] = []
        self._numbers: dict[int, int] = {}

    def value(self, value: object) -> object:
        if isinstance(value, enum.Enum):
            return ["enum", _name(type(value)), value.value]
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else ["float", repr(value)]
        if isinstance(value, tuple):
            return ["tuple", *map(self.value, value)]
        if isinstance(value, MethodType):
            return ["method", self.value(value.__self__), value.__name__]
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self.items)
            self.items.append(None)
            self.items[number] = self._item(value)
        return ["ref", number]

    def _item(self, value: object) -> list[object]:
        if isinstance(value, dict):
            pairs = [[self.value(key), self.value(held)] for key, held in value.items()]
            return ["Counter" if isinstance(value, Counter) else "dict", pairs]
        if isinstance(value, list | deque):
            return [type(value).__name__, [self.value(held) for held in value]]
        if isinstance(value, set | frozenset):
            return [type(value).__name__, sorted((self.value(held) for held in value), key=repr)]
        if type(value) is random.Random:
            return ["Random", self.value(value.getstate())]
        name = _name(type(value))
        if name not in _KINDS:
            raise LocalError(f"no state of a control plane: {name} in it")
        return ["object", name, {key: self.value(held) for key, held in _fields(value).items()}]


def _fields(value: Any) -> Mapping[str, object]:
    if attrs.has(type(value)):
        return {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}
    if isinstance(value, spf.Topology):
        return value.__getstate__()
    fields: Mapping[str, object] = vars(value)
    return fields


_EMPTY: Final[Mapping[str, type]] = {
    "dict": dict,
    "Counter": Counter,
    "list": list,
    "deque": deque,
    "set": set,
    "Random": random.Random,
}


class _Reader:
    """Makes what is in a list of items: first each one empty, since they refer to each other, then what they hold."""

    def __init__(self, items: list[Any]) -> None:
        self.made: list[Any] = [self._empty(item) for item in items]
        later = []
        for made, (word, *held) in zip(self.made, items, strict=True):
            if word == "object" and isinstance(made, spf.Topology):
                later.append((made, held[1]))
            else:
                self._fill(made, word, held)
        for topology, fields in later:  # they make a graph of what must be whole by then
            topology.__setstate__({key: self._value(value) for key, value in fields.items()})

    def _empty(self, item: list[Any]) -> object:
        if item[0] == "frozenset":
            return frozenset(self._scalar(held) for held in item[1])
        if item[0] != "object":
            return _EMPTY[item[0]]()
        kind = _KINDS[item[1]]
        if attrs.has(kind) and set(item[2]) != {field.name for field in attrs.fields(kind)}:
            raise ValueError(f"{kind.__name__} has other fields in this version")
        return object.__new__(kind)

    def _fill(self, made: Any, word: str, held: list[Any]) -> None:
        if word in ("dict", "Counter"):
            for key, value in held[0]:
                dict.__setitem__(made, self._value(key), self._value(value))
        elif word in ("list", "deque"):
            made.extend(map(self._value, held[0]))
        elif word == "set":
            made.update(map(self._value, held[0]))
        elif word == "Random":
            made.setstate(self._value(held[0]))
        elif word == "object":
            for key, value in held[1].items():
                object.__setattr__(made, key, self._value(value))

    def _value(self, plain: Any) -> Any:
        if isinstance(plain, list) and plain[0] == "ref":
            return self.made[plain[1]]
        if isinstance(plain, list) and plain[0] == "tuple":
            return tuple(map(self._value, plain[1:]))
        if isinstance(plain, list) and plain[0] == "method":
            owner = self.made[plain[1][1]]
            method = getattr(owner, plain[2])
            if not isinstance(method, MethodType) or _name(type(owner)) not in _KINDS:
                raise ValueError(f"{plain[2]} is no method")
            return method
        return self._scalar(plain)

    def _scalar(self, plain: Any) -> Any:
        if not isinstance(plain, list):
            return plain
        if plain[0] == "float":
            return float(plain[1])
        if plain[0] == "enum":
            kind = _KINDS[plain[1]]
            if issubclass(kind, enum.Enum):
                return kind(plain[2])
        raise ValueError(f"{plain[0]!r} stands for nothing")
