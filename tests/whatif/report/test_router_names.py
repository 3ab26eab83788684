"""Names of routers in a picture: each can be read, wherever the routers are."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from router.whatif.formats.importer import import_model
from router.whatif.report.router_names import Floats, name_places
from router.whatif.report.router_positions import positions

EDGES = np.array([0.0, 0.0, 940.0, 700.0])
EXAMPLE = Path(__file__).parents[3] / "examples" / "what-if" / "Geant2012.graphml"
NOTHING = np.empty((0, 2))


def boxes(
    points: Floats, names: list[str], *, radius: float = 3.5, links: Floats | None = None, crosses: Floats = NOTHING
) -> list[Floats]:
    places = name_places(
        dict(enumerate(names)),
        points,
        [radius] * len(points),
        links=np.empty((0, 2, 2)) if links is None else links,
        crosses=crosses,
        edges=EDGES,
    )
    return [places[at].box(points[at], name) for at, name in enumerate(names)]


def are_apart(one: Floats, other: Floats) -> bool:
    return bool((one[:2] >= other[2:]).any() or (one[2:] <= other[:2]).any())


def around(point: Floats, radius: float) -> Floats:
    return np.concatenate([point - radius, point + radius])


@pytest.mark.parametrize("away", [(9.0, 0.0), (9.0, -2.0), (0.0, 9.0), (5.0, 5.0)])
def test_names_of_neighbors_cover_neither_each_other_nor_a_mark(away: tuple[float, float]) -> None:
    points = np.array([[100.0, 100.0], [100.0 + away[0], 100.0 + away[1]]])
    found = boxes(points, ["AT", "SK"])
    assert are_apart(*found)
    for box in found:
        assert all(are_apart(box, around(point, 3.5)) for point in points)


@pytest.mark.parametrize("radius", [1.0, 3.5, 8.0])
def test_a_name_stands_beside_the_mark_of_its_router_however_large(radius: float) -> None:
    (box,) = boxes(np.array([[100.0, 100.0]]), ["DK"], radius=radius)
    assert are_apart(box, around(np.array([100.0, 100.0]), radius))


def test_a_name_covers_no_cross_and_no_link_where_it_can() -> None:
    point = np.array([100.0, 100.0])
    link = np.array([[point, [200.0, 150.0]]])
    (box,) = boxes(point[None], ["LT"], links=link, crosses=np.array([[110.0, 90.0]]))
    assert are_apart(box, around(np.array([110.0, 90.0]), 4.0))
    assert box[1] < 100 or box[2] < 100, "not on the side to which the link leads"


@pytest.mark.parametrize("point", [(2.0, 350.0), (938.0, 350.0), (470.0, 2.0), (470.0, 698.0), (938.0, 698.0)])
def test_a_name_stays_in_the_picture(point: tuple[float, float]) -> None:
    (box,) = boxes(np.array([point]), ["Frankfurt"])
    assert (box[:2] >= EDGES[:2]).all()
    assert (box[2:] <= EDGES[2:]).all()


def test_on_the_map_of_the_tutorial_every_name_can_be_read() -> None:
    model, _ = import_model(EXAMPLE)
    points = positions(model)
    points = 20 + (points - points.min(axis=0)) * 640 / np.ptp(points, axis=0).max()
    found = boxes(points, [router.id for router in model.routers])
    assert len(found) == 40
    assert all(are_apart(one, other) for one, other in combinations(found, 2))
    assert all(are_apart(box, around(point, 3.5)) for box in found for point in points)
