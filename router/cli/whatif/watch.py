"""`amqp-mesh whatif watch`: the load of a live mesh's links, kept up to date."""

from __future__ import annotations

import itertools
import json
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any, Final

import attrs
import click
from rich.table import Table

from router.cli.errors import BAD_INPUT, CommandError, faults_of
from router.cli.management import ManagementClient
from router.cli.management_errors import ManagementError
from router.cli.options import BoundedNumber
from router.cli.router_access import RouterAccess, access_options_beside_urls
from router.cli.stat_columns import printable
from router.cli.table_output_width import console
from router.cli.whatif.mesh_client import MeshClient
from router.cli.whatif.options import spark_conf_option, spark_settings
from router.core.terminal_escaping import url_without_password
from router.whatif.pipeline.held_signals import import_whole

CONNECT: Final = "router.cli.whatif.watch:connect"
HERE: Final = "local[1,2]"
"""Master of Spark: one task at a time, tried again when it fails. Rows are shown and written by this process."""
LOOK_S: Final = 0.2
STARTS: Final = 3
LATE: Final = "Python worker failed to connect back"
"""Spark gives a Python that it starts ten seconds, which a busy machine may need, and no setting for more."""
ROWS: Final = 40
"""Maximum rows of a table that is shown; the others are in the files."""
NAMED: Final = 3
"""Links that are named of those that a router told nothing of, and lines of that kind."""


@click.command("watch")
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@click.option(
    "--checkpoint",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder for the progress of the job: with the same folder it continues where it stopped.",
)
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write: the table link_rate, and current.parquet with the last interval of each link.",
)
@click.option(
    "--model",
    metavar="MODEL",
    type=click.Path(readable=False),
    help="Model with the capacities of the links: a folder written by `import` or `snapshot`.",
)
@click.option(
    "--capacity-msgs",
    type=BoundedNumber(min=0, min_open=True),
    metavar="RATE",
    help="Capacity of links that have none in MODEL, messages/s.",
)
@click.option(
    "--capacity-bytes",
    type=BoundedNumber(min=0, min_open=True),
    metavar="RATE",
    help="Capacity of links that have none in MODEL, bytes/s.",
)
@click.option(
    "--interval",
    type=BoundedNumber(min=0.1, max=86400),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two readings.",
)
@click.option(
    "--addresses",
    "has_addresses",
    is_flag=True,
    help="With -o: also read the traffic that enters at each router for each address, and write the table "
    "address_rate of OUT, for `forecast`.",
)
@click.option("--once", is_flag=True, help="Stop after one interval: the one since the last reading, if any.")
@spark_conf_option
@access_options_beside_urls
def watch(accesses: tuple[RouterAccess, ...], checkpoint: Path, interval: float, once: bool, **asked: Any) -> None:
    """Show the live load of each link of the mesh that the router at URL belongs to.

    URL is a client listener of any router, such as amqp://127.0.0.1:5672 (amqps:// for TLS); it leads to all others. If
    it does not answer, the next URL is tried, as the same user. The counters of all routers are read periodically by a
    Structured Streaming job of Spark: if it is killed and restarted with the same DIR, no interval is lost or counted
    twice.

    Ctrl-C stops it. Exit status: 2 for input that can't be used, 1 when it fails, or with --once when no router
    answers, else 0.
    """
    if asked["has_addresses"] and asked["output"] is None:
        raise click.UsageError("--addresses: its table is a part of OUT, which is not given; expected -o OUT too")
    stopped = threading.Event()
    with _ended_by_signals(stopped), faults_of(checkpoint, BAD_INPUT), _places(accesses) as places:
        _watch(accesses, places, checkpoint, interval, stopped, once=once, **asked)


