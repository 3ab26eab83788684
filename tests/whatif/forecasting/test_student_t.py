"""Standard errors of Student's t, by the tables of textbooks."""

from __future__ import annotations

from statistics import NormalDist

import pytest

from router.whatif.forecasting.student_t import t_of_confidence


@pytest.mark.parametrize(
    ("confidence", "freedom", "expected"),
    [
        (0.9, 1, 6.3138), (0.9, 2, 2.9200), (0.9, 3, 2.3534), (0.9, 10, 1.8125), (0.95, 4, 2.7764), (0.95, 5, 2.5706),
        (0.99, 1, 63.657), (0.99, 6, 3.7074), (0.5, 7, 0.7111), (0.999, 9, 4.7809),
    ],
)  # fmt: skip
def test_it_is_that_of_the_tables(confidence: float, freedom: int, expected: float) -> None:
    assert t_of_confidence(confidence, freedom) == pytest.approx(expected, rel=1e-4)


def test_with_many_degrees_of_freedom_it_is_the_normal_distribution() -> None:
    assert t_of_confidence(0.9, 5000) == pytest.approx(NormalDist().inv_cdf(0.95), rel=1e-3)
