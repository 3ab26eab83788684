"""Screens that renew themselves: what is left on a terminal in the end."""

from __future__ import annotations

import itertools
import os
import pty
import sys
import threading
from collections.abc import Callable

import pytest
from rich.console import RenderableType
from rich.text import Text

from router.cli.live_screen import watch
from tests.helpers.terminal import written_to

SCREEN_LEFT = "\x1b[?1049l"
"""With what a terminal goes back to what it showed before."""


def shown_on_terminal(look: Callable[[int], list[RenderableType]], looks: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """All that `watch` writes to a terminal."""
    main, end = pty.openpty()
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(written_to(main)))
    reader.start()
    monkeypatch.setenv("TERM", "xterm-256color")
    with open(end, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        watch(look, interval_s=0, looks=looks)
        monkeypatch.undo()
    reader.join(10)
    os.close(main)
    return b"".join(read).decode()


@pytest.mark.parametrize("looks", [1, 3])
def test_the_last_look_stays_on_the_terminal(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = itertools.count(1)
    text = shown_on_terminal(lambda _: [Text(f"look {next(numbers)}")], looks, monkeypatch)
    _, left, after = text.rpartition(SCREEN_LEFT)
    assert left
    assert f"look {looks}\r\n" in after


def test_it_stays_after_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = itertools.count(1)

    def look(_: int) -> list[RenderableType]:
        if (number := next(numbers)) == 3:
            raise KeyboardInterrupt
        return [Text(f"look {number}")]

    assert "look 2\r\n" in shown_on_terminal(look, 5, monkeypatch).rpartition(SCREEN_LEFT)[2]
