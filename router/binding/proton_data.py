"""AMQP values inside proton's objects (capabilities, properties, conditions) as Python values and back."""

from __future__ import annotations

from typing import Any, Final

import cproton
from proton import Array, Data, Described, ProtonException, char, int32, symbol

from router.binding.proton_functions import (
    NULL,
    Handle,
    pn_condition_copy,
    pn_condition_get_description,
    pn_condition_get_name,
    pn_condition_info,
    pn_condition_is_set,
    pn_condition_set_description,
    pn_condition_set_name,
    pn_data_copy,
    pn_data_encoded_size,
    text,
)

LIFETIME_POLICY = "lifetime-policy"
DELETE_ON_CLOSE = 0x2B
"""Descriptor of the lifetime of an address that goes with the link that it was made for (AMQP part 3, 3.5.10)."""

MOST_OUTCOME_BYTES: Final = 400
"""Maximum size of an error, and of an outcome's annotations, bytes. A frame of 512 bytes, the least that a peer may ask
for, has room for it; and a peer may give one outcome to thousands of messages, whose senders are each told of it."""
NO_NAME: Final = "amqp:internal-error"
"""Condition of an error whose own is no symbol, and which describes what it is about."""
MOST_PROPERTIES: Final = 32
"""Maximum number of properties that are read of a map. Routers have ten, and each takes five microseconds."""

UNREADABLE = (ProtonException, ValueError, TypeError, KeyError, OverflowError, RecursionError)
"""Errors by which proton tells that a peer has written what Python has no value for: a map with a list as key, a char
beyond Unicode, lists without end."""


def _data(handle: Handle) -> Data:
    """Proton's own view of the same `pn_data_t`; it frees nothing."""
    return Data(cproton.ffi.cast("pn_data_t *", handle))


def read(handle: Handle) -> object:
    """The value in a `pn_data_t` of proton; None when it is empty, or not there, or cannot be read."""
    if handle == NULL:
        return None
    data = _data(handle)
    data.rewind()
    if data.next() is None:
        return None
    try:
        value: object = data.get_object()
        return None if _has_surrogate(value) else value
    except UNREADABLE:
        return None
    finally:
        data.rewind()


def is_surrogate(value: object) -> bool:
    """Whether a char is half of a pair of UTF-16: Python makes text of it, which nobody can write then."""
    return isinstance(value, str) and "\ud800" <= value <= "\udfff"


def _has_surrogate(value: object) -> bool:
    """Whether *value* holds a surrogate, at any depth. Only a char can be one: strings were UTF-8."""
    if isinstance(value, str):
        return isinstance(value, char) and is_surrogate(value)
    if isinstance(value, dict):
        return any(_has_surrogate(key) or _has_surrogate(item) for key, item in value.items())
    if isinstance(value, Array):
        return any(map(_has_surrogate, value.elements))
    if isinstance(value, Described):
        return _has_surrogate(value.descriptor) or _has_surrogate(value.value)
    return isinstance(value, list) and any(map(_has_surrogate, value))


def read_symbols(handle: Handle) -> tuple[str, ...]:
    """Capabilities: one symbol, or an array or list of them, in their order."""
    value = read(handle)
    if isinstance(value, str):
        return (str(value),)
    elements = getattr(value, "elements", value)
    if isinstance(elements, list | tuple):
        return tuple(str(item) for item in elements if isinstance(item, str))
    return ()


def read_single_symbol(handle: Handle) -> str | None:
    """The capability when it is a bare symbol and no array, as router links have it; else None."""
    value = read(handle)
    return str(value) if isinstance(value, symbol) else None


def read_map(handle: Handle) -> dict[str, object]:
    """Properties with text keys: of the first `MOST_PROPERTIES`. Whatever else the peer sent is left out.

    Returns: empty when it is no map, or one of these can't be read.
    """
    if handle == NULL:
        return {}
    data = _data(handle)
    data.rewind()
    if data.next() != Data.MAP:
        data.rewind()
        return {}
    values: dict[str, object] = {}
    data.enter()
    try:
        for _ in range(MOST_PROPERTIES):
            if data.next() is None:
                break
            key = data.get_object()
            if data.next() is None:
                return {}  # a key without a value
            value = data.get_object()
            if _has_surrogate(key) or _has_surrogate(value):
                return {}
            if isinstance(key, str):
                values[str(key)] = value
    except UNREADABLE:
        return {}
    finally:
        data.rewind()
    return values


def write_symbols(handle: Handle, symbols: tuple[str, ...]) -> None:
    """An array of symbols; nothing when there are none."""
    data = _data(handle)
    data.clear()
    if symbols:
        data.put_array(False, Data.SYMBOL)
        data.enter()
        for item in symbols:
            data.put_symbol(symbol(item))
        data.exit()


def write_symbol(handle: Handle, item: str) -> None:
    """One bare symbol: the form in which routers announce what a link is for."""
    data = _data(handle)
    data.clear()
    data.put_symbol(symbol(item))


def write_map(handle: Handle, values: dict[str, object]) -> None:
    """Properties: symbol keys; integers as AMQP `int`, which is all that qdrouterd reads."""
    data = _data(handle)
    data.clear()
    if values:
        encoded: dict[Any, Any] = {
            symbol(key): int32(item) if isinstance(item, int) and not isinstance(item, bool) else item
            for key, item in values.items()
        }
        data.put_object(encoded)


def keep_delete_on_close(handle: Handle) -> None:
    """Reduce the properties that a dynamic node is asked to have to the one lifetime that it can have here."""
    lifetime = read_map(handle).get(LIFETIME_POLICY)
    clear(handle)
    if isinstance(lifetime, Described) and lifetime.descriptor == DELETE_ON_CLOSE:
        write_map(handle, {LIFETIME_POLICY: lifetime})


def clear(handle: Handle) -> None:
    """Remove whatever is there."""
    _data(handle).clear()


def set_condition(handle: Handle, name: str, description: str) -> None:
    """Write an error, with its description as far as `MOST_OUTCOME_BYTES` have room for that."""
    condition = name.encode()[: MOST_OUTCOME_BYTES // 2]
    left = description.encode()[: MOST_OUTCOME_BYTES - len(condition)]
    pn_condition_set_name(handle, condition)
    pn_condition_set_description(handle, left.decode(errors="ignore").encode())


def copy_condition(handle: Handle, origin: Handle) -> None:
    """Copy an error: one of more than `MOST_OUTCOME_BYTES` without its info, and its description as far as it fits."""
    size = int(pn_data_encoded_size(pn_condition_info(origin)))  # proton decodes it when it is asked for
    description = text(pn_condition_get_description(origin)) or ""
    name = text(pn_condition_get_name(origin)) or ""
    is_nameless = not name and bool(description)
    if is_nameless:
        name = NO_NAME
    if len(name.encode()) + len(description.encode()) + size > MOST_OUTCOME_BYTES:
        set_condition(handle, name, description)
        return
    pn_condition_copy(handle, origin)
    if is_nameless:
        pn_condition_set_name(handle, name.encode())


def copy_annotations(handle: Handle, origin: Handle) -> None:
    """Copy annotations of an outcome, unless they take more than `MOST_OUTCOME_BYTES`."""
    if int(pn_data_encoded_size(origin)) <= MOST_OUTCOME_BYTES:
        pn_data_copy(handle, origin)


def read_condition(handle: Handle) -> str | None:
    """`name: description` of a condition that is set, else None."""
    if not pn_condition_is_set(handle):
        return None
    description = text(pn_condition_get_description(handle))
    name = text(pn_condition_get_name(handle)) or ""
    return f"{name}: {description}" if description else name
