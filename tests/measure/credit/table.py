"""The table that `tox -e credit` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

from tests.helpers import tables
from tests.measure.credit.stand import Row

VERDICTS = {True: ("met", "green"), False: ("NOT MET", "bold red"), None: ("", "")}


def show(rows: Sequence[Row], titles: Mapping[int, str]) -> None:
    """Print the table and a line that sums it up; *titles* by number of figure."""
    table = tables.table(first="figure")
    for title in ("measured", "wanted", ""):
        table.add_column(title, overflow="fold")
    last = 0
    for row in rows:
        if row.figure != last:
            last = row.figure
            table.add_row(Text(f"{row.figure}. {titles[row.figure]}", style="bold"))
        verdict, style = VERDICTS[row.is_met]
        table.add_row(Text(f"   {row.what}"), Text(row.measured), Text(row.wanted), Text(verdict, style=style))
    failed = sum(row.is_met is False for row in rows)
    asked = sum(row.is_met is not None for row in rows)
    console = tables.console()
    console.print(table)
    console.print(f"{asked - failed} of {asked} met, {len(rows) - asked} reported only")
