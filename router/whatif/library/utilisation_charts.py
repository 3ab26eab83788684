"""Charts of utilisation over many failures: how many load a link so much, and which link in which failure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from numpy.typing import NDArray

from router.whatif.analysis.scenario_outcomes import Outcomes
from router.whatif.formats.parquet_file import read_matching
from router.whatif.library.worst_utilisation_chart import shortened
from router.whatif.pipeline.table_files import files_of, partition_of
from router.whatif.pipeline.table_layouts import SCENARIO_LOAD
from router.whatif.report.pictures import CLASS_COLORS, CLASSES, WIDE, WIDTH, curve_styles, falling, largest
from router.whatif.report.run_facts import Facts, LinkFacts
from router.whatif.report.single_failures import STEPS
from router.whatif.report.themed_matplotlib_svg import INK, PAPER, CaptionedPicture, figure, svg_of
from router.whatif.wording import BASE, counted, failure_of

SIDE: Final = 20
"""Links and failures of the heat map, at most."""
_COLUMNS: Final = ("scenario", "link", "src", "utilisation")


def utilisations(facts: Facts) -> CaptionedPicture | None:
    """Draw how busy the busiest link is in how many scenarios, by family: a survival curve.

    None when no failure leaves load on a link.
    """
    curves = falling(facts, "max_utilisation")
    if not curves:
        return None
    title = "Utilisation of the busiest link, by scenario"
    with figure(WIDTH, 300) as made:
        axes = made.add_axes((0.13, 0.15, 0.84, 0.70))
        for (name, (rank, value)), (color, dash) in zip(largest(curves), curve_styles(), strict=False):
            axes.step(rank, 100 * value, where="pre", color=color, linestyle=dash, label=name)
        axes.axhline(100 * facts.base["max_utilisation"], color=INK, linewidth=1, linestyle=(0, (4, 2)))
        axes.set_xscale("log")
        axes.set_xlim(left=1)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_xlabel("scenarios, the worst first")
        axes.set_ylabel(
            "percent of capacity" if facts.has_capacities else ("percent of the busiest link in the base state")
        )
        made.legend(loc="upper right", ncols=3, handlelength=2.4)
        svg = svg_of(made, "utilisations", title)
    left_out = len(curves) - len(curve_styles())
    caption = (
        "Number of scenarios of each family in which some link is at least this busy; the broken line is "
        "the base state."
    ) + (f" Without the {left_out} families in which it is least busy." if left_out > 0 else "")
    return CaptionedPicture(name="utilisations", title=title, caption=caption, svg=svg)


def heat(facts: Facts, folder: Path) -> CaptionedPicture | None:
    """Draw the utilisation of the links with the worst worst cases in the failures that load a link the most.

    Args:
        facts: of the run.
        folder: of it.
    Returns: the picture; None when the run has no table of loads by scenario, or nothing to show.
    """
    numbers = [row["scenario"] for row in facts.harms if row["measure"] == "max_utilisation"][:SIDE]
    links = [link for link in facts.links if link.worst_utilisation > 0][:SIDE]
    if not numbers or not links or not (folder / SCENARIO_LOAD.name).is_dir():
        return None
    values = _cells(folder, links, numbers)
    rows = Outcomes.read(folder).of_numbers(numbers)
    names = [shortened(failure_of(row)) for row in rows]
    is_down = np.array([[_is_down(link, row) for row in rows] for link in links])
    title = "Links by failure"
    height = 190 + 20 * len(links)
    with figure(WIDE, height) as made:
        axes = made.add_axes((0.26, 140 / height, 0.72, 20 * len(links) / height))
        classes = np.searchsorted(STEPS, values)
        colors = ListedColormap(CLASS_COLORS)
        axes.pcolormesh(classes, cmap=colors, vmin=-0.5, vmax=len(CLASSES) - 0.5, edgecolors=PAPER, linewidth=1)
        down, across = np.nonzero(is_down)
        axes.plot(across + 0.5, down + 0.5, linestyle="none", marker="x", color=INK, markersize=5)
        axes.set_xticks(np.arange(len(numbers)) + 0.5, names, rotation=60, ha="right", rotation_mode="anchor")
        axes.set_yticks(np.arange(len(links)) + 0.5, [_direction(link) for link in links])
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.tick_params(length=0)
        used = np.unique(classes).tolist()
        handles = [Patch(color=CLASS_COLORS[at], label=CLASSES[at]) for at in used]
        made.legend(handles=handles, loc="upper right", ncols=len(used))
        svg = svg_of(made, "heat", title)
    caption = (
        f"The {counted(len(links), 'link')} with the highest worst cases, in the {counted(len(numbers), 'failure')} "
        "that load a link the most; a cross is a link that is down."
    )
    return CaptionedPicture(name="heat", title=title, caption=caption, svg=svg)


def _cells(folder: Path, links: list[LinkFacts], numbers: list[int]) -> NDArray[np.float64]:
    """Utilisation of each link in each scenario; what isn't listed is as without a failure."""
    row = {(link.link, link.src): at for at, link in enumerate(links)}
    column = {number: at for at, number in enumerate(numbers)}
    values = np.repeat([[link.base_utilisation] for link in links], len(numbers), axis=1)
    for each in _loads(folder, numbers).to_pylist():
        at = row.get((each["link"], each["src"]))
        if at is not None:
            values[at, column[each["scenario"]]] = each["utilisation"]
    return values


def _loads(folder: Path, numbers: list[int]) -> pa.Table:
    """Rows of some scenarios of the mesh as it is."""
    place = folder / SCENARIO_LOAD.name
    files = [
        file for file in files_of(folder, SCENARIO_LOAD.name) if partition_of(file, place).get("variant", BASE) == BASE
    ]
    wanted = [("scenario", "in", numbers)]
    parts = [read_matching(file, wanted, _COLUMNS) for file in files]
    schema = pa.schema([SCENARIO_LOAD.schema.field(name) for name in _COLUMNS])
    return pa.concat_tables([part.cast(schema) for part in parts]) if parts else schema.empty_table()


def _is_down(link: LinkFacts, row: Mapping[str, Any]) -> bool:
    return link.link in row["failed_links"] or not {link.src, link.dst}.isdisjoint(row["failed_routers"])


def _direction(link: LinkFacts) -> str:
    return shortened(f"{link.link}, {link.src} \N{RIGHTWARDS ARROW} {link.dst}")
