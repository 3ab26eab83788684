"""What docs/how_to/replace-qdrouterd.md says of settings: its tables are whole, and its example says the same twice."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mesh_config import models, qpid_dispatch_names
from mesh_config.loader import load_mesh
from mesh_config.models import Role, RouterSettings
from mesh_config.value_rules import fields_of
from router.cli import main

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "how_to" / "replace-qdrouterd.md").read_text(encoding="utf-8")
SCHEMA = ROOT / "tests" / "vectors" / "mgmt" / "a55-qdmanage-get-schema.json"
"""What a real `qdrouterd` answered."""
KEPT = {
    "id",
    "host",
    "port",
    "role",
    "cost",
    "name",
    "ciphers",
    "prefix",
    "pattern",
    "vhost",
    "http",
    "healthz",
    "metrics",
}
"""Names that are the same here, or that a part of the settings takes the place of."""
READ_ONLY = {"identity", "connectionStatus", "connectionMsg"}

Entity = dict[str, str]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def rows() -> Iterator[tuple[str, str]]:
    """Left and middle column of each row of the tables of attributes."""
    tables = PAGE.partition("## An example")[0]
    yield from re.findall(r"^\| (.+?) \| (.+?) \|", tables, re.MULTILINE)


@pytest.mark.parametrize("kind", ["listener", "connector", "sslProfile", "address", "log"])
def test_every_attribute_that_a_qdrouterd_can_be_given_stands_in_the_tables(kind: str) -> None:
    recorded = json.loads(SCHEMA.read_text(encoding="utf-8"))
    sections = dict(recorded["exchanges"][0]["response"]["decoded"])
    attributes = set(sections["amqp-value"]["entityTypes"][kind]["attributes"]) - READ_ONLY
    named = {name for left, _ in rows() for name in re.findall(r"`(\w+)", left)}
    assert attributes - named - {"name", "module"} == set()


def test_every_setting_of_the_tables_is_there() -> None:
    known = {field.name for value in vars(models).values() if isinstance(value, type) for field in settings_of(value)}
    named = {word for _, middle in rows() for name in re.findall(r"`([a-z_.]+)`", middle) for word in name.split(".")}
    assert len(named) > 40
    assert named - known - {"routers"} == set()


def test_names_that_are_translated_are_those_of_the_tables() -> None:
    """But for those that are the same here, that are values, and that vhosts have a table of their own for."""
    for left, middle in rows():
        theirs = re.findall(r"`(\w+)`", left.partition(" of ")[0] if " of `" in left else left)
        ours = re.findall(r"`([a-z_.]+)`", middle)
        for name in theirs:
            if middle == "none" and name not in KEPT:
                assert name in qpid_dispatch_names.WITHOUT
            elif name in qpid_dispatch_names.NAMES:
                assert qpid_dispatch_names.NAMES[name] in ours or f"log.{qpid_dispatch_names.NAMES[name]}" in ours
            else:
                assert name in KEPT, name
    assert {*qpid_dispatch_names.NAMES, *qpid_dispatch_names.WITHOUT} <= {
        name for left, _ in rows() for name in re.findall(r"`(\w+)", left)
    }


@pytest.mark.parametrize(
    ("listener", "said"),
    [
        ("authenticatePeer: true", "unknown key `authenticatePeer`; did you mean `sasl`?"),
        ("max_frame_size: 5", "unknown key `max_frame_size`; did you mean `max_frame_bytes`?"),
        (
            "linkCapacity: 5",
            "`linkCapacity`: this setting of Qpid Dispatch has no counterpart; expected nothing like it",
        ),
    ],
)
def test_a_name_of_qpid_dispatch_is_answered_with_ours(listener: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "mesh.yaml"
    file.write_text(f"router:\n  id: A\n  listeners:\n  - port: 5672\n    {listener}\n", encoding="utf-8")
    found = CliRunner().invoke(main, ["config", "check", str(file)])
    assert found.exit_code == 1
    assert said in found.output


def settings_of(cls: type) -> list[Any]:
    return list(fields_of(cls)) if hasattr(cls, "__attrs_attrs__") else []


# The example


def entities(text: str) -> Iterator[tuple[str, Entity]]:
    """Those of a qdrouterd.conf, each with its attributes."""
    for kind, body in re.findall(r"^(\w+) \{\n(.*?)^\}$", text, re.MULTILINE | re.DOTALL):
        yield kind, dict(re.findall(r"^ +(\w+): (.+)$", body, re.MULTILINE))


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[tuple[str, Entity]], RouterSettings]]:
    """By router what the two forms of the page say."""
    whole, more = blocks("text")
    (text,) = blocks("yaml")
    file = tmp_path_factory.mktemp("page") / "mesh.yaml"
    file.write_text(text, encoding="utf-8")
    routers = load_mesh(file).routers
    assert list(routers) == ["A", "B"]
    confs = {"A": whole, "B": whole.replace("id: A", "id: B") + more}
    return {key: (list(entities(conf)), routers[key]) for key, conf in confs.items()}


@pytest.mark.parametrize("router", ["A", "B"])
def test_the_example_says_the_same_of_listeners_connectors_and_profiles(
    router: str, example: dict[str, tuple[list[tuple[str, Entity]], RouterSettings]]
) -> None:
    conf, settings = example[router]
    assert [entity for kind, entity in conf if kind == "router"] == [{"mode": "interior", "id": settings.id}]
    profiles = [entity for kind, entity in conf if kind == "sslProfile"]
    assert profiles == [
        {"name": it.name, "certFile": it.certificate, "privateKeyFile": it.key, "caCertFile": it.ca}
        for it in settings.tls
    ]
    listeners = [entity for kind, entity in conf if kind == "listener"]
    for entity, listener in zip(listeners, settings.listeners, strict=True):
        assert (entity["host"], int(entity["port"]), entity["role"]) == (listener.host, listener.port, listener.role)
        assert entity["saslMechanisms"].split() == list(listener.sasl)
        assert entity.get("sslProfile") == listener.tls
        assert float(entity.get("idleTimeoutSeconds", 16)) == listener.idle_timeout_s
        if listener.role is Role.INTER_ROUTER:
            assert int(entity["maxFrameSize"]) == listener.max_frame_bytes
    connectors = [entity for kind, entity in conf if kind == "connector"]
    for entity, connector in zip(connectors, settings.connectors, strict=True):
        assert (entity["host"], int(entity["port"])) == (example["A"][1].host, example["A"][1].listeners[1].port)
        assert connector.to == "A"
        assert (entity["role"], entity["sslProfile"]) == (connector.role, connector.tls)
        assert (entity["saslMechanisms"], int(entity["cost"])) == (connector.sasl, connector.cost)
        assert int(entity["maxFrameSize"]) == connector.max_frame_bytes


def test_the_example_says_the_same_of_addresses(
    example: dict[str, tuple[list[tuple[str, Entity]], RouterSettings]],
) -> None:
    conf, settings = example["A"]
    here = {it.prefix: it.treatment for it in (*models.DEFAULT_ADDRESSES, *settings.addresses)}
    for entity in (entity for kind, entity in conf if kind == "address"):
        assert here[entity["prefix"]] == entity["distribution"]


def test_the_page_shows_what_config_check_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mesh.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (shown,) = re.findall(r"^\$ amqp-mesh config check mesh.yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert CliRunner().invoke(main, ["config", "check", "mesh.yaml"]).output == shown
