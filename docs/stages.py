"""Write the stages of a message into `explanation/walk-of-a-message.md`, and draw them, from the table of the program.

python docs/stages.py
"""

from __future__ import annotations

import ast
import importlib
import math
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import router

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "explanation" / "walk-of-a-message.md"
PICTURE = ROOT / "docs" / "pictures" / "stages-of-a-message.svg"
SOURCE = Path(router.__file__).parent / "dataplane" / "transfer_stages.py"
BEGIN = "<!-- Made from router/dataplane/transfer_lifecycle.py by docs/stages.py. -->\n"
END = "<!-- The end of what is made. -->\n"

Point = tuple[float, float]
BOX = (116, 40)
"""Width and height of a stage, pixels."""
APART = 11
"""Half the distance between an arrow and the one back, pixels."""
CENTRES = {
    "HOLDING": (96, 60),
    "QUEUED": (96, 190),
    "WAITING": (96, 320),
    "NEW": (350, 190),
    "STREAMING": (580, 60),
    "SENT": (580, 190),
    "STRANDED": (580, 320),
    "DONE": (790, 190),
}
"""Stages by their centres: left of `NEW` what is not under way yet, right of it what is."""
LOOPS = {"NEW": 0, "QUEUED": 34}
"""Stages that an event may leave as they are: how far to the right of their middle that is drawn."""
HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 380" width="880" height="380" role="img" \
aria-labelledby="title desc" font-family="sans-serif" font-size="13">
  <title id="title">The stages of a message</title>
  <desc id="desc">Eight stages, and the events that lead from one to the next. The event finished leads from every \
stage to DONE.</desc>
  <defs>
    <marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">\
<path d="M0 0 10 5 0 10z" fill="#1f2937"/></marker>
  </defs>
  <rect width="880" height="380" fill="#ffffff"/>
  <rect x="10" y="12" width="660" height="356" rx="8" fill="#f9fafb" stroke="#9ca3af" stroke-dasharray="4 3"/>
"""


def meanings() -> dict[str, str]:
    """What is said of each stage and each event, by its name."""
    body = ast.parse(SOURCE.read_text(encoding="utf-8")).body
    found = {}
    for node, following in pairwise(body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(following, ast.Expr):
            found[node.target.id] = " ".join(ast.literal_eval(following.value).split())
    return found


def rows(lifecycle: Any) -> list[str]:
    """A row for each stage: what it means, and what leads where; what ends every stage is said once."""
    said = meanings()
    found = []
    for stage, name in lifecycle.STAGES.items():
        leads = [
            f"{lifecycle.EVENTS[event].lower()} → {lifecycle.STAGES[to]}"
            for (at, event), to in lifecycle.TABLE.items()
            if at == stage and lifecycle.EVENTS[event] != "FINISHED"
        ]
        found.append(f"| `{name}` | {said[name]} | {'<br>'.join(leads) or '—'} |\n")
    return found


def events(lifecycle: Any) -> list[str]:
    """A row for each event."""
    said = meanings()
    return [f"| {name.lower()} | {said[name]} |\n" for name in lifecycle.EVENTS.values()]


def text() -> str:
    """What is made: two tables in Markdown."""
    lifecycle = importlib.import_module("router.dataplane.transfer_lifecycle")
    stages = "| stage | the message | event → next stage |\n|---|---|---|\n" + "".join(rows(lifecycle))
    return f"{stages}\n| event | what has happened |\n|---|---|\n{''.join(events(lifecycle))}"


def page() -> str:
    """The page as it should be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{text()}\n{END}{rest.partition(END)[2]}"


def arrows(lifecycle: Any) -> dict[tuple[str, str], str]:
    """By a stage and the next one, the events that lead there; without `FINISHED`, which is drawn once for all."""
    found: dict[tuple[str, str], str] = {}
    for (stage, event), to in lifecycle.TABLE.items():
        if lifecycle.EVENTS[event] != "FINISHED":
            ends, word = (lifecycle.STAGES[stage], lifecycle.STAGES[to]), lifecycle.EVENTS[event].lower()
            found[ends] = f"{found[ends]}, {word}" if ends in found else word
    return found


