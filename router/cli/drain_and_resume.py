"""`amqp-mesh drain` and `amqp-mesh resume`: a router goes out of use in order, and comes back."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Final

import click

from router.cli.management import ManagementClient
from router.cli.management_errors import ManagementError
from router.cli.options import router_argument
from router.cli.router_access import RouterAccess, access_options
from router.cli.stat_columns import printable
from router.core.terminal_escaping import shell_word
from router.drain_state import GO_ELSEWHERE, SHUTTING_DOWN

LOOK_S: Final = 0.1
"""Time between two checks whether a router is drained or has stopped, seconds."""
SPARE_S: Final = 5.0
"""Time to wait beyond what the router states, seconds: for closing its connections, and for the checks."""
MOST_ASKED: Final = 3
"""Maximum number of former neighbors that are asked why a router is lost: it tells each of them that it stops."""


@click.command(short_help="Drain a router, before work on it.")
@router_argument
@click.option("--stop", "is_to_stop", is_flag=True, help="Stop the router when it is drained.")
@access_options
def drain(router: str, is_to_stop: bool, access: RouterAccess) -> None:
    """Drain ROUTER: move its clients and paths to other routers, and wait until that is done.

    What passes through it takes other ways, where there are some; it takes no new message of its clients; what is in
    flight has up to its `shutdown_s` to settle; what clients still wait to send is given back to them; then their
    connections are closed, and it accepts no new ones. Routers stay connected, so that it can be looked at, and
    `amqp-mesh resume ROUTER` makes it serve again. With --stop it ends as with SIGTERM.

    ROUTER may be any router of the mesh. Exit status: 1 when it cannot be reached, is not drained in time, or with
    --stop may run still.
    """
    with ManagementClient(access) as client:
        whom = _other(client, router)
        # Who stops with nothing to wait for is gone before the first look afterwards.
        neighbors = _neighbors(client, router) if is_to_stop and whom is not None else ()
        found = client.request("DRAIN", body={"stop": is_to_stop}, router=whom).body
        name = printable(router)
        end = time.monotonic() + float(found["withinSeconds"]) + SPARE_S
        if not is_to_stop:
            _wait_drained(client, router, whom, end)
            click.echo(f"router {name} is drained: it has no clients, and no path uses it unless there is no other")
            if whom is None:
                click.echo(_way_back(name, is_alone=client.routers() == [router]))
            return
        if whom is None:
            wait_connection_ended(client, router, end)
        else:
            wait_neighbors_told(client, router, neighbors, end)
        click.echo(f"router {name} has stopped")


@click.command(short_help="Let a drained router serve again.")
@router_argument
@access_options
def resume(router: str, access: RouterAccess) -> None:
    """Let a drained ROUTER accept clients and paths again.

    Exit status: 1 when it cannot be reached, or refuses because it is not drained yet.
    """
    with ManagementClient(access) as client:
        whom = _other(client, router)
        is_serving = client.read("router", router=whom)["drainState"] == "serving"
        client.request("RESUME", router=whom)
    click.echo(f"router {printable(router)} " + ("serves: it was not drained" if is_serving else "serves again"))


def _way_back(name: str, *, is_alone: bool) -> str:
    """The way in which a router serves again that takes no connection more, not even that of `resume`."""
    if is_alone:
        return "It has no neighbor by which it could be reached: SIGUSR2 makes it serve again."
    command = f"amqp-mesh resume {shell_word(name)}"
    return f"It takes no new connection: `{command}` needs the --url of another router, or send it SIGUSR2."


def _other(client: ManagementClient, router: str) -> str | None:
    """The router to ask by way of the one attached to; None for that one itself. Raises: ManagementError."""
    if client.attached_router() == router:
        return None
    client.check(router)
    return router


def _wait_drained(client: ManagementClient, router: str, whom: str | None, end: float) -> None:
    while client.read("router", router=whom)["drainState"] == "draining":
        if time.monotonic() > end:
            raise ManagementError(
                f"router {router} is not drained yet; see amqp-mesh stat routers{client.access.suffix}"
            )
        time.sleep(LOOK_S)


def wait_connection_ended(client: ManagementClient, router: str, end: float) -> None:
    """Wait until *router*, the one attached to, ends that connection as it stops.

    Raises: ManagementError, also when it hasn't at *end*, or ends that connection for another reason.
    """
    reason = client.wait_ended(end - time.monotonic())
    if reason is None:
        raise _not_stopped(router)
    if GO_ELSEWHERE in reason:
        raise ManagementError(f"router {router} is to stop, and has ended this connection before: {reason}")


def wait_neighbors_told(client: ManagementClient, router: str, neighbors: Sequence[str], end: float) -> None:
    """Wait until *router* has told others that it shuts down: the one attached to, or its own neighbors.

    Args:
        client: attached to another router.
        router: to stop.
        neighbors: those that it had before it was told to stop.
        end: time when it should have, seconds, monotonic.

    Raises: ManagementError, also when it hasn't at *end*, or nobody can tell whether it has: one that is slow to answer
        has not stopped, nor has one to which the way is cut.
    """
    while time.monotonic() <= end:
        row = _seen_by(client, None, router)
        if row is None or not row["isReachable"]:
            reason = (row["reason"] if row is not None else None) or "it is not known any more"
            if any(SHUTTING_DOWN in it for it in chain((reason,), _reasons_of_neighbors(client, router, neighbors))):
                return
            raise ManagementError(f"router {router} is to stop, and can't be reached: {reason}")
        neighbors = row["linkState"] or neighbors
        time.sleep(LOOK_S)
    raise _not_stopped(router)


def _not_stopped(router: str) -> ManagementError:
    return ManagementError(f"router {router} has not stopped yet; its log says more")


def _neighbors(client: ManagementClient, router: str) -> Sequence[str]:
    """Neighbors of *router*, as the one attached to knows them. Raises: ManagementError."""
    row = _seen_by(client, None, router)
    neighbors: Sequence[str] = row["linkState"] if row is not None else ()
    return neighbors


def _seen_by(client: ManagementClient, asked: str | None, router: str) -> Mapping[str, Any] | None:
    """Row of a router as another one, *asked*, knows it; None where that is unknown. Raises: ManagementError."""
    return next((row for row in client.query("router.node", router=asked) if row["id"] == router), None)


def _reasons_of_neighbors(client: ManagementClient, router: str, neighbors: Sequence[str]) -> Iterator[str]:
    """Why *neighbors* of a router have lost it: they alone have heard its own words. Some are asked, one by one."""
    for neighbor in neighbors[:MOST_ASKED]:
        with suppress(ManagementError):  # that one may be cut off with it
            row = _seen_by(client, neighbor, router)
            yield (row["reason"] if row is not None else None) or ""
