"""Checks of one router's settings beyond the single value: values that do not go together."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import attrs

from mesh_config.check_security import http_security_findings, security_findings
from mesh_config.check_vhosts import vhost_findings
from mesh_config.connector_matching import is_loopback, is_same_host, is_same_target, is_wildcard
from mesh_config.defaults_merging import address_key
from mesh_config.findings import Finding, Severity, Step, has_errors
from mesh_config.models import AddressSettings, ConnectorSettings, ListenerSettings, Role, RouterSettings
from mesh_config.multi_pattern_matcher import ANY_WORD, ANY_WORDS, split_words
from mesh_config.value_rules import fault_of, fields_of, kind_of
from mesh_config.yaml_text import Place

ATTACH_BYTES = 512
"""Bytes of a circuit's Attach without its address; 163 were seen."""
MOST_PATTERN_WORDS = 10_000
"""Words of all patterns of a router. An address of 1 kB has 500 words at most, which take some 2 ms then."""
TOPOLOGICAL: Final = {
    "_local": "is of one router, whatever the treatment of its address",
    "_topo": "is of the routers that it names, whatever the treatment of its address",
    "_edge": "is of one edge router, whatever the treatment of its address",
}
"""First words of addresses that say where they are, and why they have no treatment."""
DYNAMIC_TARGETS: Final = "_$temp"
"""First word of the addresses that routers make for dynamic targets, which are as any client's."""
FOREIGN_WILDCARDS: Final = {"**": ANY_WORDS, "+": ANY_WORD, ">": ANY_WORDS}
"""Words that stand for others in globs, MQTT and NATS, and what does so here."""
PREFIX_WORDS: Final = "whole words: the prefix is for every address that begins with them"
_SCHEME: Final = re.compile("/*amqps?:/(/[^/]*)?/*")
Locate = Callable[..., Place]
"""Key of a router and steps below it to the place where the setting stands."""


def router_findings(
    key: str, router: RouterSettings, locate: Locate, dialled: Sequence[ConnectorSettings]
) -> Iterator[Finding]:
    """Findings about one router alone.

    Args:
        key: key of the router in its mesh.
        router: complete settings of it.
        locate: called with the key and the steps to a setting.
        dialled: those of its connectors of which it is known where they lead.
    """

    def at(*steps: Step) -> Place:
        return locate(key, *steps)

    yield from _value_findings(router, (), at)
    yield from _timer_findings(router, at)
    yield from _address_findings(router.addresses, at)
    yield from _pattern_findings(router, at)
    yield from vhost_findings(router, at)
    yield from security_findings(router, at)
    for index, listener in enumerate(router.listeners):
        yield from _listener_findings(listener, at("listeners", index), router.id)
    yield from _allowed_prefix_findings(router, at)
    yield from _http_findings(router, at)
    yield from _repeated_names("listeners", router.listeners, at)
    yield from _repeated_names("connectors", router.connectors, at)
    yield from _wildcard_findings(router, at)
    yield from _repeated_connectors(router.connectors, dialled, at)
    for index, connector in enumerate(router.connectors):
        if connector.role is not Role.INTER_ROUTER:
            yield at("connectors", index, "role").finding(
                f"a connector with the role `{connector.role}` would carry nothing: router `{router.id}` attaches "
                "links only to routers",
                expected=f"`{Role.INTER_ROUTER}`; clients connect to a listener with the role `{Role.NORMAL}`",
                nearest=Role.INTER_ROUTER.value,
            )


def _repeated_names(
    key: str, sockets: Sequence[ListenerSettings] | Sequence[ConnectorSettings], at: Callable[..., Place]
) -> Iterator[Finding]:
    names = [each.name for each in sockets]
    for index, name in enumerate(names):
        if name is not None and (first := names.index(name)) != index:
            yield at(key, index, "name").finding(
                f"{key}[{first}] is called `{name}` already", expected="a name of its own, or none"
            )


def _wildcard_findings(router: RouterSettings, at: Callable[..., Place]) -> Iterator[Finding]:
    """Hosts that stand for every address where one is to be connected to."""
    hosts = [(("connectors", index, "host"), each.host) for index, each in enumerate(router.connectors)]
    for steps, host in [(("host",), router.host), *hosts]:
        if host is not None and is_wildcard(host):
            yield at(*steps).finding(
                f"`{host}` stands for every address of a machine: it can be listened at, and not connected to",
                expected="the host at which the other routers reach this one"
                if steps == ("host",)
                else "the host of the other router, 127.0.0.1 for one of this machine",
                severity=Severity.WARNING,
            )


