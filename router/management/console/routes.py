"""Routes of the console: its files, as they are, and the state of the mesh.

Where nobody has to sign in, it is for whoever is on the same machine: see `is_local`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from router.management.throttled_page import ThrottledPage

KINDS: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FOLDER: Final = Path(__file__).parent
REMOTE: Final = "the console is only for this machine: forward its port, as with ssh -L 9672:127.0.0.1:9672\n"
"""Answer to whoever comes from elsewhere."""


def console_routes(
    page: Callable[[], Generator[None, None, bytes]],
    share: float,
    *,
    before: Callable[[], Awaitable[None]] | None = None,
    is_signed_in: bool = False,
) -> list[Route]:
    """The routes.

    Args:
        page: begins to make the page with the state of the mesh.
        share: part of the time that making it may take, 0 to 1.
        before: awaited before that.
        is_signed_in: whoever asks has said who it is.
    """
    state = ThrottledPage(page, share, before)
    files = {f"/{path.name}": path for path in sorted(FOLDER.iterdir()) if path.suffix in KINDS}

    async def mesh(_: Request) -> Response:
        return Response(await state.get(), media_type="application/json")

    answers = {"/api/mesh": mesh, "/": file_route(files["/index.html"])}
    answers |= {name: file_route(path) for name, path in files.items()}
    return [Route(path, answer if is_signed_in else local(answer)) for path, answer in answers.items()]


def file_route(path: Path) -> Callable[[Request], Awaitable[Response]]:
    """The answer to a request for a file, read once."""
    content, kind = path.read_bytes(), KINDS[path.suffix]

    async def answer(_: Request) -> Response:
        return Response(content, media_type=kind)

    return answer


def local(answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Refuse whoever does not come from this machine."""

    async def guarded(request: Request) -> Response:
        if not is_local(request):
            return PlainTextResponse(REMOTE, 403)
        return await answer(request)

    return guarded


def is_local(request: Request) -> bool:
    """Whether a request comes from this machine, and not by a proxy that others can reach."""
    is_forwarded = any(name in request.headers for name in ("forwarded", "x-forwarded-for", "x-real-ip"))
    host = request.client.host if request.client is not None else ""
    try:
        return ipaddress.ip_address(host).is_loopback and not is_forwarded
    except ValueError:
        return False