def _watch(
    accesses: tuple[RouterAccess, ...],
    places: tuple[str, ...],
    checkpoint: Path,
    interval_s: float,
    stopped: threading.Event,
    *,
    once: bool,
    output: Path | None,
    model: str | None,
    settings: tuple[str, ...],
    has_addresses: bool,
    **capacities: float | None,
) -> None:
    stream = import_whole("router.whatif.telemetry.counter_stream")
    spark = import_whole("router.whatif.pipeline.spark_session")
    folders = import_whole("router.whatif.formats.model_folder")
    stream.check_places(checkpoint, output)
    links = () if model is None else folders.read_model(model).links
    what = stream.WatchSpec(
        urls=places,
        connect=CONNECT,
        checkpoint=checkpoint,
        out=output,
        links=links,
        has_addresses=has_addresses,
        **capacities,
    )
    ask = import_whole("router.whatif.telemetry.link_counters").reachable
    screen = Screen(lambda: stream.ask_any(places, connect, ask), [access.url for access in accesses])
    if once:
        screen.require_answer()  # Spark takes its time to start
    if stopped.is_set():
        return
    job = stream.StreamingJob(what, screen.show)
    patience_s = 2 * interval_s + sum(access.timeout_s for access in accesses)
    try:
        with _set_by_signals(stopped), _unless(stopped):
            address = spark.SparkAddress(master=HERE, settings=spark_settings(settings), workers=1)
            click.echo("starting Spark, which may take a minute", err=True)
            with (
                spark.session(address, checkpoint / stream.LOG) as session,
                _set_by_signals(stopped),  # again: pyspark has taken SIGINT, to raise KeyboardInterrupt
            ):
                click.echo("Spark has started; reading counters", err=True)
                if once:
                    _once(job, session, screen, interval_s, stopped)
                else:
                    _keep_on(job, session, screen, interval_s, patience_s, stopped)
    finally:
        job.close()


@contextmanager
def _unless(stopped: threading.Event) -> Iterator[None]:
    """Let nothing be raised once it is to stop: a signal to its process group has ended Spark's Java as well."""
    try:
        yield
    except Exception:
        if not stopped.is_set():
            raise


def _once(job: Any, session: Any, screen: Screen, interval_s: float, stopped: threading.Event) -> None:
    """One interval. The first time there is nothing to compare with, so it is read twice."""
    for _ in range(2):
        _run(lambda: job.start(session, interval_s=None), stopped)
        if screen.count or stopped.is_set():
            return
        stopped.wait(interval_s)
    raise CommandError(f"no router that answers at {screen.where} has a link")


def _keep_on(
    job: Any, session: Any, screen: Screen, interval_s: float, patience_s: float, stopped: threading.Event
) -> None:
    screen.complain(0.0)
    _run(lambda: job.start(session, interval_s=interval_s), stopped, lambda: screen.complain(patience_s))


def _run(start: Callable[[], Any], stopped: threading.Event, look: Callable[[], None] | None = None) -> None:
    """Start a query and wait for its end; again when its Python was late, which its checkpoint allows.

    Args:
        start: starts the query.
        stopped: set when it is to be stopped.
        look: called from time to time.
    Raises: CommandError when it has failed.
    """
    for left in reversed(range(STARTS)):
        error = _await(start(), stopped, look)
        if error is None or stopped.is_set():
            return
        if not left or LATE not in str(error):
            raise CommandError(f"the job has failed: {str(error).strip().splitlines()[0]}")


def _await(query: Any, stopped: threading.Event, look: Callable[[], None] | None) -> Any:
    """Wait until a query has ended, or is to be stopped. Returns: the error by which it has ended, None without."""
    while query.isActive and not stopped.is_set():
        stopped.wait(LOOK_S)
        if look is not None:
            look()
    if query.isActive:
        query.stop()
    return query.exception()


@contextmanager
def _set_by_signals(stopped: threading.Event) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM set *stopped*, which ends the command in order."""

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    with _handled(stop):
        yield


@contextmanager
def _handled(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Let *handle* be called on Ctrl-C and SIGTERM."""
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _ended_by_signals(stopped: threading.Event) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the command at once, and set *stopped* should the exception be lost.

    It is for the time when nothing has begun that must end in order, and ends it as it ends later.
    """

    def end(number: int, frame: FrameType | None) -> None:
        stopped.set()
        raise SystemExit(0)

    with _handled(end):
        yield


@contextmanager
def _places(accesses: Sequence[RouterAccess]) -> Iterator[tuple[str, ...]]:
    """Write as texts where routers are and as whom to come to them, for another process: see `connect`.

    Spark shows the options of a source to whoever sees its plans, so the password is in a file that only this user
    reads, and which is gone when the job is over.
    """
    with tempfile.TemporaryDirectory(prefix="amqp-mesh-") as folder:
        file = Path(folder) / "password"
        file.touch(mode=0o600)
        file.write_text(accesses[0].password or "", encoding="utf-8")
        has_password = accesses[0].password is not None
        yield tuple(
            json.dumps({**attrs.asdict(access), "password": str(file) if has_password else None}) for access in accesses
        )


@contextmanager
def connect(place: str) -> Iterator[_Client]:
    """Connect a client of management as the data source asks it.

    Args:
        place: URL of a router; or a `RouterAccess` in JSON, with the file of the password in place of it.
    Raises: OSError when the router does not answer.
    """
    access = RouterAccess(url=place)
    if place.startswith("{"):
        access = RouterAccess(**json.loads(place))
    try:
        if access.password is not None:
            access = attrs.evolve(access, password=Path(access.password).read_text(encoding="utf-8"))
        with ManagementClient(access) as client:
            yield _Client(client)
    except ManagementError as error:
        raise ConnectionError(str(error)) from error


class _Client(MeshClient):
    """A client whose errors are those that the data source takes for a router that doesn't answer."""

    def query(self, kind: str, attributes: Sequence[str], *, router: str | None) -> list[dict[str, Any]]:
        """See `MeshClient`. Raises: ConnectionError."""
        try:
            return super().query(kind, attributes, router=router)
        except ManagementError as error:
            raise ConnectionError(str(error)) from error