def _repeated_connectors(
    connectors: Sequence[ConnectorSettings], dialled: Sequence[ConnectorSettings], at: Callable[..., Place]
) -> Iterator[Finding]:
    """Connectors that dial what one before them dials, whatever their names are."""
    known = [(index, each) for index, each in enumerate(connectors) if any(each is other for other in dialled)]
    for place, (index, connector) in enumerate(known):
        first = next(other for other, each in known if is_same_target(each, connector))
        if first != index and connector.role is Role.INTER_ROUTER:
            line = at("connectors", first).line
            where = f" (line {line})" if line is not None else ""
            name = connector.effective_name
            is_alike = any(
                each.effective_name == name and None in (each.name, connector.name) for _, each in known[:place]
            )
            yield at("connectors", index).finding(
                f"a second connector to {connector.host}:{connector.port}, as connectors[{first}]{where}: one of"
                " their connections is active, the others stand by"
                + (f"; both are called {name} in the log, in management and in metrics" if is_alike else ""),
                expected="one connector for each neighbor" + (", or a `name` of its own" if is_alike else ""),
                severity=Severity.WARNING,
            )


def _http_findings(router: RouterSettings, at: Callable[..., Place]) -> Iterator[Finding]:
    http = router.http
    taken = [
        listener
        for listener in router.listeners
        if http.port
        and listener.port == http.port
        and (is_wildcard(http.host) or is_wildcard(listener.host) or is_same_host(http.host, listener.host))
    ]
    if taken:
        yield at("http", "port").finding(
            f"{http.host}:{http.port} (HTTP) collides with the listener {taken[0].host}:{taken[0].port}",
            expected="another port",
        )
    yield from http_security_findings(router, functools.partial(at, "http"))
    if http.port is not None and not is_loopback(http.host) and http.users_file is None:
        yield at("http", "host").finding(
            f"{router.http.host}:{router.http.port} (HTTP) of router `{router.id}` is open to other machines: whoever"
            " reaches it sees its metrics",
            expected="loopback, or an address of a trusted network",
            severity=Severity.WARNING,
        )
    yield from _frame_findings(router, at)


def _value_findings(
    settings: attrs.AttrsInstance, steps: tuple[Step, ...], at: Callable[..., Place]
) -> Iterator[Finding]:
    """Ranges and patterns of every value. The loader has looked at them; settings made by a program come here first."""
    for field in fields_of(type(settings)):
        value = getattr(settings, field.name)
        here = (*steps, field.name)
        if kind_of(field.type).is_list:
            for index, item in enumerate(value):
                if attrs.has(type(item)):
                    yield from _value_findings(item, (*here, index), at)
        elif attrs.has(type(value)):
            yield from _value_findings(value, here, at)
        else:
            fault = fault_of(field, value)
            if fault is not None:
                yield at(*here).finding(fault.message, expected=fault.expected, nearest=fault.nearest)


def _frame_findings(router: RouterSettings, at: Callable[..., Place]) -> Iterator[Finding]:
    """Frames between routers that would not take what names the longest address: the neighbor's link would end."""
    least = router.forwarding.address_bytes + ATTACH_BYTES
    for kind, connections in (("listeners", router.listeners), ("connectors", router.connectors)):
        for index, connection in enumerate(connections):
            if connection.role is Role.INTER_ROUTER and connection.max_frame_bytes < least:
                yield at(kind, index, "max_frame_bytes").finding(
                    f"{connection.max_frame_bytes} is less than a circuit of an address of `address_bytes` takes",
                    expected=f"{least} or more",
                    nearest=str(least),
                )


