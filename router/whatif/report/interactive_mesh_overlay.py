"""Links and routers of a drawn mesh as elements of their own, over the picture: to be pointed at, and colored anew."""

from __future__ import annotations

import html
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from router.whatif.model.mesh_model import Model

SPREAD_PX: Final = 3.0
"""Distance between parallel links, which else would lie on each other, pixels."""


def mesh_elements(axes: Any, height: float, points: NDArray[np.float64], model: Model) -> str:
    """Make a group of elements, links first, each with its place among them.

    Args:
        axes: axes of matplotlib, in which all has been drawn.
        height: height of the picture, pixels.
        points: positions by router.
        model: the mesh.
    """
    axes.figure.canvas.draw()
    drawn = axes.transData.transform(points)
    place = {router.id: at for at, router in enumerate(model.routers)}
    seen: dict[tuple[str, str], int] = {}
    parts = []
    for at, link in enumerate(model.links):
        number = seen[link.a, link.b] = seen.get((link.a, link.b), -1) + 1
        (x1, y1), (x2, y2) = drawn[place[link.a]], drawn[place[link.b]]
        across = np.array([y1 - y2, x2 - x1]) / max(float(np.hypot(x2 - x1, y2 - y1)), 1e-9) * SPREAD_PX * number
        ends = f'x1="{x1 + across[0]:.1f}" y1="{height - y1 - across[1]:.1f}" '
        ends += f'x2="{x2 + across[0]:.1f}" y2="{height - y2 - across[1]:.1f}"'
        title = f"<title>link {html.escape(link.id)}</title>"
        parts.append(f'<g data-place="{at}">{title}<line class="shown" {ends}/><line class="hit" {ends}/></g>')
    for at, router in enumerate(model.routers, start=len(model.links)):
        x, y = drawn[at - len(model.links)]
        center = f'cx="{x:.1f}" cy="{height - y:.1f}"'
        title = f"<title>router {html.escape(router.id)}</title>"
        circles = f'<circle class="shown" r="5" {center}/><circle class="hit" r="9" {center}/>'
        parts.append(f'<g data-place="{at}">{title}{circles}</g>')
    return f'<g class="elements" fill="none" stroke="none">{"".join(parts)}</g>'
