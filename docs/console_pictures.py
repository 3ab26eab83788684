"""Make the pictures of the console that the docs show: a real mesh with two faults, in a real Chromium.

    python docs/console_pictures.py

It stages what `examples/staged_faults.py` can, at the same places each time: router C dies, and a server at B is slow.
Look at the pictures afterwards: the words around them were written for the old ones.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path

import trio

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

import staged_faults  # noqa: E402

from router.cli.demo.children import stop  # noqa: E402
from tests.helpers.browser import Browser  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
WELL_S = 10.0
"""Time in which all is well, so that rates are known,"""
FAULT_S = 9.0
"""and from the faults until the first picture: messages wait by then."""
WIDTH, HEIGHT = 1400, 1180
NODE = "[...document.querySelectorAll('.node')].find((it) => it.textContent.startsWith({!r}))"


def take(browser: Browser, url: str, mesh: staged_faults.Mesh) -> None:
    """Open the console, let things go wrong, and write both pictures."""
    browser.size(WIDTH, HEIGHT)
    browser.open(url)
    browser.wait("document.querySelectorAll('.node').length === 4")
    browser.run("localStorage.setItem('theme', 'light')")
    browser.open(url)
    time.sleep(WELL_S)
    mesh.servers["billing-1"].work_s = 3.0
    mesh.routers["C"].kill()
    browser.wait("document.querySelectorAll('#problem-list li').length >= 2", 60)
    time.sleep(FAULT_S)
    browser.run(f"{NODE.format('B')}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    browser.wait("!document.getElementById('detail').hidden")
    browser.screenshot(PICTURES / "console-light.png")
    browser.run("document.getElementById('detail-close').click()")
    browser.run("document.getElementById('theme').click()")
    browser.run("document.getElementById('tab-Addresses').click()")
    browser.wait("document.documentElement.dataset.theme === 'dark'")
    browser.screenshot(PICTURES / "console-dark.png")


def main() -> None:
    """Start the mesh and the browser, and end both."""
    with tempfile.TemporaryDirectory(prefix="amqp-mesh-pictures-") as folder:
        mesh = staged_faults.Mesh(Path(folder), None, random.Random())  # noqa: S311  # for ports
        try:
            mesh.wait_converged()
            mesh.attach_clients()
            with Browser(Path(folder), width=WIDTH, height=HEIGHT) as browser:
                take(browser, f"http://{staged_faults.HOST}:{mesh.consoles['A']}/", mesh)
        finally:
            trio.run(stop, list(mesh.routers.values()))


if __name__ == "__main__":
    main()
