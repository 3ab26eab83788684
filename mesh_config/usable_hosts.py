"""Names and addresses of hosts: which can be bound and connected to, and how they are written for the system.

A resolver takes bytes, and what can't be written as such is no refusal of the system but a fault of the caller. So
whoever reads a host looks here first, and whoever uses one writes it by `encoded`.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import Final

import idna

MOST_LABEL_BYTES: Final = 63
MOST_NAME_BYTES: Final = 253
"""Maximum length of a host name as written: length bytes and the root label make it 255. Source: RFC 1035, 2.3.4."""
EXPECTED: Final = "a host name or an address"

_UNWRITABLE: Final = re.compile(r"[\s/\x00-\x1f\x7f-\x9f]")
_NUMBER: Final = re.compile("[0-9]+|0[xX][0-9a-fA-F]*")
_DOT: Final = re.compile("[.\u3002\uff0e\uff61]")
"""The characters that part a name. Source: RFC 3490, 3.1."""

_UNKNOWN_NAME: Final = (socket.EAI_NONAME, socket.EAI_NODATA, socket.EAI_ADDRFAMILY)
"""Numbers of the errors when no host has a name, or it has no address, or none of the family that is asked for."""


def host_fault(host: str) -> str | None:
    """Why nothing can be bound or connected to by that name, in words that go on from it; None when it can be tried.

    Args:
        host: a name, also with letters beyond ASCII, or an address; one of IPv6 without brackets.
    """
    if _UNWRITABLE.search(host):
        return "has characters that it may not have"
    if "*" in host:
        return "has `*`, which no host has: 0.0.0.0 and :: stand for every address of this machine"
    if host.startswith("[") or host.endswith("]"):
        return "is in brackets: give only the address"
    if ":" in host and not _is_address(host, ipaddress.IPv6Address):
        return "is no address of IPv6, and no name has a colon"
    if len(host) > MOST_NAME_BYTES + 1:
        return f"has more than {MOST_NAME_BYTES} characters"
    parts = _DOT.split(host)
    if "" in (parts[:-1] if len(parts) > 1 else parts):
        return "has a dot with nothing before it"
    if (
        ":" not in host
        and _NUMBER.fullmatch(_DOT.split(host.removesuffix("."))[-1])
        and not _is_address(host, ipaddress.IPv4Address)
    ):
        # A resolver would take some for numbers of other sizes, `127.1` for 127.0.0.1, and ask name servers for others.
        return "ends in a number, as addresses of IPv4 do, and is none: those are four numbers up to 255"
    try:
        name = encoded(host).removesuffix(".")
    except UnicodeError as error:
        return f"can't be written as a host name ({error})"
    if any(len(label) > MOST_LABEL_BYTES for label in name.split(".")):
        return f"has a part of more than {MOST_LABEL_BYTES} characters"
    return f"has more than {MOST_NAME_BYTES} characters" if len(name) > MOST_NAME_BYTES else None


def encoded(host: str) -> str:
    """*host* in ASCII, as the resolver takes it.

    Args:
        host: one with which `host_fault` finds nothing.
    Raises: UnicodeError for another one.
    Source: RFC 5891; mapped by UTS 46, so that capital letters don't matter.
    """
    return host if host.isascii() else idna.encode(host, uts46=True).decode()


def _is_address(host: str, kind: type[ipaddress.IPv4Address | ipaddress.IPv6Address]) -> bool:
    try:
        kind(host)
    except ValueError:
        return False
    return True


def failure_words(error: OSError, host: str) -> str:
    """Words of the system why nothing was bound or connected to, without its numbers; of a name, which it was.

    Args:
        error: of looking a host up, of binding or of connecting.
        host: where that was tried.
    """
    if not isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    if error.errno in _UNKNOWN_NAME:
        return f"the host {host} is not known"
    if error.errno == socket.EAI_AGAIN:
        return f"the host {host} can't be looked up: no name server answers"
    return f"the host {host} can't be looked up: {error.strerror}"
