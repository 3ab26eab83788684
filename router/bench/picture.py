"""Picture of what was measured: a row of bars for each case, and its latency beside it. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure

WIDTH_IN: Final = 11.0
BAR_IN: Final = 0.22
COLORS: Final = ("#9aa5b1", "#1f6f8b", "#3aa17e", "#99c24d", "#f18f01", "#c73e1d", "#6a4c93")


def draw(found: Mapping[str, Any], file: str) -> None:
    """Draw a document with figures, see `json_report.document`, into a .png or .svg."""
    figures = found["figures"]
    names = list(dict.fromkeys(one["case"] for one in figures))
    paths = list(dict.fromkeys(one["path"] for one in figures))
    with mpl.rc_context({"svg.hashsalt": "amqp-mesh", "font.size": 9}):
        picture = Figure(figsize=(WIDTH_IN, 1.4 + BAR_IN * len(paths) * len(names) * 1.2), layout="constrained")
        left, right = picture.subplots(1, 2, sharey=True)
        latency = "latency, us: p50 as a bar, p99 as a line"
        for axes, title, key in ((left, "share of direct", "share"), (right, latency, "p50_us")):
            _bars(axes, figures, names, paths, key)
            axes.set_title(title, loc="left")
            axes.spines[["top", "right"]].set_visible(False)
        right.set_xscale("log")
        left.set_yticks(range(len(names)), names)
        left.set_ylim(len(names) - 0.5, -0.5)
        picture.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=len(paths), frameon=False)
        picture.suptitle(_caption(found), x=0.01, ha="left", fontsize=9, color="#555555")
        picture.savefig(file, dpi=120)


Rows = Sequence[Mapping[str, Any]]


def _bars(axes: Any, figures: Rows, names: Sequence[str], paths: Sequence[str], key: str) -> None:
    height = 0.8 / len(paths)
    for at, path in enumerate(paths):
        rows = [one for one in figures if one["path"] == path and one[key] is not None]
        places = [names.index(one["case"]) - 0.4 + height * (at + 0.5) for one in rows]
        color = COLORS[at % len(COLORS)]
        axes.barh(places, [one[key] for one in rows], height * 0.9, color=color, label=path)
        for place, one in zip(places, rows, strict=True):
            if key == "share":
                axes.text(one[key], place, f" {one['per_s']:,.0f}/s", va="center", fontsize=7)
            elif one["p99_us"] is not None:
                axes.plot([one[key], one["p99_us"]], [place, place], color=color, linewidth=1)


def _caption(found: Mapping[str, Any]) -> str:
    programs, machine = found["programs"], found["machine"]
    return (
        f"amqp-mesh {programs['amqp-mesh']} ({programs['speed']}), {programs['python']}; "
        f"{machine['processors']} x {machine['processor']}; {found['plan']['rounds']} rounds"
    )
