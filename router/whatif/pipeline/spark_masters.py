"""Addresses of Spark, checked before Java is started, which says of a wrong one only that it has ended."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import attrs

from mesh_config.findings import Finding, Severity, nearest
from mesh_config.usable_hosts import failure_words

_MASTERS: Final = re.compile(
    r"local"
    r"|local\[([1-9]\d*|\*)(,\s*[1-9]\d*)?\]"
    r"|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
    r"|spark://[^\s:,/]+:\d{1,9}(,[^\s:,/]+:\d{1,9})*"
    r"|spark://\[[0-9A-Fa-f:.]+\]:\d{1,9}"
    r"|yarn"
    r"|k8s://\S+"
)
EXPECTED: Final = "local[N], spark://HOST:PORT, yarn or k8s://URL"
_WORDS: Final = ("local", "yarn", "local[2]", "local[*]")
_STANDALONE: Final = "spark://"
EXPECTED_REMOTE: Final = "sc://HOST, or sc://HOST:PORT"
MAX_PORT: Final = 65535
REACHED_S: Final = 10.0
"""Within which somebody has to answer at an address."""


@attrs.frozen(kw_only=True)
class SparkAddress:
    """Address of Spark."""

    master: str | None = None
    """Spark master, such as `local[2]` or `spark://host:7077`; None: as spark-submit says, else this machine."""
    remote: str | None = None
    """A server of Spark Connect: `sc://host:15002`."""
    settings: Mapping[str, str] = attrs.field(factory=dict)
    """Further settings of Spark."""
    workers: int | None = None
    """Tasks at the same time on this machine; None: as many as there are processors."""


def fault_of_master(text: str, key: str = "master") -> Finding | None:
    """Say why a text is no master of Spark, and which one it is nearly; None when it is one.

    Args:
        text: that was given.
        key: field, option or variable by which it was given.
    """
    if _MASTERS.fullmatch(text):
        ports = re.findall(r":(\d+)(?=,|$)", text) if text.startswith(_STANDALONE) else []
        if all(0 < int(port) <= MAX_PORT for port in ports):
            return None
        return _fault(key, f"`{text}` has a port that can't be", f"spark://HOST:PORT, PORT from 1 to {MAX_PORT}")
    if re.fullmatch(r"spark://[^\s:,/]+/?", text):
        return _fault(key, f"`{text}` has no port", EXPECTED, f"{text.rstrip('/')}:7077")
    return _fault(key, f"`{text}` is no master of Spark", EXPECTED, nearest(text, _WORDS))


def fault_of_addresses(master: str | None, remote: str | None, *, is_local: bool, prefix: str = "") -> Finding | None:
    """Say what is wrong with the addresses of Spark that were given for a run; None when nothing is.

    Args:
        master: Spark's master.
        remote: a server of Spark Connect.
        is_local: whether the local engine is asked for, which needs neither.
        prefix: of fields, where they are given as options: `--`.
    """
    if master and remote:
        return _fault(f"{prefix}master", f"{prefix}remote is given too", "only one of them")
    if is_local and (master or remote):
        key = f"{prefix}{'master' if master else 'remote'}"
        return _fault(key, f"{prefix}engine local, which works without Spark, is given too", "only one of them")
    if remote:
        return fault_of_remote(remote, f"{prefix}remote")
    return None if master is None else fault_of_master(master, f"{prefix}master")


def fault_of_remote(text: str, key: str = "remote") -> Finding | None:
    """Say why a text is no address of Spark Connect; None when it is one.

    Args:
        text: that was given.
        key: field, option or variable by which it was given.
    """
    try:
        place = urlsplit(text)
        is_address = place.scheme == "sc" and bool(place.hostname) and place.port != 0
    except ValueError:  # a port that is no number, or too large; half of a bracket
        is_address = False
    return None if is_address else _fault(key, f"`{text}` is no address of Spark Connect", EXPECTED_REMOTE)


def _fault(key: str, message: str, expected: str, near: str | None = None) -> Finding:
    return Finding(severity=Severity.ERROR, key=key, message=message, expected=expected, nearest=near)


def reach_master(master: str) -> None:
    """Look whether any of the masters of a standalone Spark answers: Spark itself goes on trying for a minute.

    Args:
        master: as it was given: of `local[2]`, YARN and Kubernetes nobody is asked.
    Raises: OSError that names it.
    """
    if not master.startswith(_STANDALONE):
        return
    said = ""
    for place in master.removeprefix(_STANDALONE).split(","):
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), REACHED_S).close()
        except OSError as error:
            said = said or failure_words(error, host)
        else:
            return
    raise OSError(f"no master answers at {master}: {said}")
