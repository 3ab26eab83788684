"""The chart of the failures that load a link the most."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from router.whatif.analysis.scenario_outcomes import Outcomes
from router.whatif.report.pictures import WIDE
from router.whatif.report.run_facts import Facts
from router.whatif.report.themed_matplotlib_svg import BAD, INK, ONE, CaptionedPicture, figure, svg_of
from router.whatif.wording import counted, failure_of

BARS: Final = 15
_MOST_LETTERS: Final = 27
"""Maximum length of the name of a failure, and of a link."""


def failures(facts: Facts, folder: Path) -> CaptionedPicture | None:
    """Draw the highest utilisation of any link by failure, of the mesh as it is, the worst failures first.

    Failures that are equally bad come in the order of their numbers.

    Args:
        facts: of the run.
        folder: of it.
    Returns: the picture; None when no failure leaves load on a link.
    """
    worst = [row["scenario"] for row in facts.harms if row["measure"] == "max_utilisation"][:BARS]
    if not worst:
        return None
    rows = Outcomes.read(folder).of_numbers(worst)
    names = [
        f"{shortened(failure_of(row))} \N{RIGHTWARDS ARROW} {shortened(row['max_utilisation_link'])}" for row in rows
    ]
    title = "Worst utilisation by failure"
    height = 70 + 20 * len(rows)
    calm = 100 * facts.base["max_utilisation"]
    with figure(WIDE, height) as made:
        axes = made.add_axes((0.4, 34 / height, 0.57, (height - 64) / height))
        shares = [100 * row["max_utilisation"] for row in rows]
        axes.barh(np.arange(len(rows)), shares, height=0.6, color=[BAD if share > 100 else ONE for share in shares])
        axes.axvline(calm, color=INK, linewidth=1, linestyle=(0, (4, 2)), label="base state")
        axes.set_yticks(np.arange(len(rows)), names)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(left=0)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(
            "percent of capacity" if facts.has_capacities else ("percent of the busiest link in the base state")
        )
        made.legend(loc="upper right")
        svg = svg_of(made, "failures", title)
    caption = f"The {counted(len(rows), 'failure')} that load a link the most, and the link."
    return CaptionedPicture(name="failures", title=title, caption=caption, svg=svg)


def shortened(name: str) -> str:
    """A name as far as there is room for it."""
    return name if len(name) <= _MOST_LETTERS else name[: _MOST_LETTERS - 1] + "\N{HORIZONTAL ELLIPSIS}"
