"""A picture of a mesh as a file of its own, for what is explained."""

from __future__ import annotations

from pathlib import Path

from router.whatif.analysis.explain import Explanation
from router.whatif.model.mesh_model import Model
from router.whatif.report.pictures import draw_mesh
from router.whatif.report.themed_matplotlib_svg import standing_alone


def write_picture(explanation: Explanation, model: Model, file: Path) -> None:
    """Write `mesh_svg` into a file.

    Raises: OSError
    """
    file.write_text(mesh_svg(explanation, model), encoding="utf-8")


def mesh_svg(explanation: Explanation, model: Model) -> str:
    """An SVG file of *model* with what the explanation sets off."""
    marks = explanation.marks
    svg = draw_mesh(
        model,
        explanation.title,
        worst=marks.utilisation,
        marked_routers=marks.marked_routers,
        marked_links=marks.marked_links,
        failed_routers=marks.failed_routers,
        failed_links=marks.failed_links,
        path=marks.path,
        old_path=marks.old_path,
        marks_are_spof=False,
    )
    return standing_alone(svg)
