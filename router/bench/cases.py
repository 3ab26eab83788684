"""Cases that can be measured, each a workload with a name; and the paths that one is run over."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Final

import attrs

from mesh_config.usable_hosts import EXPECTED, encoded, host_fault
from router.bench.errors import BenchError

CREDIT: Final = 250
"""Credit that receivers grant and renew, messages."""
ATTACH_S: Final = 60.0
"""Time for all ends of a run to attach, seconds: long, since a busy machine is no reason to give up."""
MAX_HOPS: Final = 16
MEMORY: Final = "memory"
"""Name of the case that measures memory for each connection, link and address."""
SPILL: Final = "spill"
"""Name of the case of calls to slow servers, over a ring."""
OSLO: Final = "oslo"
"""Name of the case of calls by oslo.messaging's clients, which is not always installed: it is run only when it is
named."""
IDLE: Final = "idle"
"""Name of the case of a mesh that stands still."""
START: Final = "start"
"""Name of the case of first answers of programs that start."""
OTHERS: Final = {
    OSLO: "calls of 1 KiB by oslo.messaging, 20 callers, 750 a second; wants the extra `demo`",
    SPILL: "calls to four slow servers at the routers of a ring",
    MEMORY: "memory of a router for each connection, link and address",
    IDLE: "processor time and memory of a router of a mesh of 60 that stands still",
    START: "processor time of `--version`, `stat` and `run` until they have answered, or listen",
}
"""Cases that are not measured in runs from senders to receivers, and what they are."""


@attrs.frozen(kw_only=True)
class Workload:
    """A workload: a stream from senders to receivers, or calls."""

    name: str
    group: str
    """Word that chooses the case together with others."""
    size: int
    """Size of a body, bytes."""
    senders: int = 1
    """Number of connections that send, or that call; each has one message or call after the other on its way."""
    receivers: int = 1
    """Number of connections that receive; one responder for calls."""
    is_presettled: bool = False
    is_rpc: bool = False
    rate: int = 0
    """Number of messages, or calls, a second of all senders together, one at a time; 0: as many as credit allows."""
    is_paired: bool = False
    """Whether each sender has an address of its own with one receiver."""
    is_multicast: bool = False
    """Whether each receiver gets a copy of each message; what is counted are copies."""


CASES: Final = (
    Workload(name="stream-100B", group="stream", size=100),
    Workload(name="stream-1KB", group="stream", size=1000),
    Workload(name="stream-10KB", group="stream", size=10_000),
    Workload(name="stream-1MB", group="stream", size=1_000_000),
    Workload(name="presettled-100B", group="stream", size=100, is_presettled=True),
    Workload(name="fan-in", group="fan", size=100, senders=8),
    Workload(name="fan-out", group="fan", size=100, receivers=8),
    Workload(name="pairs", group="fan", size=100, senders=4, receivers=4, is_paired=True),
    Workload(name="fan-out-200", group="fan", size=100, receivers=200),
    Workload(name="copies-200", group="fan", size=100, receivers=200, is_multicast=True),
    Workload(name="pairs-8", group="fan", size=100, senders=8, receivers=8, is_paired=True),
    Workload(name="rpc-1", group="rpc", size=200, is_rpc=True),
    Workload(name="rpc-50", group="rpc", size=200, senders=50, is_rpc=True),
    Workload(name="paced-100", group="paced", size=100, rate=100),
    Workload(name="paced-1000", group="paced", size=100, rate=1000),
    Workload(name="paced-10000", group="paced", size=100, rate=10_000),
    Workload(name="paced-rpc", group="paced", size=1024, senders=20, is_rpc=True, rate=750),
)
STREAM: Final = CASES[0]
"""Case whose direct run is the yardstick of everything, calls included."""


def choose(words: Sequence[str]) -> tuple[list[Workload], frozenset[str]]:
    """The cases with these names or of these groups, all but OSLO without any; and which of OTHERS are among them.

    Raises: BenchError naming the nearest right word.
    """
    others = frozenset(OTHERS)
    if not words:
        return list(CASES), others - {OSLO}
    known = sorted({*others, *(case.name for case in CASES), *(case.group for case in CASES)})
    for word in words:
        if word not in known:
            near = difflib.get_close_matches(word, known, 1, 0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise BenchError(f"no case is named {word!r}: {hint}")
    return [case for case in CASES if case.name in words or case.group in words], others.intersection(words)


@attrs.frozen(kw_only=True)
class Path:
    """Path between the two ends: none, or routers."""

    name: str
    hops: int
    """Number of routers in between; 0 for none: `direct`."""
    send_to: tuple[str, int] | None = None
    """Host and port for senders and callers; None: the receiving side listens itself."""
    receive_from: tuple[str, int] | None = None
    pids: tuple[int, ...] = ()
    """Processes of the routers in between whose use of the processor and memory can be read."""
    has_sasl: bool = False
    """Whether connections begin by SASL, as routers of others may ask for."""


DIRECT: Final = Path(name="direct", hops=0)


def hops_name(hops: int) -> str:
    """Name of the path over *hops* routers of our own."""
    return f"{hops} hop" if hops == 1 else f"{hops} hops"


def parse_pid(text: str) -> tuple[str | None, int]:
    """`[name=]pid` as the name of a router that is compared, None for all of them, and the id of its process.

    Raises: BenchError
    """
    name, _, pid = text.rpartition("=")
    if not pid.isdecimal() or not int(pid):
        raise BenchError(f"--compare-pid {text}: expected the id of a process, as 4711 or NAME=4711")
    return name or None, int(pid)


def parse_target(text: str) -> tuple[str, Sequence[str]]:
    """`[name=]url[,url...]` as a name and the URLs: of the sending side, the receiving side, and others for `spill`.

    Raises: BenchError
    """
    name, equals, urls = text.partition("=")
    if not equals:
        name, urls = text, text
    found = urls.removesuffix(",").split(",")
    for url in found:
        host_and_port(url)
    return name, found


def host_and_port(url: str) -> tuple[str, int]:
    """Split `amqp://host[:port]` into its host and its port; the scheme may be left out.

    Raises: BenchError
    """
    scheme, slashes, rest = url.rpartition("://")
    host, colon, port = rest.rstrip("/").rpartition(":")
    if not colon or "]" in port:
        host, port = rest.rstrip("/"), "5672"
    if (slashes and scheme != "amqp") or not host or "@" in host or not port.isdigit() or not 0 < int(port) < 65536:
        raise BenchError(f"{url!r} is no URL of a router: expected amqp://HOST:PORT")
    host = host.removeprefix("[").removesuffix("]")
    if fault := host_fault(host):
        raise BenchError(f"host of {url!r} {fault}: expected {EXPECTED}, as amqp://HOST:PORT")
    return encoded(host), int(port)


def describe(case: Workload) -> str:
    """One line for a list."""
    pace = f"; {case.rate:,} a second" if case.rate else ""
    if case.is_rpc:
        return f"{case.senders} caller{'s' * (case.senders > 1)}, {case.size} bytes, one call each at a time{pace}"
    ends = f"{case.senders} to {case.receivers}" + (", an address for each pair" if case.is_paired else "")
    ends += ", a copy for each" if case.is_multicast else ""
    return f"messages of {case.size:,} bytes, {'presettled' if case.is_presettled else 'unsettled'}, {ends}{pace}"
