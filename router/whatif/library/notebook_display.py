"""Answers as a notebook shows them: HTML and SVG by the methods that IPython looks for, text elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import attrs

from router.whatif.analysis.explain import Explanation
from router.whatif.wording import cell


@attrs.frozen(kw_only=True, repr=False)
class Drawing:
    """A picture, with light colors on white."""

    title: str
    caption: str
    """Said of what is to be seen in it."""
    svg: str
    """A whole file."""

    def __repr__(self) -> str:
        return f"<Drawing {self.title!r}>"

    def _repr_svg_(self) -> str:
        return self.svg


@attrs.frozen(kw_only=True, repr=False)
class NotebookExplanation:
    """One thing explained."""

    explanation: Explanation
    drawing: Drawing
    """The mesh with what the explanation speaks of set off."""

    @property
    def text(self) -> str:
        """Title and sentences, one a line, and the tables."""
        found = self.explanation
        tables = (text_table(each.title, each.columns, each.rows) for each in found.listings)
        return "\n\n".join(["\n".join([found.title, *found.sentences]), *tables])

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        found = self.explanation
        parts = [f"<h4>{escape(found.title)}</h4>", *(f"<p>{escape(each)}</p>" for each in found.sentences)]
        parts += [html_table(each.title, each.columns, each.rows) for each in found.listings]
        return "\n".join(parts)


def text_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table below its title, in columns of equal width; what isn't known is left empty."""
    cells = [list(columns), *(list(map(cell, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)
    return "\n".join([title, *lines])


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a caption; what isn't known is left empty."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell(value))}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(title)}</caption><tr>{head}</tr>{body}</table>"