class Screen:
    """Screen that shows the intervals.

    Args:
        reachable: asks which routers can be reached now, itself no traffic on a link; None when none answers.
        urls: of the routers that are asked.
    """

    def __init__(self, reachable: Callable[[], Collection[str] | None], urls: Sequence[str]) -> None:
        self._reachable = reachable
        self.where = " or ".join(map(url_without_password, urls))
        """Addresses of the routers, as they are shown."""
        self.count = 0
        """Intervals shown."""
        self._console = console()
        self._told_at = time.monotonic()
        self._has_complained = False
        self._last_told: dict[str, tuple[str, datetime]] = {}
        """Links shown so far: the router that tells of each, and when it last did."""

    def show(self, rows: Any) -> None:
        """One interval: the busiest links first."""
        self.count += 1
        self._told_at = time.monotonic()
        self._has_complained = False
        found = rows.to_pylist()
        found.sort(key=lambda row: (-(row["utilisation"] or 0.0), -row["msgs_per_s"], row["link"], row["src"]))
        ended = max(row["ended"] for row in found)
        seconds = max((row["ended"] - row["begun"]).total_seconds() for row in found)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", title_justify="left")
        table.title = f"{ended:%Y-%m-%d %H:%M:%S} UTC, {seconds:.1f} s"
        for name in ("link", "from", "to"):
            table.add_column(name)
        for name in ("msg/s", "kB/s", "utilisation", "headroom", ""):
            table.add_column(name, justify="right")
        for row in found[:ROWS]:
            table.add_row(
                *(printable(row[name]) for name in ("link", "src", "dst")),
                f"{row['msgs_per_s']:,.1f}",
                f"{row['bytes_per_s'] / 1000:,.1f}",
                _share(row["utilisation"]),
                _share(row["headroom"]),
                "new connection" if row["is_reset"] else "",
            )
        if sys.stdout.isatty():
            self._console.clear()
        self._console.print(table)
        if len(found) > ROWS:
            self._console.print(f"and {len(found) - ROWS:,} more")
        for row in found:
            self._last_told[row["link"]] = (min(row["src"], row["dst"]), row["ended"])
        self._show_untold({row["link"] for row in found})

    def _show_untold(self, told: Collection[str]) -> None:
        """Links that were in an earlier interval and are not in this one, by the router that told of them."""
        untold: defaultdict[str, list[str]] = defaultdict(list)
        for link, (router, _) in sorted(self._last_told.items()):
            if link not in told:
                untold[router].append(link)
        for router, links in itertools.islice(untold.items(), NAMED):
            since = max(self._last_told[link][1] for link in links)
            names = ", ".join(printable(link) for link in links[:NAMED])
            more = f" and {len(links) - NAMED:,} more" if len(links) > NAMED else ""
            self._console.print(
                f"{printable(router)} has reported nothing about {names}{more} since {since:%H:%M:%S} UTC"
            )
        if len(untold) > NAMED:
            self._console.print(f"and {len(untold) - NAMED:,} other routers nothing of links of theirs")

    def require_answer(self) -> None:
        """Ask whether a router answers. Raises: CommandError when none does."""
        if self._reachable() is None:
            raise CommandError(f"no router answers at {self.where}")

    def complain(self, patience_s: float) -> None:
        """Say once when nothing has come for so long, and nothing can come: Spark may be late by itself.

        Args:
            patience_s: seconds.
        """
        if self._has_complained or time.monotonic() - self._told_at < patience_s:
            return
        self._told_at = time.monotonic()
        routers = self._reachable()
        if routers is None:
            click.echo(f"no router answers at {self.where}; going on", err=True)
        elif len(routers) == 1:
            click.echo(f"the router at {self.where} reaches no other; going on", err=True)
        else:
            return
        self._has_complained = True


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:,.1f} %"
