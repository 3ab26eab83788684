"""Hosts: what can be bound or connected to, and the words for what can't."""

from __future__ import annotations

import contextlib
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_config.loader import parse_document
from mesh_config.usable_hosts import encoded, failure_words, host_fault

HOSTS = [
    "localhost", "localhost.", "a.example", "A_b.example", "127.0.0.1", "1.example", "1a", "a.1b", "::1",
    "fe80::1%eth0.5",
    "::ffff:1.2.3.4", "0.0.0.0", "::", "xn--mnchen-3ya.de", "münchen.de", "ß.example", "例え。テスト", "x" * 63,
    ".".join(["a" * 63] * 3 + ["a" * 61]),
]  # fmt: skip
NO_HOSTS = {
    "a..b": "a dot with nothing before it", ".": "a dot with nothing before it", ".a": "a dot with nothing before it",
    "": "a dot with nothing before it", "é..é": "a dot with nothing before it", "a\u3002\u3002b": "a dot with nothing",
    "x" * 64 + ".com": "a part of more than 63 characters", "é" * 60: "can't be written as a host name",
    "a." * 200: "more than 253 characters", "é" * 100_000: "more than 253 characters",
    ".".join(["a" * 63] * 3 + ["a" * 62]): "more than 253 characters", "a\0b": "characters that it may not have",
    "a b": "characters that it may not have", "a/b": "characters that it may not have", "[::1]": "in brackets",
    "http:x": "no address of IPv6", "::1%" + "x" * 64: "a part of more than 63 characters", "::1%é": "can't be written",
    "::1%a..b": "a dot with nothing before it", "\ud800": "can't be written", "\u200b": "can't be written",
    "xn--\u00fc": "can't be written", "*": "has `*`, which no host has: 0.0.0.0 and ::", "*.a": "has `*`",
} | dict.fromkeys(
    ("256.1.1.1", "1.2.3", "127.1", "0x7f.1", "0x", "5672", "010.0.0.1", "1.2.3.4.", "1.2.3.4.5", "a.1"),
    "ends in a number, as addresses of IPv4 do, and is none: those are four numbers up to 255",
)  # fmt: skip


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_is_taken(host: str) -> None:
    assert host_fault(host) is None
    assert encoded(host).isascii()


@pytest.mark.parametrize("host", NO_HOSTS, ids=lambda host: ascii(host[:20]))
def test_what_is_no_host_is_told_why(host: str) -> None:
    assert NO_HOSTS[host] in str(host_fault(host))


@given(st.text(st.sampled_from("aé.x-:%[]\0\u3002\u200bß1_*\ud800 "), max_size=300) | st.text(max_size=20))
def test_the_system_can_be_asked_for_what_is_taken(host: str) -> None:
    if host_fault(host) is None:
        with contextlib.suppress(OSError):  # its refusal is no fault of who asks
            socket.getaddrinfo(encoded(host), 1, flags=socket.AI_NUMERICHOST)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("router: {id: A, host: a..b}", "router.host"),
        ("router: {id: A, http: {host: a..b}}", "router.http.host"),
        ("router: {id: A, listeners: [{host: a..b}]}", "router.listeners[0].host"),
        ("router: {id: A, connectors: [{host: a..b}]}", "router.connectors[0].host"),
        ("router: {id: A, connectors: [{tls_host: a..b}]}", "router.connectors[0].tls_host"),
        ("defaults: {connector: {host: a..b}}\nrouters: {A: {}}", "defaults.connector.host"),
    ],
)
def test_a_file_is_told_where_no_host_stands(text: str, key: str) -> None:
    (finding,) = parse_document(text, "mesh.yaml").findings
    assert finding.key == key
    assert 'the text "a..b" has a dot with nothing before it; expected a host name or an address' in str(finding)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "the host no.example is not known"),
        (socket.gaierror(socket.EAI_NODATA, "No address associated"), "the host no.example is not known"),
        (
            socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
            "the host no.example can't be looked up: no name server answers",
        ),
        (socket.gaierror(socket.EAI_MEMORY, "Out of it"), "the host no.example can't be looked up: Out of it"),
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
        (OSError("all were tried"), "all were tried"),
    ],
)
def test_failures_are_told_without_numbers_and_name_the_host_that_is_unknown(error: OSError, words: str) -> None:
    assert failure_words(error, "no.example") == words
