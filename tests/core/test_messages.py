"""Control messages: bodies as qdrouterd 1.19.0 writes them, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_config.models import Treatment
from router.core.errors import DecodeError
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.messages import (
    KINDS,
    MAX_INT,
    ControlMessage,
    Hello,
    LinkStateRequest,
    LinkStateUpdate,
    MobileAddressRequest,
    MobileAddressUpdate,
    RouterAdvertisement,
    UnknownMessage,
    from_body,
    is_router_id,
    mobile_address,
    mobile_key,
)
from tests.helpers.records import messages

# Bodies recorded between qdrouterd 1.19.0 routers in a line C - B - A.
RECORDED: list[tuple[str, dict[str, Any], ControlMessage]] = [
    (
        "HELLO",
        {"id": "B", "pv": 1, "area": "0", "instance": 1795170709, "seen": ["A", "C"]},
        Hello(id=RouterId("B"), instance=1795170709, seen=(RouterId("A"), RouterId("C"))),
    ),
    (
        "RA",
        {"id": "A", "pv": 1, "area": "0", "instance": 1795170709, "ls_seq": 1, "mobile_seq": 1},
        RouterAdvertisement(id=RouterId("A"), instance=1795170709, ls_seq=1, mobile_seq=1),
    ),
    ("LSR", {"id": "C", "pv": 1, "area": "0"}, LinkStateRequest(id=RouterId("C"))),
    (
        "LSU",
        {
            "id": "B", "pv": 1, "area": "0", "instance": 1795170709, "ls_seq": 2,
            "ls": {"id": "B", "area": "0", "ls_seq": 2, "peers": {"A": 1, "C": 5}},
        },
        LinkStateUpdate(
            id=RouterId("B"), instance=1795170709, ls_seq=2, peers={RouterId("A"): 1, RouterId("C"): 5}
        ),
    ),
    (
        "MAU",
        {
            "id": "C", "pv": 1, "area": "0", "mobile_seq": 1, "hints": [1, 2],
            "add": ["M0multicast/one", "M0closest/one"], "del": [],
        },
        MobileAddressUpdate(
            id=RouterId("C"), mobile_seq=1, hints=(1, 2), add=("M0multicast/one", "M0closest/one")
        ),
    ),
    (
        "MAU",
        {"id": "A", "pv": 1, "area": "0", "mobile_seq": 5, "hints": [], "add": [], "del": ["MFfb/q", "Clr", "Dlr"]},
        MobileAddressUpdate(id=RouterId("A"), mobile_seq=5, delete=("MFfb/q", "Clr", "Dlr")),
    ),
    (
        "MAU",
        {"id": "A", "pv": 1, "area": "0", "mobile_seq": 1, "exist": ["M0closest/one", "HE1"], "hints": [2, 3]},
        MobileAddressUpdate(id=RouterId("A"), mobile_seq=1, exist=("M0closest/one", "HE1"), hints=(2, 3)),
    ),
    ("MAR", {"id": "C", "pv": 1, "area": "0", "have_seq": 0}, MobileAddressRequest(id=RouterId("C"), have_seq=0)),
]  # fmt: skip


@pytest.mark.parametrize(("opcode", "body", "message"), RECORDED)
def test_recorded_bodies_are_read_and_written_as_they_were(
    opcode: str, body: dict[str, Any], message: ControlMessage
) -> None:
    assert from_body(opcode, body) == message
    assert message.opcode == opcode
    assert message.to_body() == body
    assert list(message.to_body()) == list(body)


@given(messages())
def test_every_message_survives_its_body(message: ControlMessage) -> None:
    assert from_body(message.opcode, message.to_body()) == message


@pytest.mark.parametrize(("opcode", "body", "message"), RECORDED)
def test_a_missing_mandatory_key_is_named(opcode: str, body: dict[str, Any], message: ControlMessage) -> None:
    for key in body.keys() - {"pv", "area", "hints", "del", "add"} - ({"ls_seq"} if opcode == "LSU" else set()):
        shorter = {k: v for k, v in body.items() if k != key}
        missing = "add" if key == "exist" else key
        with pytest.raises(DecodeError, match=f"{opcode} without {missing}"):
            from_body(opcode, shorter)


@pytest.mark.parametrize(("opcode", "body", "message"), RECORDED)
def test_unknown_keys_are_ignored_and_an_absent_version_is_0(
    opcode: str, body: dict[str, Any], message: ControlMessage
) -> None:
    changed = {**body, "surplus": object()}
    del changed["pv"], changed["area"]
    assert from_body(opcode, changed).pv == 0


@pytest.mark.parametrize(
    ("opcode", "change"),
    [
        ("HELLO", {"seen": "A"}),
        ("HELLO", {"seen": ["A", 1]}),
        ("HELLO", {"id": "a b"}),
        ("HELLO", {"id": ""}),
        ("HELLO", {"id": "all"}),
        ("HELLO", {"id": "a/b"}),
        ("HELLO", {"id": "x" * 256}),
        ("HELLO", {"instance": True}),
        ("HELLO", {"pv": "1"}),
        ("RA", {"ls_seq": -1}),
        ("RA", {"ls_seq": 2**63}),
        ("RA", {"mobile_seq": 1.0}),
        ("LSU", {"ls": ["B"]}),
        ("LSU", {"ls": {"id": "B", "ls_seq": 1}}),
        ("LSU", {"ls": {"id": "A", "ls_seq": 1, "peers": {}}}),
        ("LSU", {"ls": {"id": "B", "ls_seq": 1, "peers": {"A": 0}}}),
        ("LSU", {"ls": {"id": "B", "ls_seq": 1, "peers": {"A": 2**31}}}),
        ("LSU", {"ls": {"id": "B", "ls_seq": 1, "peers": {"A": "1"}}}),
        ("LSU", {"ls": {"id": "B", "ls_seq": 1, "peers": {7: 1}}}),
        ("MAU", {"exist": []}),
        ("MAU", {"add": {}}),
        ("MAU", {"del": None}),
        ("MAU", {"add": [1]}),
        ("MAR", {"have_seq": None}),
    ],
)
def test_wrong_shapes_are_refused(opcode: str, change: dict[str, Any]) -> None:
    body = next(body for kind, body, _ in RECORDED if kind == opcode)
    with pytest.raises(DecodeError, match=opcode):
        from_body(opcode, {**body, **change})


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = ["id", "pv", "area", "instance", "seen", "ls", "ls_seq", "peers", "mobile_seq", "add", "del", "exist", "hints"]


@given(st.sampled_from([*KINDS, "HELLO2"]), st.dictionaries(st.sampled_from(KEYS), plain))
def test_any_body_is_read_or_refused_and_nothing_else(opcode: str, body: dict[str, Any]) -> None:
    try:
        message = from_body(opcode, body)
    except DecodeError:
        return
    assert from_body(message.opcode, message.to_body()) == message


def test_newer_versions_and_unknown_kinds_are_not_read_any_further() -> None:
    # skrouterd writes MAUs of version 2, with entries that are lists.
    newer = from_body("MAU", {"id": "S", "pv": 2, "mobile_seq": 1, "add": [["M", 1]], "del": []})
    assert newer == UnknownMessage(id=RouterId("S"), pv=2, name="MAU")
    assert from_body("WHAT", {"id": "S"}) == UnknownMessage(id=RouterId("S"), pv=0, name="WHAT")
    assert from_body(newer.opcode, newer.to_body()) == newer


def test_hints_count_only_when_there_is_one_for_each_address() -> None:
    make = MobileAddressUpdate
    router = RouterId("A")
    keys = ("M0a", "M0b", "M0c")
    hints = make(id=router, mobile_seq=1, add=keys, hints=(1, 2, 3)).treatments()
    assert hints == (Treatment.MULTICAST, Treatment.CLOSEST, Treatment.BALANCED)
    assert make(id=router, mobile_seq=1, add=keys, hints=(0, 4, 99)).treatments() == (None,) * 3
    assert make(id=router, mobile_seq=1, exist=keys, hints=(1, 2)).treatments() == (None,) * 3
    odd = from_body("MAU", {"id": "A", "mobile_seq": 1, "add": ["M0a"], "del": [], "hints": ["closest"]})
    assert isinstance(odd, MobileAddressUpdate)
    assert odd.treatments() == (None,)


def test_only_keys_of_class_m_phase_0_and_of_edge_routers_are_mobile_addresses_here() -> None:
    assert mobile_key("a/b") == "M0a/b"
    assert mobile_address("M0a/b") == "a/b"
    assert mobile_address("HE1") == "_edge/E1"
    for key in ("M1wp/q", "MFfb/q", "Clr", "Dlr", "Elr", "Flr", "H", "HE/1", "M0", "", "m0a"):
        assert mobile_address(key) is None


def test_largest_sequences_fit() -> None:
    body = {"id": "A", "instance": -MAX_INT, "ls_seq": MAX_INT, "mobile_seq": MAX_INT}
    assert isinstance(from_body("RA", body), RouterAdvertisement)
    assert is_router_id("rack-1.example")
    assert not is_router_id("tab\t")
