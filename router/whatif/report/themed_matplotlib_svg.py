"""Pictures as SVG that takes its colors from the page, so that one picture is right on a light and on a dark one.

matplotlib draws with stand-in colors; in the finished SVG these become names of the page's colors (`var(--ink)`). What
matplotlib adds for files (metadata, sizes, fonts of this machine) is taken out.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs
import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

LIGHT: Final = {
    "paper": "#ffffff",
    "card": "#f5f7f9",
    "ink": "#1b2733",
    "soft": "#566370",
    "faint": "#8a97a3",
    "line": "#d5dce2",
    "one": "#1f6f9b",
    "two": "#b45f06",
    "three": "#5b8c2a",
    "good": "#2c7a3f",
    "fair": "#95600a",
    "bad": "#c0312b",
    "load-0": "#b9cfdd",
    "load-1": "#86b2cc",
    "load-2": "#4f8fb5",
    "load-3": "#c99a2e",
    "load-4": "#cf6a26",
    "load-5": "#b3202a",
}
"""Colors of a page by their names, on a light ground, ..."""
DARK: Final = {
    "paper": "#12181e",
    "card": "#1b242c",
    "ink": "#e4eaef",
    "soft": "#a3b0bc",
    "faint": "#74828f",
    "line": "#34414d",
    "one": "#6cb6e0",
    "two": "#f0a24b",
    "three": "#a5cf6b",
    "good": "#6fcf87",
    "fair": "#e3b341",
    "bad": "#ff7b72",
    "load-0": "#30485a",
    "load-1": "#3c6a87",
    "load-2": "#55a0cc",
    "load-3": "#d8b04a",
    "load-4": "#f08c45",
    "load-5": "#ff6b70",
}
"""... and on a dark one."""

STAND_INS: Final = {
    "ink": "#0f0f01",
    "faint": "#0f0f02",
    "line": "#0f0f03",
    "paper": "#0f0f04",
    "one": "#0f0f11",
    "two": "#0f0f12",
    "three": "#0f0f13",
    "bad": "#0f0f14",
    "load-0": "#0f0f20",
    "load-1": "#0f0f21",
    "load-2": "#0f0f22",
    "load-3": "#0f0f23",
    "load-4": "#0f0f24",
    "load-5": "#0f0f25",
}
"""Names of the page's colors, and what matplotlib draws with instead."""
INK: Final = STAND_INS["ink"]
FAINT: Final = STAND_INS["faint"]
LINE: Final = STAND_INS["line"]
PAPER: Final = STAND_INS["paper"]
ONE: Final = STAND_INS["one"]
TWO: Final = STAND_INS["two"]
THREE: Final = STAND_INS["three"]
BAD: Final = STAND_INS["bad"]

FONT_PX: Final = 10.5

STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",  # text stays text: it can be read aloud, searched, and is small
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": FONT_PX,
    "text.color": INK,
    "text.parse_math": False,  # names may have a $
    "axes.edgecolor": LINE,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.labelsize": FONT_PX,
    "axes.unicode_minus": False,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": FONT_PX,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "figure.dpi": 72,
    "path.simplify": True,
}


@attrs.frozen(kw_only=True)
class CaptionedPicture:
    """A picture for a page."""

    name: str
    """A word, different for each picture of a page."""
    title: str
    caption: str
    """Caption: what is to be seen in it, for readers who see it and those who do not."""
    svg: str
    is_wide: bool = False
    """Whether a small window moves over it, since its letters would be too small there."""
    legend: tuple[tuple[str, float, str], ...] = ()
    """Legend that the page shows beside it, where letters stay readable: name of a color, width in pixels, words."""


@contextmanager
def figure(width: float, height: float) -> Iterator[Figure]:
    """Begin an empty figure; draw in it, then call `svg_of` before leaving.

    Args:
        width: pixels.
        height: pixels.
    """
    with mpl.rc_context(STYLE):
        made = Figure(figsize=(width / 72, height / 72))
        FigureCanvasSVG(made)
        yield made


def svg_of(made: Figure, name: str, title: str) -> str:
    """The figure as an SVG element for a page with other pictures in it."""
    file = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        made.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _for_page(file.getvalue(), name, title)


def style_of_colors() -> str:
    """The page's colors as CSS: the dark ones where the reader's device is set to dark."""
    light, dark = (" ".join(f"--{name}: {color};" for name, color in colors.items()) for colors in (LIGHT, DARK))
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"


def standing_alone(svg: str) -> str:
    """A picture as a file of its own: light colors on white, whatever shows it."""
    found = re.sub(r"var\(--([a-z0-9-]+)\)", lambda match: LIGHT[match[1]], svg)
    head, bracket, body = found.partition(">")
    ground = f'<rect width="100%" height="100%" fill="{LIGHT["paper"]}"/>'
    head = head.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" ', 1)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{head}{bracket}{ground}{body}\n'


_COLORS: Final = {color: f"var(--{name})" for name, color in STAND_INS.items()}
_COLOR: Final = re.compile("|".join(_COLORS))
_FONT: Final = re.compile(r"font-family: [^;\"]*|font: (?P<size>[0-9.]+px) [^;\"]*")
_ID: Final = re.compile(r"(?P<before> id=\"|href=\"#|url\(#)(?P<id>[^\")]+)")
_USELESS: Final = re.compile(r"<metadata>.*?</metadata>|<style type=\"text/css\">.*?</style>| *<!--.*?-->\n", re.DOTALL)
_OPENING: Final = re.compile(r"<svg .*?viewBox=\"(?P<box>[^\"]*)\"[^>]*>", re.DOTALL)
_EMPTY_GROUP_ID: Final = re.compile(r"<g id=\"[^\"]*\">")


def _for_page(text: str, name: str, title: str) -> str:
    body = text[text.index("<svg") :]
    body = _USELESS.sub("", body)
    body = _EMPTY_GROUP_ID.sub("<g>", body)
    # Ids are unique in a picture only; a page has several.
    body = _ID.sub(lambda match: f"{match['before']}{name}-{match['id']}", body)
    body = _COLOR.sub(lambda match: _COLORS[match[0]], body)
    body = _FONT.sub(lambda match: f"font-size: {match['size']}" if match["size"] else "font-family: inherit", body)
    body = body.replace("xlink:href", "href")
    head = _OPENING.search(body)
    assert head is not None
    width, height = head["box"].split()[2:]
    opening = (
        f'<svg viewBox="{head["box"]}" width="{width}" height="{height}" role="img" aria-label="{html.escape(title)}"'
        f' style="max-width:{width}px">'
    )
    return opening + body[head.end() :].strip()
