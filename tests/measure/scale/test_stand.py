"""The figures of scale add up."""

from __future__ import annotations

import pytest

from tests.measure.scale.stand import Figure, Table
from tests.measure.scale.tables import text


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_the_exponent_is_that_of_the_power_of_the_size(exponent: float) -> None:
    table = Table("powers")
    for size in (100, 200, 400, 800):
        table.add(size, "power", 3e-6 * size**exponent)
    assert table.figures["power"].exponent == pytest.approx(exponent)


def test_there_is_none_for_a_single_size() -> None:
    assert Figure("one", "s", {5: 1.0}).exponent is None


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (2.5e-5, "s", "25 us"),
        (0.25, "s", "250 ms"),
        (12.0, "s", "12.0 s"),
        (2500, "B", "2.5 kB"),
        (1234.5, "/s", "1,234/s"),
        (2.34, "x", "2.3 x"),
    ],
)
def test_values_have_the_unit_that_fits(value: float, unit: str, expected: str) -> None:
    assert text(Figure("x", unit), value) == expected  # type: ignore[arg-type]
