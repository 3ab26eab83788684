"""Seconds from a staged fault until the console of each router names it, in a real browser: all four faults in turn.

    python -m tests.measure.console_delays [ROUNDS]

The mesh, its clients and its faults are those of `examples/staged_faults.py`. Each router's console is open in a
browser of its own, as an operator has it, long enough for its first page.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType

import trio

from router.cli.demo.children import stop
from tests.helpers.browser import Browser, BrowserError

EXAMPLE = Path(__file__).parents[2] / "examples" / "staged_faults.py"
SETTLED_S = 4.0
"""All is well so long, and the consoles are open, before something goes wrong."""
MOST_S = 20.0
WATCH = """(() => {
  window.named = {};
  const look = () => {
    for (const line of document.querySelectorAll('#problem-list li'))
      for (const words of %r)
        if (line.innerText.includes(words) && !(words in window.named))
          window.named[words] = [Date.now() / 1000, line.innerText];
  };
  new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true});
})()"""


def staging() -> ModuleType:
    """The example, as a module."""
    spec = importlib.util.spec_from_file_location("staged_faults", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["staged_faults"] = module
    spec.loader.exec_module(module)
    return module


def words_of(fault: str, truth: str) -> list[str]:
    """Words by which a console names a fault, of which *truth* is told at the end."""
    parts = truth.replace(",", "").split()
    if fault == "slow-server":
        return [f"ubscriber {parts[2]}"]
    if fault == "dead-router":
        return [f"Router {parts[6]} is absent"]
    if fault == "flapping-link":
        link = " ".join(parts[2:5])
        return [f"link {link} is absent", f"ink {link} comes and goes"]
    return [f"Client {parts[2]} ("]


def play(example: ModuleType, fault: str, rng: random.Random) -> None:
    """Stage one fault, and print when who has named it."""
    wired = rng.choice(example.LINKS) if fault == "flapping-link" else None
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        mesh = example.Mesh(folder, wired, rng)
        stack.callback(lambda: trio.run(stop, list(mesh.routers.values())))
        if mesh.wire is not None:
            stack.callback(mesh.wire.cut)
        mesh.wait_converged()
        mesh.attach_clients()
        browsers = {}
        for router, port in mesh.consoles.items():
            (folder / f"browser-{router}").mkdir()
            browsers[router] = stack.enter_context(Browser(folder / f"browser-{router}"))
            browsers[router].open(f"http://{example.HOST}:{port}/")
        time.sleep(SETTLED_S)
        begun = time.time()
        truth, course = example.FAULTS[fault](mesh, rng)
        print(truth)
        words = words_of(fault, truth)
        for browser in browsers.values():
            browser.run(WATCH % words)
        for pause_s in course:
            time.sleep(pause_s)
            if time.time() - begun > MOST_S / 2:
                break
        for router, browser in browsers.items():
            if not mesh.routers[router].is_alive:
                continue
            for each in words:
                try:
                    browser.wait(f"window.named[{each!r}]", max(0.1, MOST_S - (time.time() - begun)))
                except BrowserError:
                    print(f"  {router}: not within {MOST_S:g} s: {each}")
                    continue
                at, told = browser.run(f"window.named[{each!r}]")
                print(f"  {router}: {at - begun:.1f} s: {told.splitlines()[0]}", flush=True)


def main(rounds: int) -> None:
    """Measure and print."""
    example = staging()
    for number in range(rounds):
        for fault in example.FAULTS:
            play(example, fault, random.Random(number))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
