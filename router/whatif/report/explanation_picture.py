"""A picture of a mesh as a file of its own, for what is explained."""

from __future__ import annotations

from pathlib import Path

from router.whatif.analysis.explain import Explanation
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.atomic_files import write_atomically
from router.whatif.report.pictures import draw_mesh
from router.whatif.report.themed_matplotlib_svg import standing_alone


def write_picture(explanation: Explanation, model: Model, file: Path) -> None:
    """Write `mesh_svg` into a file, which appears whole or not at all.

    Raises: OSError, which names *file*.
    """
    write_atomically(file, mesh_svg(explanation, model).encode())


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
