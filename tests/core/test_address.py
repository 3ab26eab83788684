"""Addresses mean the same in every form in which they may be written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.core.addressing.address import (
    RESERVED,
    Address,
    AddressKind,
    dynamic_address,
    is_reserved,
    is_volatile_reply,
    local_address,
    normalise,
    parse_address,
    router_address,
    volatile_reply_address,
    with_vhost,
)
from router.core.ids_and_conditions import RouterId

ME = RouterId("A")
B = RouterId("B")


@pytest.mark.parametrize(
    "form", ["{}", "amqp:/{}", "amqp://host/{}", "amqp://host:5672/{}", "/{}", "{}/", "{}.", "{}/./"]
)
@pytest.mark.parametrize(
    ("text", "kind", "looked_up", "router"),
    [
        ("closest/one", AddressKind.MOBILE, "closest/one", None),
        ("a.b.c", AddressKind.MOBILE, "a.b.c", None),
        ("$management", AddressKind.MOBILE, "$management", None),
        ("_local/qdhello", AddressKind.LOCAL, "qdhello", None),
        ("_topo/0/A/temp.x+y", AddressKind.LOCAL, "temp.x+y", None),
        ("_topo/0/A/$management", AddressKind.LOCAL, "$management", None),
        ("_topo/all/A/x", AddressKind.LOCAL, "x", None),
        ("_topo/0/all/qdrouter.ma", AddressKind.EVERY_ROUTER, "qdrouter.ma", None),
        ("_topo/all/all/qdrouter", AddressKind.EVERY_ROUTER, "qdrouter", None),
        ("_topo/0/B/temp.1/2", AddressKind.ROUTER, "temp.1/2", B),
        ("_topo/0/AB/x", AddressKind.ROUTER, "x", RouterId("AB")),
        ("_topo/1/B/x", AddressKind.FOREIGN, "_topo/1/B/x", None),
        ("_edge/E1/temp.x", AddressKind.EDGE, "temp.x", RouterId("E1")),
        ("_topology/x", AddressKind.MOBILE, "_topology/x", None),
        ("_locals", AddressKind.MOBILE, "_locals", None),
    ],
)
def test_every_form_of_an_address_is_the_same_address(
    form: str, text: str, kind: AddressKind, looked_up: str, router: RouterId | None
) -> None:
    assert parse_address(form.format(text), me=ME) == Address(kind, looked_up, router)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        ".",
        "amqp:/",
        "amqp://host",
        "amqp://host/",
        "_local",
        "_local/",
        "_topo",
        "_topo/0",
        "_topo/0/A/",
        "_topo/1",
        "_edge/",
        "_topo/0//",
    ],
)
def test_an_address_that_names_nothing_is_invalid(text: str) -> None:
    assert parse_address(text, me=ME).kind is AddressKind.INVALID


@given(st.text(alphabet="amqp:/._x0", max_size=20))
def test_the_normal_form_is_its_own_normal_form(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_control_addresses_are_reserved_at_every_router_and_only_there(name: str) -> None:
    assert is_reserved(f"_local/{name}")
    assert is_reserved(f"amqp:/_topo/0/all/{name}")
    assert is_reserved(f"amqp:/_topo/0/A/{name}")
    assert is_reserved(f"_topo/0/B/{name}/")
    assert not is_reserved(name)
    assert not is_reserved(f"_local/{name}x")
    assert not is_reserved(f"tenant/{name}")
    assert not is_reserved("")


def test_written_addresses_are_read_back() -> None:
    assert parse_address(router_address(B, "qdrouter"), me=ME) == Address(AddressKind.ROUTER, "qdrouter", B)
    assert parse_address(router_address(ME, "qdrouter"), me=ME) == Address(AddressKind.LOCAL, "qdrouter")
    assert parse_address("_topo/0/all/qdrouter.ma", me=ME) == Address(AddressKind.EVERY_ROUTER, "qdrouter.ma")
    assert parse_address(local_address("qdhello"), me=ME) == Address(AddressKind.LOCAL, "qdhello")
    assert dynamic_address(B, "WgdMIG9eBMmDvzf") == "amqp:/_topo/0/B/temp.WgdMIG9eBMmDvzf"
    assert parse_address(dynamic_address(B, "r"), me=ME) == Address(AddressKind.ROUTER, "temp.r", B)


def test_a_volatile_reply_address_is_mobile_and_known_by_its_form() -> None:
    text = volatile_reply_address(B, "Zm9v")
    address = parse_address(text, me=ME)
    assert address.kind is AddressKind.MOBILE
    assert is_volatile_reply(text)
    assert is_volatile_reply(f"amqp:/{text}")
    assert not is_volatile_reply("amq.rabbitmq.reply-to")
    assert not is_volatile_reply(dynamic_address(B, "Zm9v"))


def test_a_virtual_host_comes_before_mobile_addresses_only() -> None:
    assert with_vhost("svc/x", "tenant.one") == "tenant.one/svc/x"
    assert with_vhost("amqp:/svc/x/", "tenant.one") == "tenant.one/svc/x"
    assert with_vhost("_topology", "t") == "t/_topology"
    for untouched in (
        "amqp:/_topo/0/A/temp.x",
        "_local/x",
        "_edge/E/x",
        "$management",
        "amqp:/$management",
        "$anything",
        volatile_reply_address(B, "r"),
        "",
    ):
        assert with_vhost(untouched, "tenant.one") == untouched
    assert with_vhost("svc/x", "") == "svc/x"
