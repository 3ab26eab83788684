"""Screens that renew themselves: what is left on a terminal in the end."""

from __future__ import annotations

import itertools
import os
import pty
import re
import sys
import threading

import pytest
from rich.text import Text

from router.cli.live_screen import Looking, ScreenFrame, watch
from router.cli.management_errors import ManagementError
from tests.helpers.terminal import written_to

SCREEN_LEFT = "\x1b[?1049l"
"""With what a terminal goes back to what it showed before."""


def shown_on_terminal(look: Looking, looks: int, monkeypatch: pytest.MonkeyPatch) -> str:
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
    text = shown_on_terminal(lambda _: ScreenFrame([Text(f"look {next(numbers)}")]), looks, monkeypatch)
    _, left, after = text.rpartition(SCREEN_LEFT)
    assert left
    assert f"look {looks}\r\n" in after


def test_it_stays_after_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = itertools.count(1)

    def look(_: int) -> ScreenFrame:
        if (number := next(numbers)) == 3:
            raise KeyboardInterrupt
        return ScreenFrame([Text(f"look {number}")])

    assert "look 2\r\n" in shown_on_terminal(look, 5, monkeypatch).rpartition(SCREEN_LEFT)[2]


FIRST = ScreenFrame([Text("Error: B does not answer"), Text("a row")], is_whole=False)
GONE = ManagementError("gone")


def looking(*looks: ScreenFrame | ManagementError) -> Looking:
    """Give one look behind the other."""
    left = iter(looks)

    def look(_: int) -> ScreenFrame:
        if isinstance(found := next(left), ManagementError):
            raise found
        return found

    return look


def test_a_look_that_fails_repeats_no_rows_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert not watch(looking(FIRST, GONE, GONE), interval_s=0, looks=3)
    looks = re.split(r"-- \d\d:\d\d:\d\d\n", capsys.readouterr().out)
    assert looks == ["", "Error: B does not answer\na row\n", *2 * ["Error: gone\n"]]


def test_on_a_terminal_what_was_seen_last_says_when(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown_on_terminal(looking(ScreenFrame([Text("a row")]), GONE, GONE), 3, monkeypatch)
    left = text.rpartition(SCREEN_LEFT)[2]
    assert re.search(r"Error: gone.*\r\n.*Seen last at \d\d:\d\d:\d\d:\r\na row\r\n$", left)
    assert left.count("Seen last") == 1


def test_a_program_is_told_of_a_look_that_fails_in_its_form(capsys: pytest.CaptureFixture[str]) -> None:
    is_whole = watch(
        looking(ScreenFrame([Text("[1]")]), GONE), interval_s=0, looks=2, in_plain=lambda error: Text(f'["{error}"]')
    )
    assert not is_whole
    assert capsys.readouterr().out == '[1]\n["gone"]\n'


@pytest.mark.parametrize(
    ("looks", "is_whole"),
    [
        ((ScreenFrame([]),), True),
        ((FIRST,), False),
        ((FIRST, ScreenFrame([])), True),
        ((ScreenFrame([]), FIRST), False),
        ((ScreenFrame([]), GONE), False),
        ((ScreenFrame([]), GONE, ScreenFrame([])), True),
    ],
)
def test_the_last_look_tells_whether_all_answered(
    looks: tuple[ScreenFrame | ManagementError, ...], is_whole: bool
) -> None:
    assert watch(looking(*looks), interval_s=0, looks=len(looks)) is is_whole
