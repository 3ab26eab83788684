"""Snapshots of a running router for `router.views.problems`.

`look` is called each second and before each snapshot. What it costs is bounded: of very many addresses it looks at some
each time, in rotation, and at those that were in trouble before.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

import attrs

from mesh_config.models import Role
from router.core.addressing.address import Address, AddressKind, is_private, masked
from router.core.forwarding.fib import AddressEntry
from router.core.ids_and_conditions import RouterId
from router.dataplane.links import Transfer
from router.management.client_display_name import client_name
from router.management.snapshot import LazyRows, ProblemRow
from router.net.connector import Connector
from router.net.listener import Listener
from router.net.open_file_shares import most_files
from router.runtime import Runtime
from router.security.certificate_expiry import CertificateExpiry, UnusableFile
from router.views.credit import (
    CircuitlessNeighborCredit,
    PartyRows,
    busy_behind,
    credit_row,
    grantors_of,
    may_be_blocked,
    oldest_wait_s,
)
from router.views.link_rates import LinkRates, TooFastPublisher
from router.views.mesh_rows import troubled_rows
from router.views.paged_lists import at_once
from router.views.problem_inputs import (
    AddressTrouble,
    DroppedMessages,
    FullListener,
    HangingSubscriber,
    HeldConnection,
    Problem,
    ProblemInputs,
    RouterRefusal,
    TooFastAnonymousPublisher,
    WrongRole,
)
from router.views.problems import problems
from router.views.socket_rows import connector_rows

RATES_S: Final = 0.4
"""Age of the last look at the rates of links from which on a snapshot looks again."""
MOST_LOOKED: Final = 10_000
"""Maximum number of addresses looked at in one look, beside those in trouble."""
AT_ONCE: Final = 250
"""Maximum number of addresses looked at between two events."""
MOST_TROUBLED: Final = 1000
"""Maximum number of addresses in trouble that are remembered."""
SHOWN: Final = 50
"""Maximum number of addresses in trouble that are shown, those longest in trouble first."""
MOST_UNDER_WAY: Final = 2000
"""Maximum number of messages that are looked at for where they came from, or go."""
GRANTORS: Final = 20
"""Maximum number of subscribers and circuits of one address that are looked at."""
PATIENCE_S: Final = 1.0
"""Time without credit up to which a publisher does not count as blocked, seconds."""
WAIT_S: Final = 5.0
"""Age up to which a message that waits is no trouble, seconds: bursts do."""
RECENT_S: Final = 60.0
"""Time for which drops, and peers at the wrong listener, are told of, and within which trouble that comes back is the
same, seconds."""


@attrs.define
class _Trouble:
    """An address in trouble, or that was lately."""

    still_since: float
    """Time of the first look since which no message has left it, seconds."""
    egress: int
    """Number of messages that had left the address at `still_since`."""
    since: float = math.inf
    """Time of the first look that found the address held up, with pauses of RECENT_S at most, seconds."""
    last: float = -math.inf
    """Time of the last look that found the address held up, seconds."""
    is_open: bool = True
    """Whether anybody took the address's messages at the last look."""
    closed_since: float = -math.inf
    """Time of the first look that found its last subscriber gone, with pauses of RECENT_S at most, seconds."""
    closed_last: float = -math.inf
    """Time of the last look that found no subscriber, seconds."""
    lost_with: Sequence[RouterId] = ()
    """Routers that the last subscribers of the address were lost with."""


