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
class Picture:
    """A picture for a page."""

    name: str
    """A word, different for each picture of a page."""
    title: str
    caption: str
    """What is to be seen in it, for readers who see it and those who do not."""
    svg: str
    legend: tuple[tuple[str, float, str], ...] = ()
    """What the page shows beside it, where letters stay readable: name of a color, width in pixels, words."""


@contextmanager
def figure(width: float, height: float) -> Iterator[Figure]:
    """An empty figure, in pixels; draw in it, then call `svg_of` before leaving."""
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
