"""Strategies for control messages, events and actions."""

from __future__ import annotations

import types
import typing
from typing import Any

import attrs
from hypothesis import strategies as st

from mesh_config.models import Treatment
from router.core.events import Action, Event
from router.core.ids_and_conditions import Condition, RouterId
from router.core.linkstate.messages import (
    ControlMessage,
    Hello,
    LinkStateRequest,
    LinkStateUpdate,
    MobileAddressRequest,
    MobileAddressUpdate,
    RouterAdvertisement,
    UnknownMessage,
)

router_ids = st.text("abcXYZ019-._é", min_size=1, max_size=6).map(RouterId)
sequences = st.integers(0, 2**63 - 1)
versions = st.integers(0, 1)
keys = st.text(max_size=8)


def messages() -> st.SearchStrategy[ControlMessage]:
    """Any control message."""
    hints = st.lists(st.integers(0, 9), max_size=4).map(tuple)
    many_keys = st.lists(keys, max_size=4).map(tuple)
    envelope: dict[str, Any] = {"id": router_ids, "pv": versions, "area": st.sampled_from(["0", "1"])}
    return st.one_of(
        st.builds(Hello, **envelope, instance=sequences, seen=st.lists(router_ids, max_size=3).map(tuple)),
        st.builds(RouterAdvertisement, **envelope, instance=sequences, ls_seq=sequences, mobile_seq=sequences),
        st.builds(LinkStateRequest, **envelope),
        st.builds(
            LinkStateUpdate,
            **envelope,
            instance=sequences,
            ls_seq=sequences,
            peers=st.dictionaries(router_ids, st.integers(1, 2**31 - 1), max_size=3),
        ),
        st.builds(MobileAddressUpdate, **envelope, mobile_seq=sequences, add=many_keys, delete=many_keys, hints=hints),
        st.builds(MobileAddressUpdate, **envelope, mobile_seq=sequences, exist=many_keys, hints=hints),
        st.builds(MobileAddressRequest, **envelope, have_seq=sequences),
        st.builds(UnknownMessage, id=router_ids, pv=st.integers(0, 9), name=keys),
    )


def records(kind: type[Event] | type[Action]) -> st.SearchStrategy[Any]:
    """Any record of *kind*, by the types of its fields."""
    hints = typing.get_type_hints(kind)
    return st.builds(kind, **{field.name: _values(hints[field.name]) for field in attrs.fields(kind)})


def _values(wanted: Any) -> st.SearchStrategy[Any]:
    if isinstance(wanted, typing.NewType):
        wanted = wanted.__supertype__
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (types.UnionType, typing.Union):
        return st.none() | _values(inner[0])
    if origin is tuple and inner[-1] is Ellipsis:
        return st.lists(_values(inner[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(_values, inner))
    if wanted is ControlMessage:
        return messages()
    known: dict[Any, st.SearchStrategy[Any]] = {
        str: keys,
        int: st.integers(),
        bool: st.booleans(),
        Treatment: st.sampled_from(Treatment),
        Condition: st.sampled_from(Condition),
    }
    return known[wanted]