class ProblemScanner:
    """Looks for trouble in one router."""

    def __init__(
        self,
        runtime: Runtime,
        listeners: Sequence[Listener],
        connectors: Sequence[Connector],
        rates: LinkRates | None = None,
    ) -> None:
        """*rates*: of its links, looked at elsewhere; None: nobody looks for who sends too much."""
        self._runtime = runtime
        self._rates = rates
        self._listeners = listeners
        self._connectors = connectors
        self._troubled: dict[AddressEntry, _Trouble] = {}
        self._dropped: dict[AddressEntry, tuple[int, float]] = {}
        """Number of messages dropped, and the time when there were last more of them, seconds, by address."""
        self._unaddressed = (0, -math.inf)
        """Dropped messages of addresses without an entry."""
        self._offset = 0
        self._prepared: list[Problem] | None = None
        self._certificates: Callable[[], Sequence[CertificateExpiry]] = lambda: ()
        self._unusable: Callable[[], Sequence[UnusableFile]] = lambda: ()

    def watch_certificates(
        self,
        certificates: Callable[[], Sequence[CertificateExpiry]],
        unusable: Callable[[], Sequence[UnusableFile]],
    ) -> None:
        """Look at files too; *certificates* gives the certificates in use, *unusable* what can't be used."""
        self._certificates, self._unusable = certificates, unusable

    def look(self) -> Iterator[None]:
        """Look at addresses: at all, where they are not very many. Pauses after each few."""
        now = self._runtime.clock()
        fib = self._runtime.fib
        for entry in [each for each, (_, at) in self._dropped.items() if each.is_idle and now - at > RECENT_S]:
            del self._dropped[entry]
        unaddressed = self._runtime.data_plane.settlement.unaddressed
        if unaddressed != self._unaddressed[0]:
            self._unaddressed = (unaddressed, now)
        entries = list(islice(fib.entries(), self._offset, self._offset + MOST_LOOKED))
        self._offset = self._offset + MOST_LOOKED if len(entries) == MOST_LOOKED else 0
        for index, entry in enumerate(dict.fromkeys([*self._troubled, *entries])):
            if index % AT_ONCE == AT_ONCE - 1:
                yield
            self._look_at(entry, now)

    def _look_at(self, entry: AddressEntry, now: float) -> None:
        if entry.dropped:
            count, _ = self._dropped.get(entry, (0, now))
            if entry.dropped != count and (entry in self._dropped or len(self._dropped) < MOST_TROUBLED):
                self._dropped[entry] = (entry.dropped, now)
        if not entry.is_open and is_private(Address(entry.kind, entry.text)):
            # The client that this reply address was made for is gone, and comes back by another one: senders that still
            # have a link to it, as oslo.messaging's servers have for ten minutes, wait for nothing.
            self._troubled.pop(entry, None)
            return
        known = self._troubled.get(entry)
        is_late = oldest_wait_s(entry, now) >= WAIT_S
        if entry.service is not None or not (may_be_blocked(entry) or busy_behind(entry) or is_late):
            if known is not None and now - known.last > RECENT_S:
                del self._troubled[entry]
            elif known is not None:
                known.still_since = now
            return
        if known is None:
            if len(self._troubled) < MOST_TROUBLED:
                known = self._troubled[entry] = _Trouble(now, entry.egress)
                self._look_who_was_lost(entry, known)
            return
        if not entry.is_open:
            if known.is_open and now - known.closed_last > RECENT_S:
                known.closed_since = now
            known.closed_last = now
        self._look_who_was_lost(entry, known)
        is_still = known.egress == entry.egress
        if is_late or is_still:  # else it is busy, and happened to have no credit
            if now - known.last > RECENT_S:
                known.since = known.still_since
            known.last = now
        if not is_still:
            known.still_since, known.egress = now, entry.egress

    def _look_who_was_lost(self, entry: AddressEntry, known: _Trouble) -> None:
        """Remember with which routers the last subscribers went: of those that are lost it is known for a minute."""
        if entry.is_open:
            known.lost_with = ()
        elif known.is_open and entry.kind is AddressKind.MOBILE:
            known.lost_with = self._runtime.control.absent_subscribers(entry.text)
        elif known.is_open and entry.owner is not None:
            known.lost_with = [entry.owner]
        known.is_open = entry.is_open

    def problems(self) -> list[Problem]:
        """List what is wrong now."""
        return problems(self.snapshot())

    def find_problems(self) -> Generator[None, None, list[Problem]]:
        """Find the problems in pieces: pauses after each few routers and links."""
        return problems((yield from self._take_snapshot()))

    def rows(self) -> LazyRows:
        """Problems for management: what `prepare` has found since the last call, else found at once."""
        found, self._prepared = self._prepared, None
        return LazyRows([_row(problem) for problem in (self.problems() if found is None else found)])

    def prepare(self) -> Generator[None, None, None]:
        """Find in pieces what `rows` gives."""
        self._prepared = yield from self.find_problems()

    def snapshot(self) -> ProblemInputs:
        """The router as it is now."""
        return at_once(self._take_snapshot())

    def _full_listeners(self, now: float) -> list[FullListener]:
        """Listeners that take no more connections, by their own bound or for want of files, at *now* (seconds)."""
        full = [
            FullListener(name=each.name, count=each.count, most=each.settings.max_connections)
            for each in self._listeners
            if each.count >= each.settings.max_connections
        ]
        short = [
            FullListener(name=each.name, count=each.count, most=most_files(), is_short_of_files=True)
            for each in self._listeners
            if now - each.short_of_files_at <= RECENT_S
        ]
        return full + short

    def _take_snapshot(self) -> Generator[None, None, ProblemInputs]:
        runtime = self._runtime
        offset = time.time() - runtime.clock()
        nodes, links = yield from troubled_rows(runtime, offset)
        yield from self.look()
        if self._rates is not None and runtime.clock() - self._rates.looked_at >= RATES_S:
            yield from self._rates.look()
        now = runtime.clock()
        account = runtime.account
        return ProblemInputs(
            router=runtime.me,
            now=now + offset,
            nodes=nodes,
            links=links,
            connectors=list(connector_rows(runtime, self._connectors, offset)),  # type: ignore[arg-type]
            wrong_roles=[
                WrongRole(container=it.container, host=it.host, reason=it.reason, since=it.first + offset)
                for it in runtime.mesh_presence.misdirected.values()
                if now - it.last <= RECENT_S
            ],
            refusals=[
                RouterRefusal(container=it.container, host=it.host, reason=it.reason, since=it.first + offset)
                for it in runtime.mesh_presence.refused_routers.values()
                if now - it.last <= RECENT_S
            ],
            duplicate_ids=runtime.control.duplicate_ids(RECENT_S, now),
            floods=[self._flood(each, offset) for each in (self._rates.floods() if self._rates else ())[:SHOWN]],
            hanging=list(self._hanging(now, offset)),
            addresses=list(self._addresses(now, offset)),
            is_above_mark=account.is_over,
            held=[
                HeldConnection(
                    identity=str(each.id),
                    container=each.peer.container if each.peer is not None else "",
                    user=each.user,
                    host=each.host,
                    charged_bytes=each.port.charge.total_bytes,
                    is_read=not (each.port.is_over or each.port.is_stopped),
                )
                for each in account.waiting
                if each.settings.role is Role.NORMAL
                and (each.port.is_over or each.port.is_stopped or each.port.is_laden)
            ],
            full_listeners=self._full_listeners(now),
            dropped=[
                DroppedMessages(text=_name(entry), count=count, last=at + offset)
                for entry, (count, at) in self._dropped.items()
                if now - at <= RECENT_S
            ],
            dropped_to_nobody=(
                DroppedMessages(text="", count=self._unaddressed[0], last=self._unaddressed[1] + offset)
                if now - self._unaddressed[1] <= RECENT_S
                else None
            ),
            certificates=self._certificates(),
            unusable=self._unusable(),
        )

    def _flood(self, flood: TooFastPublisher, offset: float) -> TooFastAnonymousPublisher:
        connection = self._runtime.connections.get(flood.link.port.id)
        peer = connection.peer if connection is not None else None
        under_way = islice(self._runtime.data_plane.transfers_on(flood.link), MOST_UNDER_WAY)
        texts = [each.entry.text for each in under_way if each.entry is not None]
        return TooFastAnonymousPublisher(
            container=peer.container if peer is not None else "",
            user=connection.user if connection is not None else "",
            host=connection.host if connection is not None else "",
            under_way=flood.link.in_flight,
            most=flood.link.window,
            address=masked(_most(texts) or ""),
            since=flood.since + offset,
        )

    def _origin(self, entry: AddressEntry) -> str:
        """Name the sender that more than half of the messages that wait at an address came from."""
        ports = [
            each.ingress.port
            for each in islice(entry.waiting, MOST_UNDER_WAY)
            if isinstance(each, Transfer) and each.ingress is not None
        ]
        found = _most([port.id for port in ports])
        connection = self._runtime.connections.get(found) if found is not None else None
        if connection is None or connection.peer is None:
            return ""
        if connection.port.is_router:
            return f"router {connection.peer.container}"
        return f"client {client_name(connection.peer.container, connection.user, connection.host)}"

    def _hanging(self, now: float, offset: float) -> Iterator[HangingSubscriber]:
        if self._rates is None:
            return
        parties = PartyRows(self._runtime.connections, now, self._rates)
        for link, since in islice(self._rates.hanging(), SHOWN):
            yield HangingSubscriber(text=masked(link.entry.text), party=parties.row(link), since=since + offset)

    def _addresses(self, now: float, offset: float) -> Iterable[AddressTrouble]:
        parties = PartyRows(self._runtime.connections, now, self._rates)
        known = self._runtime.data_plane.links
        oldest = sorted(self._troubled.items(), key=lambda item: (item[1].since, item[1].still_since))
        for entry, trouble in islice(oldest, SHOWN):
            credit = credit_row(entry, now)
            behind = busy_behind(entry) if now - trouble.still_since >= PATIENCE_S else 0
            is_late = oldest_wait_s(entry, now) >= WAIT_S
            if credit.blocked_count and credit.blocked_seconds < PATIENCE_S:
                continue
            if not (credit.blocked_count or behind or is_late):
                continue
            grantors = [
                parties.row(party)
                for party in grantors_of(entry, GRANTORS)
                if isinstance(party, CircuitlessNeighborCredit) or party in known
            ]
            yield AddressTrouble(
                text=masked(entry.text),
                credit=credit,
                grantors=grantors,
                behind=behind,
                since=min(trouble.since, trouble.still_since) + offset,
                closed_since=trouble.closed_since + offset,
                lost_with=trouble.lost_with,
                origin=self._origin(entry) if is_late else "",
            )


Key = TypeVar("Key", bound=Hashable)


def _most(keys: Sequence[Key]) -> Key | None:
    """Return the key that more than half of *keys* are; None where there is none."""
    return next((key for key, count in Counter(keys).most_common(1) if 2 * count > len(keys)), None)


def _name(entry: AddressEntry) -> str:
    return masked(entry.text)


def _row(problem: Problem) -> ProblemRow:
    name = f"{problem.kind}/{problem.subject}"
    return ProblemRow(
        name=name,
        identity=name,
        kind=problem.kind,
        subject=problem.subject,
        sentence=problem.sentence,
        since=int(problem.since) if problem.since is not None else None,
        command=problem.command,
        last=int(problem.last) if problem.last is not None else None,
        closeness=problem.closeness,
        about=list(problem.about),
        explains=list(problem.explains),
    )