def _timer_findings(router: RouterSettings, at: Callable[..., Place]) -> Iterator[Finding]:
    times = router.link_state
    if times.hello_max_age_s <= times.hello_interval_s:
        yield at("link_state", "hello_max_age_s").finding(
            f"router `{router.id}`: a neighbor is lost after {times.hello_max_age_s} s, but says HELLO every"
            f" {times.hello_interval_s} s only",
            expected="more than hello_interval_s; three times as much is usual",
            nearest=f"{3 * times.hello_interval_s:g}",
        )
    if times.remote_ls_max_age_s <= times.ra_interval_s:
        yield at("link_state", "remote_ls_max_age_s").finding(
            f"router `{router.id}`: link state is forgotten after {times.remote_ls_max_age_s} s, but refreshed every"
            f" {times.ra_interval_s} s only",
            expected="more than ra_interval_s; twice as much is usual",
            nearest=f"{2 * times.ra_interval_s:g}",
        )
    for index, connector in enumerate(router.connectors):
        if connector.reconnect_max_s < connector.reconnect_initial_s:
            yield at("connectors", index, "reconnect_max_s").finding(
                f"the longest pause, {connector.reconnect_max_s} s, is below the first,"
                f" {connector.reconnect_initial_s} s",
                expected="not below reconnect_initial_s",
                nearest=f"{connector.reconnect_initial_s:g}",
            )


def _address_findings(addresses: tuple[AddressSettings, ...], at: Callable[..., Place]) -> Iterator[Finding]:
    first: dict[tuple[str, ...], int] = {}
    for index, address in enumerate(addresses):
        place = at("addresses", index)
        if (address.prefix is None) == (address.pattern is None):
            both = "both `prefix` and `pattern`" if address.prefix is not None else "neither `prefix` nor `pattern`"
            yield place.finding(both, expected="one of them")
            continue
        text = address.prefix if address.prefix is not None else address.pattern or ""
        kind = "prefix" if address.prefix is not None else "pattern"
        found = list(_text_findings(text, at("addresses", index, kind), kind))
        yield from found
        if has_errors(found):
            continue
        key = address_key(address.prefix, address.pattern)
        if key in first:
            line = at("addresses", first[key]).line
            where = f", first in line {line}" if line is not None else ""
            yield place.finding(
                f"{key[0]} `{address.prefix or address.pattern}` is given twice{where}",
                expected="each prefix and pattern once (`.` and `/` are the same)",
            )
        first.setdefault(key, index)


def _text_findings(text: str, place: Place, kind: str) -> Iterator[Finding]:
    """Findings about the text of a prefix or pattern of a treatment.

    Args:
        text: as it is written.
        place: where it stands.
        kind: `prefix` or `pattern`.
    """
    if not text.strip("/."):
        yield place.finding(f"the {kind} `{text}` has no word", expected="words")
    elif kind == "prefix" and {ANY_WORD, ANY_WORDS} & set(split_words(text)):
        message = f"`{ANY_WORD}` and `{ANY_WORDS}` are words of a pattern, not of the prefix `{text}`"
        yield place.finding(message, expected="`pattern` in place of `prefix`")
    else:
        yield from _scheme_findings(text, place, kind)
        yield from _reserved_findings(text, place, kind)
        yield from _wildcard_words(text, place, kind, beside_pattern=True)


def _wildcard_words(text: str, place: Place, kind: str, *, beside_pattern: bool) -> Iterator[Finding]:
    """Words with `*` or `#` in them, or that are wildcards elsewhere: here, as for Qpid Dispatch, plain characters."""
    is_pattern = kind == "pattern"
    expected = PREFIX_WORDS
    if beside_pattern:
        expected = f"`{ANY_WORD}` for one word or `{ANY_WORDS}` for any number of them, as a whole word"
        expected += "" if is_pattern else " of a `pattern`"
    for word in split_words(text.strip("/.")):
        wildcard = FOREIGN_WILDCARDS.get(word)
        is_one_here = beside_pattern and word in (ANY_WORD, ANY_WORDS)
        if wildcard is None and (is_one_here or not {ANY_WORD, ANY_WORDS} & set(word)):
            continue
        yield place.finding(
            f"`{word}` in the {kind} `{text}` matches only that word, character by character",
            expected=expected,
            nearest=_with_word(text, word, wildcard) if wildcard is not None and is_pattern else None,
            severity=Severity.WARNING,
        )
        return


def _with_word(text: str, old: str, new: str) -> str:
    """*text* with another word in place of *old*."""
    return "".join(new if part == old else part for part in re.split("([/.])", text))


def _scheme_findings(text: str, place: Place, kind: str, *, severity: Severity = Severity.ERROR) -> Iterator[Finding]:
    """Prefixes and patterns that begin with the scheme of a URL, which is taken off each address."""
    scheme = _SCHEME.match(text)
    if scheme is not None:
        yield place.finding(
            f"no address begins with `{scheme[0]}` once it is read, so the {kind} `{text}` fits none",
            expected="the address without scheme and host",
            nearest=text[scheme.end() :] or None,
            severity=severity,
        )


