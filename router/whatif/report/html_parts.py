"""Parts of an HTML page: tables that can be sorted, sections, figures. All text is escaped here and nowhere else."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from router.whatif.report.svg_drawing import Picture
from router.whatif.report.verdicts import Verdict


def escaped(text: object) -> str:
    """Text as it may stand in an element or in an attribute."""
    return html.escape(str(text), quote=True)


@attrs.frozen
class Column:
    """A column of a table."""

    title: str
    value: Callable[[Any], object]
    """Value that a row has there; numbers are sorted as such. None: nothing."""
    text: Callable[[Any], str] = str
    """A value as it is shown."""
    is_number: bool = True
    is_long: bool = False
    """Whether it has sentences rather than names."""


def name(title: str, value: Callable[[Any], object], *, is_long: bool = False) -> Column:
    """A column of names."""
    return Column(title, value, is_number=False, is_long=is_long)


def table(caption: str, columns: Sequence[Column], rows: Sequence[Any], *, most: int, source: str) -> str:
    """A table with its caption.

    Args:
        rows: in the order in which they are first shown.
        most: rows that are shown.
        source: the table of the run that has all rows.
    """
    head = "".join(f'<th scope="col"{_kind(column)}>{escaped(column.title)}</th>' for column in columns)
    body = "".join(f"<tr>{''.join(_cell(column, row) for column in columns)}</tr>\n" for row in rows[:most])
    more = ""
    if len(rows) > most:
        more = f" The first {most:,} of {len(rows):,}; table <code>{escaped(source)}</code> of the run has all."
    return (
        f'<div class="table" role="region" tabindex="0" aria-label="{escaped(caption)}">\n'
        f"<table><caption><span>{escaped(caption)}{more}</span></caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}</tbody></table></div>\n"
    )


def _kind(column: Column) -> str:
    return ' class="number"' if column.is_number else ' class="long"' if column.is_long else ""


def _cell(column: Column, row: Any) -> str:
    value = column.value(row)
    if value is None:
        return f"<td{_kind(column)}>-</td>"
    if not column.is_number:
        return f"<td{_kind(column)}>{escaped(value)}</td>"
    return f'<td class="number" data-value="{escaped(value)}">{escaped(column.text(value))}</td>'


def section(topic: str, title: str, parts: Iterable[str]) -> str:
    """A section with a heading that can be linked to."""
    return (
        f'<section id="{escaped(topic)}" aria-labelledby="{escaped(topic)}-heading">\n'
        f'<h2 id="{escaped(topic)}-heading">{escaped(title)}</h2>\n{"".join(parts)}</section>\n'
    )


def paragraph(text: str) -> str:
    """Plain text."""
    return f"<p>{escaped(text)}</p>\n"


def hint(text: str, *, command: str) -> str:
    """Hint at what a command does: the command, then the text."""
    return f"<p><code>{escaped(command)}</code> {escaped(text)}</p>\n"


def figure(picture: Picture) -> str:
    """A picture with its caption below."""
    return (
        f'<figure id="{escaped(picture.name)}-picture"><h3>{escaped(picture.title)}</h3>\n{picture.svg}\n'
        f"{_legend(picture)}<figcaption>{escaped(picture.caption)}</figcaption></figure>\n"
    )


def _legend(picture: Picture) -> str:
    if not picture.legend:
        return ""
    items = "".join(
        f'<li><span style="background: var(--{color}); height: {width}px"></span>{escaped(words)}</li>'
        for color, width, words in picture.legend
    )
    return f'<ul class="legend">{items}</ul>\n'


def beside(figures: Iterable[str]) -> str:
    """Figures beside each other, where there is room."""
    inside = "".join(figures)
    return f'<div class="pictures">\n{inside}</div>\n' if inside else ""


def cards(verdicts: Sequence[Verdict]) -> str:
    """Findings, each with a link to its section."""
    return f'<ul class="cards">\n{"".join(map(_card, verdicts))}</ul>\n'


SIGNS = {"good": "\N{CHECK MARK}", "fair": "!", "bad": "\N{MULTIPLICATION SIGN}", "plain": ""}
"""Signs for what colors say, for those who do not see them."""


def _card(verdict: Verdict) -> str:
    sign = SIGNS[verdict.state]
    mark = f'<span class="sign" role="img" aria-label="{verdict.state}">{sign}</span> ' if sign else ""
    return (
        f'<li class="{verdict.state}"><a href="#{escaped(verdict.topic)}">{escaped(verdict.label)}</a>'
        f"<strong>{mark}{escaped(verdict.value)}</strong><span>{escaped(verdict.note)}</span></li>\n"
    )
