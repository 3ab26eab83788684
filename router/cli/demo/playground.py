"""`amqp-mesh demo --keep`: four routers to play with."""

from __future__ import annotations

import sys
from pathlib import Path

import trio

from router.cli.demo.children import Child
from router.cli.demo.mesh import Mesh, start


async def keep(folder: Path) -> None:
    """Run the mesh until cancelled; print a line for each router once all have converged.

    Raises:
        DemoError: the mesh does not come up.
    """
    mesh = await start(folder, with_wire=False)
    try:
        _announce(mesh)
        async with trio.open_nursery() as nursery:
            for child in mesh.children:
                nursery.start_soon(_look_after, child)
            nursery.start_soon(trio.sleep_forever)
    finally:
        with trio.CancelScope(shield=True):
            await mesh.stop()


def _announce(mesh: Mesh) -> None:
    mesh.watch.kill()
    for router, child in mesh.routers.items():
        print(f"{router} {mesh.urls[router]} pid {child.pid}")
    sys.stdout.flush()


async def _look_after(child: Child) -> None:
    await child.wait()
    print(f"{child.ending()}; the others go on", file=sys.stderr, flush=True)