def line(shape: str) -> str:
    """A line that ends in an arrow."""
    return f'  <path d="{shape}" fill="none" stroke="#1f2937" marker-end="url(#arrow)"/>\n'


def label(at: Point, words: str) -> str:
    """The events of an arrow."""
    rim = 'stroke="#f9fafb" stroke-width="5" paint-order="stroke"'
    return f'  <text x="{at[0]:.0f}" y="{at[1]:.0f}" text-anchor="middle" font-size="12" {rim}>{words}</text>\n'


def border(centre: Point, toward: Point, shift: Point) -> Point:
    """The point at which a line that is moved by *shift* leaves the box around *centre* toward another point."""
    way = toward[0] - centre[0], toward[1] - centre[1]
    sides = zip(BOX, shift, way, strict=True)
    part = min((side / 2 - moved * math.copysign(1, by)) / abs(by) for side, moved, by in sides if by)
    return centre[0] + shift[0] + way[0] * part, centre[1] + shift[1] + way[1] * part


def arrow(begin: str, end: str, words: str, *, has_reverse: bool) -> str:
    """An arrow between two stages: beside the one back, and in a bow where another stage stands between."""
    (x, y), (to_x, to_y) = first, last = CENTRES[begin], CENTRES[end]
    middle = (x + to_x) / 2, (y + to_y) / 2
    if begin == end:
        x, y = x + LOOPS[begin], y - BOX[1] / 2
        return line(f"M{x - 18:.0f} {y:.0f}c-14 -42 50 -42 36 0") + label((x, y - 34), words)
    if middle in CENTRES.values():
        x, to_x = x + BOX[0] / 2, to_x + BOX[0] / 2
        bow = f"M{x:.0f} {y:.0f}C{x + 34:.0f} {y:.0f} {to_x + 34:.0f} {to_y:.0f} {to_x:.0f} {to_y:.0f}"
        return line(bow) + label((x + 26, middle[1] + 44), words)
    length = math.hypot(to_x - x, to_y - y)
    apart = APART if has_reverse else 0
    shift = (apart * (y - to_y) / length, apart * (to_x - x) / length)
    begins, ends = border(first, last, shift), border(last, first, shift)
    near = 0.4 if has_reverse else 0.5
    at = begins[0] + near * (ends[0] - begins[0]), begins[1] + near * (ends[1] - begins[1]) + 4
    return line(f"M{begins[0]:.0f} {begins[1]:.0f}L{ends[0]:.0f} {ends[1]:.0f}") + label(at, words)


def picture() -> str:
    """The stages as boxes, with an arrow for all events that lead from one to another: an SVG."""
    lifecycle = importlib.import_module("router.dataplane.transfer_lifecycle")
    leads = arrows(lifecycle)
    drawn = [HEAD]
    drawn += [
        arrow(begin, end, words, has_reverse=(end, begin) in leads) for (begin, end), words in sorted(leads.items())
    ]
    drawn += [line("M670 190H732"), label((700, 180), "finished")]
    for name in lifecycle.STAGES.values():
        x, y = CENTRES[name]
        fill = {"NEW": "#fde68a", "DONE": "#bbf7d0"}.get(name, "#bfdbfe")
        corner = f'x="{x - BOX[0] // 2}" y="{y - BOX[1] // 2}"'
        drawn.append(f'  <rect {corner} width="{BOX[0]}" height="{BOX[1]}" rx="6" fill="{fill}" stroke="#1f2937"/>\n')
        drawn.append(f'  <text x="{x}" y="{y + 5}" text-anchor="middle" font-weight="bold">{name}</text>\n')
    return "".join([*drawn, "</svg>\n"])


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    PAGE.write_text(page(), encoding="utf-8")
    PICTURE.write_text(picture(), encoding="utf-8")
