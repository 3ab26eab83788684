"""The wiring of what a router serves by HTTP. Loaded by routers alone that serve it: an extra brings what it needs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mesh_config.models import HttpSettings
from router.management.console.routes import console_routes
from router.management.http_app import http_app
from router.management.sign_in import Verdict
from router.net.connector import Connector
from router.net.handshake_socket import HandshakeFailed
from router.net.http_server import HttpCounters, HttpServer
from router.net.listener import Listener
from router.net.peer_authentication import PeerAuthentication
from router.runtime import Runtime
from router.security.sasl_frames import SaslError
from router.security.scram import prepare_name, prepare_password
from router.views.console import ConsoleSource
from router.views.mesh_status_poller import MeshStatusPoller
from router.views.metrics import RuntimeMetrics
from router.views.readiness import reasons_not_ready
from router.views.runtime import RuntimeView


def http_server(
    runtime: Runtime,
    view: RuntimeView,
    listeners: Sequence[Listener],
    connectors: Sequence[Connector],
    settings: HttpSettings,
    authentication: PeerAuthentication,
    before: HttpServer | None,
    place: str | None,
    files: int,
    *,
    shares_port: bool,
) -> HttpServer:
    """The HTTP listener of a router, bound.

    Args:
        runtime: of the router.
        view: its rows.
        listeners: those for AMQP.
        connectors: those of the router.
        settings: host, port and bounds.
        authentication: finds out who asks, by the files of *settings*, which are read already.
        before: the one whose place it takes, and whose socket if that is bound to the same address.
        place: address of the host; None: it is looked up, which may take a while.
        files: descriptors of the process that its connections may take.
        shares_port: bind it also where a listener that shares its port has this one.
    Raises:
        LocalError: it cannot be bound.
    """
    counters = before.counters if before is not None else HttpCounters()

    def readiness() -> list[str]:
        return reasons_not_ready(runtime, listeners, connectors)

    metrics = RuntimeMetrics(
        runtime, listeners, connectors, lambda: not readiness(), counters, view.problem_scan.find_problems
    )
    questions = MeshStatusPoller(runtime)
    console = ConsoleSource(runtime, view, questions, listeners)
    has_users = settings.users_file is not None
    routes = console_routes(console.page, settings.share_percent / 100, before=questions.gather, is_signed_in=has_users)
    app = http_app(
        settings,
        readiness=readiness,
        metrics=metrics,
        fault=runtime.turn_fault,
        routes=routes,
        sign_in=partial(_sign_in, runtime, authentication, settings) if has_users else None,
    )
    tls = partial(authentication.files.context, settings) if settings.tls is not None else None
    return HttpServer(settings, app, counters, runtime.turn_fault, before, tls, place, files, shares_port)


async def _sign_in(
    runtime: Runtime,
    authentication: PeerAuthentication,
    settings: HttpSettings,
    user: bytes,
    password: bytes,
    host: str,
) -> Verdict:
    """Judge who says by HTTP who it is."""
    try:
        users = await authentication.files.users_of(settings)
    except HandshakeFailed as error:  # a reload has taken it away, and ends this connection
        runtime.log.warning("sign_in_refused", host=host, reason=str(error))
        return Verdict.WRONG
    assert users is not None
    try:
        name, secret = prepare_name(user), prepare_password(password)
    except SaslError:
        name, secret = "", b""  # nobody's
    if not await authentication.throttle.check_password(users, name, secret, host):
        runtime.log.warning("sign_in_refused", host=host, reason="no such user, or a wrong password")
        return Verdict.WRONG
    return Verdict.WELCOME if runtime.policy.may_read_management(name, host) else Verdict.FORBIDDEN
