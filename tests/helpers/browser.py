"""A real Chromium without a window, driven by its own protocol over a pipe: no driver is needed.

with Browser(tmp_path) as browser:
    browser.open("http://127.0.0.1:9672/")
    browser.wait("document.querySelectorAll('.node').length === 4")
    browser.screenshot(path)
"""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

CHROMIUM = "chromium"
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage",
    "--disable-extensions", "--no-first-run", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
ANSWER_S = 60.0
LOOK_S = 0.05


class BrowserError(AssertionError):
    """The page did not become what was waited for, or a script in it failed."""


class Browser:
    """One browser with one page; a context manager that leaves none behind."""

    def __init__(self, folder: Path, *, width: int = 1400, height: int = 1000) -> None:
        """Start it, with a profile in *folder*; the window has *width* by *height* pixels."""
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        command = [CHROMIUM, *OPTIONS, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},{height}"]
        # The browser reads from descriptor 3 and writes to 4.
        script = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", *command, "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(to_read, to_write),
            start_new_session=True,
        )
        os.close(to_read)
        os.close(to_write)
        self._number = 0
        self._rest = b""
        self.events: list[dict[str, Any]] = []
        """What the browser has told of its own accord: requests, faults, lines of the console."""
        self._session = ""
        target = self._ask("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = self._ask("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            self._ask(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        os.close(self._write)  # it ends when nobody can tell it anything
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)

    # The protocol: JSON texts, each ended by a zero byte

    def _ask(self, method: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters or {}}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + ANSWER_S
        while True:
            answer = self._next(end, method)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _next(self, end: float, what: str) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._read], [], [], max(0.0, end - time.monotonic()))[0]:
                raise BrowserError(f"the browser does not answer {what}")
            data = os.read(self._read, 1 << 20)
            if not data:
                raise BrowserError(f"the browser has ended before it answered {what}")
            self._rest += data
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    # The page

    def trust_all(self) -> None:
        """Take any certificate."""
        self._ask("Security.setIgnoreCertificateErrors", {"ignore": True})

    def open(self, url: str) -> None:
        """Load a page."""
        self._ask("Page.navigate", {"url": url})
        self.wait("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self._ask("Runtime.evaluate", {"expression": script, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in found:
            raise BrowserError(f"{script}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait(self, script: str, timeout_s: float = 30.0) -> float:
        """Wait until an expression in the page is true. Returns: the seconds that it took."""
        begin = time.monotonic()
        while not self.run(f"Boolean({script})"):
            if time.monotonic() - begin > timeout_s:
                raise BrowserError(f"not within {timeout_s:g} s: {script}\n{self.run('document.body.innerText')}")
            time.sleep(LOOK_S)
        return time.monotonic() - begin

    def press(self, key: str) -> None:
        """Press a key, such as `Tab` or `Enter`."""
        text = {"Enter": "\r"}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            code = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowRight": 39}.get(key, 0)
            event = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
            self._ask("Input.dispatchKeyEvent", {**event, "text": text} if kind == "keyDown" else event)

    def accessible(self) -> list[tuple[str, str]]:
        """Role and name of everything that a screen reader finds."""
        nodes = self._ask("Accessibility.getFullAXTree")["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in nodes
            if not node.get("ignored") and "role" in node
        ]

    def size(self, width: int, height: int) -> None:
        """Give the page another size, pixels."""
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def screenshot(self, path: Path) -> None:
        """Write a PNG of what is seen."""
        path.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot", {"format": "png"})["data"]))

    def requested(self) -> list[str]:
        """Every address that the page has asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def faults(self) -> list[str]:
        """Exceptions of scripts, and errors that the browser has logged."""
        return [
            json.dumps(event["params"])
            for event in self.events
            if event.get("method") == "Runtime.exceptionThrown"
            or (event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error")
        ]
