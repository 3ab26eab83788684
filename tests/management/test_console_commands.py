"""Commands that the console shows beside a problem: they reach the router whose console it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from mesh_config.models import ListenerSettings, Mechanism, Role, TlsMode
from router.cli import router_access
from router.core.terminal_escaping import shell_word
from router.net.listener import Listener
from router.views.console import DEFAULT_URL, url_suffix, with_url

ROUTERS = ListenerSettings(port=0, role=Role.INTER_ROUTER)
PLAIN = ListenerSettings(port=0)
USERS = ListenerSettings(port=0, sasl=(Mechanism.SCRAM_SHA_256,), users_file="users")
ENCRYPTED = ListenerSettings(port=0, tls="mesh")
BOTH = ListenerSettings(port=0, tls="mesh", tls_mode=TlsMode.OPTIONAL)
TENANT = ListenerSettings(port=0, vhost="shop")
EVERYWHERE = ListenerSettings(host="0.0.0.0", port=0)
EVERYWHERE_6 = ListenerSettings(host="::", port=0)
LOOPBACK_6 = ListenerSettings(host="::1", port=0)


@contextmanager
def bound(*settings: ListenerSettings) -> Iterator[list[Listener]]:
    with ExitStack() as stack:
        listeners = [Listener(each) for each in settings]
        for each in listeners:
            stack.callback(each.close)
        yield listeners


@pytest.mark.parametrize(
    ("settings", "at", "url"),
    [
        ((ROUTERS, PLAIN), 1, "amqp://127.0.0.1"),
        ((ENCRYPTED, TENANT, USERS, PLAIN), 3, "amqp://127.0.0.1"),
        ((ENCRYPTED, TENANT, USERS), 2, "amqp://127.0.0.1"),
        ((TENANT, ENCRYPTED), 1, "amqps://127.0.0.1"),
        ((ENCRYPTED, BOTH), 1, "amqp://127.0.0.1"),
        ((EVERYWHERE,), 0, "amqp://127.0.0.1"),
        ((EVERYWHERE_6,), 0, "amqp://[::1]"),
        ((LOOPBACK_6,), 0, "amqp://[::1]"),
    ],
)
def test_a_command_names_the_listener_for_clients_that_needs_least(
    settings: tuple[ListenerSettings, ...], at: int, url: str
) -> None:
    with bound(*settings) as listeners:
        assert url_suffix(listeners) == f" --url {shell_word(f'{url}:{listeners[at].port}')}"


def test_a_router_without_a_listener_for_clients_has_none_to_name() -> None:
    with bound(ROUTERS) as listeners:
        assert url_suffix(listeners) == ""
    assert url_suffix([]) == ""


def test_commands_of_other_programs_ask_no_router() -> None:
    assert with_url("amqp-mesh stat mesh --router A", " --url amqp://h:1") == (
        "amqp-mesh stat mesh --router A --url amqp://h:1"
    )
    assert with_url("openssl x509 -in a.pem", " --url amqp://h:1") == "openssl x509 -in a.pem"


def test_the_default_address_is_that_of_the_commands() -> None:
    assert router_access.DEFAULT_URL == DEFAULT_URL
