"""The wiring of what a router serves by HTTP. Loaded by routers alone that serve it: an extra brings what it needs."""

from __future__ import annotations

from collections.abc import Sequence

from mesh_config.models import HttpSettings
from router.management.console.routes import console_routes
from router.management.http_app import http_app
from router.net.connector import Connector
from router.net.http_server import HttpCounters, HttpServer
from router.net.listener import Listener
from router.runtime import Runtime
from router.views.console import ConsoleSource
from router.views.mesh_questions import MeshQuestions
from router.views.metrics import RuntimeMetrics
from router.views.readiness import reasons_not_ready
from router.views.runtime import RuntimeView


def http_server(
    runtime: Runtime,
    view: RuntimeView,
    listeners: Sequence[Listener],
    connectors: Sequence[Connector],
    settings: HttpSettings,
    before: HttpServer | None,
) -> HttpServer:
    """The HTTP listener of a router, bound.

    Args:
        runtime: of the router.
        view: its rows.
        listeners: those for AMQP.
        connectors: those of the router.
        settings: host, port and bounds.
        before: the one whose place it takes, and whose socket if that is bound to the same address.
    Raises:
        LocalError: it cannot be bound.
    """
    counters = before.counters if before is not None else HttpCounters()

    def readiness() -> list[str]:
        return reasons_not_ready(runtime, listeners, connectors)

    metrics = RuntimeMetrics(
        runtime, listeners, connectors, lambda: not readiness(), counters, view.problem_scan.problems
    )
    console = ConsoleSource(runtime, view, MeshQuestions(runtime))
    routes = console_routes(console.page, settings.share_percent / 100)
    app = http_app(settings, readiness=readiness, metrics=metrics, fault=runtime.turn_fault, routes=routes)
    return HttpServer(settings, app, counters, runtime.turn_fault, before)
