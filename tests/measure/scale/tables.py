"""The tables that `tox -e scale` prints."""

from __future__ import annotations

from tests.helpers import tables
from tests.measure.scale.stand import Figure, Table


def show(table: Table) -> None:
    """Print one."""
    sizes = sorted({size for figure in table.figures.values() for size in figure.values})
    rich = tables.table(*(f"{size:,}" for size in sizes), "exponent", title=table.title)
    for figure in table.figures.values():
        exponent = figure.exponent
        values = [text(figure, figure.values[size]) if size in figure.values else "" for size in sizes]
        rich.add_row(figure.what, *values, f"{exponent:.2f}" if exponent is not None else "")
    console = tables.console()
    console.print(rich)
    console.print()


def text(figure: Figure, value: float) -> str:
    """A value with its unit."""
    if figure.unit == "s":
        if abs(value) < 0.01:
            return f"{value * 1e6:,.0f} us"
        return f"{value * 1e3:,.0f} ms" if abs(value) < 10 else f"{value:,.1f} s"
    if figure.unit == "B":
        return f"{value / 1000:,.1f} kB" if value < 1e7 else f"{value / 1e6:,.0f} MB"
    if figure.unit == "x":
        return f"{value:.1f} x"
    return f"{value:,.0f}{figure.unit}"
