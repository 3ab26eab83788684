"""The mesh as a drawing of characters."""

from __future__ import annotations

from collections.abc import Collection

from rich.text import Text

Link = tuple[str, str]

_WIDTH, _HEIGHT = 34, 7
_LEFT, _RIGHT, _TOP, _BOTTOM = 11, 23, 0, 6
_CORNERS = {"A": (_LEFT, _TOP), "C": (_RIGHT, _TOP), "D": (_LEFT, _BOTTOM), "B": (_RIGHT, _BOTTOM)}
_LABELS = {"A": "server-A", "C": "caller-C", "D": "server-D\ncaller-D", "B": "caller-B"}


def _places() -> dict[Link, list[tuple[int, int, str]]]:
    flat = range(_LEFT + 2, _RIGHT - 1)
    steep = range(_TOP + 1, _BOTTOM)
    slope = (_RIGHT - _LEFT) // (_BOTTOM - _TOP)
    return {
        ("A", "C"): [(x, _TOP, "─") for x in flat],
        ("B", "D"): [(x, _BOTTOM, "─") for x in flat],
        ("A", "D"): [(_LEFT, y, "│") for y in steep],
        ("B", "C"): [(_RIGHT, y, "│") for y in steep],
        ("A", "B"): [
            (_LEFT + slope * y, y, "\N{BOX DRAWINGS LIGHT DIAGONAL UPPER LEFT TO LOWER RIGHT}") for y in steep
        ],
        ("C", "D"): [
            (_RIGHT - slope * y, y, "\N{BOX DRAWINGS LIGHT DIAGONAL UPPER RIGHT TO LOWER LEFT}") for y in steep
        ],
    }


_PLACES = _places()


def picture(routers: Collection[str], up: Collection[Link], shown: Collection[Link], cut: Link | None) -> Text:
    """Draw it.

    Args:
        routers: those that answer.
        up: links that messages take.
        shown: links to stand out: the way of some calls.
        cut: the link that was cut.
    """
    cells: dict[tuple[int, int], tuple[str, str]] = {}
    # What stands out is drawn last, over what it crosses.
    for link in sorted(_PLACES, key=lambda link: link in shown):
        style = "bold yellow" if link in shown else "green" if link in up else "dim"
        for x, y, character in _PLACES[link]:
            cells[x, y] = (character, style)
    if cut is not None:
        x, y, _ = _PLACES[cut][len(_PLACES[cut]) // 2]
        for place in _PLACES[cut]:
            cells[place[0], place[1]] = ("·", "red")
        for offset, character in enumerate(" cut "):
            cells[x - 2 + offset, y] = (character, "bold red")
    for router, (x, y) in _CORNERS.items():
        cells[x, y] = (router, "bold white on blue" if router in routers else "dim")
        for row, label in enumerate(_LABELS[router].split("\n")):
            start = x - 2 - len(label) if x == _LEFT else x + 3
            for offset, character in enumerate(label):
                cells[start + offset, y + row - _LABELS[router].count("\n")] = (character, "cyan")
    text = Text()
    for y in range(_HEIGHT):
        for x in range(_WIDTH):
            text.append(*cells.get((x, y), (" ", "")))
        text.append("\n" if y < _HEIGHT - 1 else "")
    return text
