"""Real Chromium without a window: a page as it is in the browser, and what the browser had to say about it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import attrs

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
    "--disable-dev-shm-usage", "--enable-logging=stderr",
)  # fmt: skip
LIMIT_S = 90
# On a console: errors and warnings of scripts and of the content security policy.
CONSOLE = re.compile(r"CONSOLE[:(].*")


@attrs.frozen(kw_only=True)
class Page:
    """What a browser made of a file."""

    dom: str
    console: tuple[str, ...]


def command() -> str:
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    assert found, "no Chromium: scripts/test installs it, and Debian's package is `chromium`"
    return found


def opened(file: Path, folder: Path, *, width: int = 1280, is_dark: bool = False) -> Page:
    """The DOM of *file* after its scripts have run; *folder* is for the browser's own files."""
    profile = folder / f"profile-{file.stem}-{width}-{is_dark}"
    flags = [f"--user-data-dir={profile}", f"--window-size={width},900", "--virtual-time-budget=2000", "--dump-dom"]
    if is_dark:
        flags.append("--blink-settings=preferredColorScheme=0")
    done = subprocess.run(
        [command(), *QUIET, *flags, file.as_uri()], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    shutil.rmtree(profile, ignore_errors=True)
    return Page(dom=done.stdout, console=tuple(CONSOLE.findall(done.stderr)))


FRAME = """<!doctype html><meta name="color-scheme" content="light dark"><body>
<script>
addEventListener("message", (message) => {
  const box = document.createElement("pre");
  box.id = "probe";
  box.textContent = message.data;
  document.body.append(box);
});
</script>
<iframe src="%s" style="width: %dpx; height: 900px; border: 0"></iframe>"""
"""A window is never narrower than 500 pixels; a frame in it can be."""


def probed(file: Path, folder: Path, script: str, *, width: int = 1280, is_dark: bool = False) -> Any:
    """What *script*, the body of a function, returns in the page; as JSON.

    The page forbids scripts but its own, so a copy without that rule is opened.
    """
    text = file.read_text(encoding="utf-8")
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    probe = f"<script>parent.postMessage(JSON.stringify((() => {{{script}}})()), '*')</script>"
    copy, frame = folder / f"probe-{width}-{is_dark}.html", folder / f"frame-{width}-{is_dark}.html"
    copy.write_text(text.replace("</body>", f"{probe}</body>"), encoding="utf-8")
    frame.write_text(FRAME % (copy.name, width), encoding="utf-8")
    page = opened(frame, folder, width=width + 100, is_dark=is_dark)
    assert not page.console, page.console
    match = re.search(r'<pre id="probe">(.*?)</pre>', page.dom, re.DOTALL)
    assert match, page.dom[-2000:]
    return json.loads(match[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
