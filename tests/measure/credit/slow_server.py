"""Figure 7: a slow oslo.messaging server with `rpc_server_credit=5`, and callers that time out.

The server at R1 has one thread; it and a process with many callers, one to three hops away, are real oslo.messaging,
each behind a relay that keeps account of what is granted and sent on every link (`relay.Ledger`).

- Slow: 60 calls at once, each of which takes the server 50 ms.
- Stuck: a call hangs; 60 more wait, in the server's process as far as it granted, at the caller's router one at most,
  the others in their own process. What left that process may exceed what the server granted by one, since it has one
  link.
- Expired: all 60 time out, then the server goes on. Whatever is sent to it from then on, but for one new call, was
  sent for a caller that had given up. It goes on only after another time-out: when the message that waits at the router
  expires, the callers' process sends its next one with the whole ttl, though that caller has almost none of it left.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import attrs

from tests.helpers.oslo import OsloWorker, hosts_url, outcomes
from tests.helpers.processes import LOOPBACK, wait_until
from tests.measure.credit.relay import FrameRelay, Ledger, LinkEntry
from tests.measure.credit.stand import HOPS, Line, Row, Stand, hops_text

TITLE = "a slow oslo.messaging server with a credit of 5"
CREDIT = 5
CALLS = 60
SERVICE_S = 0.05
TIMEOUT_S = 3
"""Of the callers that time out; the driver rounds up to whole seconds."""
QUIET_S = 1.0
TOPIC = "slow"
LINK = f"rpc/anycast/openstack/{TOPIC}"
"""Part of the address of its requests."""


def measure(stand: Stand) -> Iterator[Row]:
    """Three rows for each number of hops."""
    if importlib.util.find_spec("oslo_messaging") is None:
        yield Row(7, "a server with a credit of 5", "not measured: needs the extra `demo`", "measured", is_met=False)
        return
    with stand.line() as line:
        for hops in HOPS:
            with ExitStack() as stack:
                yield from _Setting.make(stack, line, hops, stand.folder / f"oslo-{hops}").rows(hops)


@attrs.define
class _Setting:
    """One server, one process of callers, and an account of what passed between each and its router."""

    servers: OsloWorker
    callers: OsloWorker
    at_server: Ledger
    at_callers: Ledger

    @classmethod
    def make(cls, stack: ExitStack, line: Line, hops: int, folder: Path) -> _Setting:
        folder.mkdir()
        made = []
        for name, at in (("server", 0), ("callers", hops)):
            ledger = Ledger()
            relay = stack.enter_context(FrameRelay(line.port(at), ledger.hear))
            worker = stack.enter_context(OsloWorker(folder / f"{name}.log"))
            url = hosts_url(f"{LOOPBACK}:{relay.port}", rpc_server_credit=CREDIT, container_name=name)
            worker.do("open", transport="t", url=url)
            made.append((worker, ledger))
        (servers, at_server), (callers, at_callers) = made
        servers.do("serve", transport="t", topic=TOPIC, server="s", workers=1)
        callers.do("call", transport="t", topic=TOPIC, method="echo", args={"key": "first"})
        return cls(servers, callers, at_server, at_callers)

    def rows(self, hops: int) -> Iterator[Row]:
        """What happens while the server is slow, stuck, and after its callers have given up."""
        self._be_slow()
        yield self._sent_and_granted(hops)
        self.servers.do("gate", name="s", is_open=False)
        waiting = self.callers.begin("burst", transport="t", topic=TOPIC, count=CALLS, prefix="late", timeout=TIMEOUT_S)
        _wait_unchanged(lambda: self.at_callers.to(LINK).sent, TIMEOUT_S)
        yield self._left_the_callers(hops)
        records = waiting.result(TIMEOUT_S + 30)
        time.sleep(TIMEOUT_S)  # a time is what has to pass: the ttl of the last message that left the callers
        yield self._served_in_vain(hops, outcomes(records))

    def _be_slow(self) -> None:
        orders = [
            self.callers.begin(
                "call", transport="t", topic=TOPIC, method="slow", args={"key": key, "seconds": SERVICE_S}, timeout=60
            )
            for key in range(CALLS)
        ]
        for order in orders:
            order.result(60)

    def _to_server(self) -> LinkEntry:
        return self.at_server.to(LINK)

    def _sent_and_granted(self, hops: int) -> Row:
        link = self._to_server()
        measured = (
            f"{link.sent} sent of {link.granted} granted, {link.overruns} without credit; "
            f"at most {link.most_unspent} unspent"
        )
        is_met = not link.overruns and link.sent <= link.granted and link.most_unspent <= CREDIT
        wanted = f"all on credit, at most {CREDIT} unspent"
        return Row(7, f"slow: requests to the server, {hops_text(hops)}", measured, wanted, is_met)

    def _left_the_callers(self, hops: int) -> Row:
        granted, left = self._to_server().granted, self.at_callers.to(LINK)
        beyond = left.sent - left.empty - granted
        measured = f"{left.sent - left.empty} left the callers, {granted} were granted"
        return Row(7, f"stuck: requests beyond the grant, {hops_text(hops)}", measured, "at most 1 beyond", beyond <= 1)

    def _served_in_vain(self, hops: int, ended: dict[str, int]) -> Row:
        before = self._to_server().sent
        self.servers.do("gate", name="s", is_open=True)
        self.callers.do("call", transport="t", topic=TOPIC, method="echo", args={"key": "new"}, timeout=30)
        self.servers.wait_keys("s", "echo", {"new"})
        _wait_unchanged(lambda: self._to_server().sent, 30)
        in_vain = self._to_server().sent - before - 1
        # Those that it had taken on its credit before they timed out it does serve: no router can take them back.
        measured = f"{in_vain} sent after their caller had timed out; callers: {_counts(ended)}"
        return Row(7, f"expired: requests sent in vain, {hops_text(hops)}", measured, "none", in_vain == 0)


def _wait_unchanged(count: Callable[[], int], timeout_s: float) -> None:
    """Wait until *count* has stayed the same for a while."""
    last, since = -1, 0.0

    def is_unchanged() -> bool:
        nonlocal last, since
        now = count()
        if now != last:
            last, since = now, time.monotonic()
        return time.monotonic() - since > QUIET_S

    wait_until(is_unchanged, "no more messages on a link", timeout_s)


def _counts(ended: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in ended.items())
