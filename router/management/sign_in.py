"""Sign-in by HTTP: user and password with each request, as HTTP Basic has them (RFC 7617).

A browser asks its user once, and sends them by itself from then on. Whether they are right is found out by the same
file, at the same pace, as for a client of AMQP.
"""

from __future__ import annotations

import base64
import binascii
import enum
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})
"""Paths that supervisors ask for; the answers tell nothing of anybody."""
CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="amqp-mesh", charset="UTF-8"'}


class Verdict(enum.Enum):
    """Answer to who has said who it is."""

    WELCOME = enum.auto()
    WRONG = enum.auto()
    """No such user, or another password."""
    FORBIDDEN = enum.auto()
    """The user's group may not read management, or not from that host."""


SignIn = Callable[[bytes, bytes, str], Awaitable[Verdict]]
"""Judge of a user and password from a remote host."""


class SignInMiddleware:
    """Lets requests through that say who makes them: one who may read management."""

    def __init__(self, app: ASGIApp, sign_in: SignIn) -> None:
        self._app = app
        self._sign_in = sign_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        app = self._app
        if scope["path"] not in OPEN_PATHS:
            said = credentials(scope)
            client = scope.get("client")
            verdict = Verdict.WRONG
            if said is not None:
                verdict = await self._sign_in(*said, client[0] if client else "")
            if verdict is Verdict.WRONG:
                words = "sign in as a user of this router\n" if said is None else "no such user, or a wrong password\n"
                app = PlainTextResponse(words, 401, CHALLENGE)
            elif verdict is Verdict.FORBIDDEN:
                app = PlainTextResponse("this user may not read management: see `management` of its group\n", 403)
        await app(scope, receive, send)


def credentials(scope: Scope) -> tuple[bytes, bytes] | None:
    """User and password of a request; None when it has none, or none that can be read."""
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(given) != 1:
        return None
    scheme, _, token = given[0].partition(b" ")
    if scheme.lower() != b"basic":
        return None
    try:
        user, colon, password = base64.b64decode(token.strip(), validate=True).partition(b":")
    except binascii.Error:
        return None
    return (user, password) if colon else None
