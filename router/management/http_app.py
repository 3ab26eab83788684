"""The application of the HTTP listener: whether the router lives, whether it is ready, its metrics.

Every answer is made from what is at hand; nothing that a client sends is kept, and no body is read.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from mesh_config.models import HttpSettings
from router.management.metrics import CONTENT_TYPE, MetricsSource, metrics_page, process_registry
from router.management.sign_in import SignIn, SignInMiddleware
from router.management.throttled_page import ThrottledPage

Fault = Callable[[Exception], None]
"""Told of a fault of ours while a request was answered."""

SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        " base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def http_app(
    settings: HttpSettings,
    *,
    readiness: Callable[[], Sequence[str]],
    metrics: MetricsSource,
    fault: Fault,
    routes: Iterable[Route] = (),
    sign_in: SignIn | None = None,
) -> ASGIApp:
    """The application.

    Args:
        settings: host and names of the listener, and the share of the time that pages may take.
        readiness: sentences that say why the router is not ready; none when it is.
        metrics: the router.
        fault: told of faults of ours.
        routes: further ones.
        sign_in: judges who asks for more than health; None where anybody may.
    """
    process = process_registry()
    page = ThrottledPage(lambda: metrics_page(metrics, process), settings.share_percent / 100)

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")  # whoever answers turns its event loop

    async def readyz(_: Request) -> Response:
        reasons = readiness()
        return PlainTextResponse("".join(f"{line}\n" for line in reasons) or "ready\n", 503 if reasons else 200)

    async def metrics_(_: Request) -> Response:
        return Response(await page.get(), media_type=CONTENT_TYPE)

    async def not_found(_: Request, __: Exception) -> Response:
        return PlainTextResponse(f"not found; there are {', '.join(answers)}\n", 404)

    answers = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics_}
    served = [*(Route(path, answer) for path, answer in answers.items()), *routes]
    app = Starlette(routes=served, exception_handlers={404: not_found})
    return HttpSecurityMiddleware(SignInMiddleware(app, sign_in) if sign_in is not None else app, settings, fault)


class HttpSecurityMiddleware:
    """Lets requests through that name this router, and puts the headers for browsers on every answer."""

    def __init__(self, app: ASGIApp, settings: HttpSettings, fault: Fault) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in (*settings.names, settings.host, "localhost"))
        self._fault = fault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        has_begun = False

        async def answer(message: dict[str, object]) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                given = list(message.get("headers", ()))  # type: ignore[call-overload]
                known = {name for name, _ in given}
                given += [
                    (name.lower().encode(), value.encode())
                    for name, value in SECURITY_HEADERS.items()
                    if name.lower().encode() not in known
                ]
                message = {**message, "headers": given}
            await send(message)

        app = self._app if self.is_named(scope) else PlainTextResponse("this router has another name\n", 421)
        try:
            await app(scope, receive, answer)  # type: ignore[arg-type]
        except Exception as error:  # a fault of ours must end this answer alone
            self._fault(error)
            if not has_begun:
                await PlainTextResponse("fault of the router\n", 500)(scope, receive, answer)  # type: ignore[arg-type]

    def is_named(self, scope: Scope) -> bool:
        """Whether the request is for a name of this router, or for an address of numbers.

        A page of a stranger's host can make a browser ask this router only by a name of that host.
        """
        host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1").lower()
        name = host.partition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
        if not host or host in self._names or name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True