def _reserved_word(text: str) -> str | None:
    """First word of a prefix or pattern of addresses that are no client's; None if it is of others.

    Source: core.addressing.address.
    """
    head = split_words(text.strip("/."))[0]
    return head if head.startswith(("$", "_")) and head != DYNAMIC_TARGETS else None


def _reserved_findings(text: str, place: Place, kind: str) -> Iterator[Finding]:
    """Prefixes and patterns of what no client receives from by a treatment."""
    head = _reserved_word(text)
    if head is not None:
        whose = TOPOLOGICAL.get(head, "belongs to the routers themselves, and nobody may receive from it")
        yield place.finding(
            f"the {kind} `{text}` has no effect: what begins with `{head}` {whose}",
            expected="an address of clients, which begins with neither `$` nor `_`",
        )


def _pattern_findings(router: RouterSettings, at: Callable[..., Place]) -> Iterator[Finding]:
    """Patterns that fit no address, and more of them than an address is compared with in time."""
    most_bytes = router.forwarding.address_bytes
    for index, address in enumerate(router.addresses):
        for key, text in (("prefix", address.prefix), ("pattern", address.pattern)):
            size = 0 if text is None else len(text.encode(errors="replace"))
            if size > most_bytes:
                yield at("addresses", index, key).finding(
                    f"a {key} of {size} bytes fits no address",
                    expected=f"{most_bytes} bytes at most (`forwarding.address_bytes`)",
                )
    words = count_pattern_words(router.addresses)
    if words > MOST_PATTERN_WORDS:
        yield at("addresses").finding(
            f"the patterns of router `{router.id}` have {words} words",
            expected=f"{MOST_PATTERN_WORDS} at most, of all together; prefixes don't count",
        )


def count_pattern_words(addresses: Iterable[AddressSettings]) -> int:
    """Words of all patterns among *addresses*; an address of a client is compared with each."""
    return sum(len(address_key(None, each.pattern)) - 1 for each in addresses if each.pattern is not None)


def _allowed_prefix_findings(router: RouterSettings, at: Callable[..., Place]) -> Iterator[Finding]:
    """Prefixes that fit no address, and those that bound nobody.

    Warnings: a neighbor may use less than is meant, but what the others of the list allow it does as it should.
    """
    for kind, connections in (("listeners", router.listeners), ("connectors", router.connectors)):
        for index, connection in enumerate(connections):
            for number, prefix in enumerate(connection.allowed_prefixes):
                yield from _allowed_text_findings(prefix, at(kind, index, "allowed_prefixes", number))
            if kind == "listeners" and connection.role is Role.NORMAL and connection.allowed_prefixes:
                yield at(kind, index, "allowed_prefixes").finding(
                    f"prefixes are for neighbors, and this listener of router `{router.id}` is for clients, whom they"
                    " bound in nothing",
                    expected="`sources` and `targets` of a group in `vhosts`",
                    severity=Severity.WARNING,
                )


def _allowed_text_findings(text: str, place: Place) -> Iterator[Finding]:
    """Findings about the text of one allowed prefix."""
    if not text.strip("/."):
        yield place.finding(
            f"the prefix `{text}` fits no address: by it a neighbor may use none",
            expected="the first words of the addresses that it may use",
            severity=Severity.WARNING,
        )
    elif _reserved_word(text) is not None:
        yield place.finding(
            f"the prefix `{text}` has no effect: addresses that begin with `{_reserved_word(text)}` are never open to a"
            " neighbor with `allowed_prefixes`",
            expected="a prefix that begins with neither `$` nor `_`",
            severity=Severity.WARNING,
        )
    else:
        yield from _scheme_findings(text, place, "prefix", severity=Severity.WARNING)
        yield from _wildcard_words(text, place, "prefix", beside_pattern=False)


def _listener_findings(listener: ListenerSettings, place: Place, router_id: str) -> Iterator[Finding]:
    if listener.role is Role.INTER_ROUTER and listener.max_message_bytes:
        yield place.finding(
            f"a limit of messages is for clients, and this listener of router `{router_id}` is for routers",
            expected="0: routers take whatever other routers have taken",
            at=("max_message_bytes",),
        )
