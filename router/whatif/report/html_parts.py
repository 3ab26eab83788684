"""Parts of the report's page as data; `page.html` makes HTML of them, and escapes all text."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import attrs

from router.whatif.report.single_failures import SingleFailure
from router.whatif.report.themed_matplotlib_svg import CaptionedPicture


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
    of_row: Callable[[Any], str] | None = None
    """The text instead of *text*, where the value alone doesn't tell how it is to be shown."""

    def shown(self, row: Any) -> str:
        """The text of a row's value."""
        value = self.value(row)
        if value is None:
            return "-"
        return self.text(value) if self.of_row is None else self.of_row(row)


def name(title: str, value: Callable[[Any], object], *, is_long: bool = False) -> Column:
    """A column of names."""
    return Column(title, value, is_number=False, is_long=is_long)


@attrs.frozen
class Paragraph:
    """Plain text."""

    form: ClassVar = "paragraph"
    text: str
    command: str = ""
    """Stands before the text, which says what it does."""


@attrs.frozen
class Table:
    """A table with its caption, which can be sorted."""

    form: ClassVar = "table"
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Any]
    """Rows in the order in which they are first shown."""
    source: str
    """The table of the run that has all rows."""


@attrs.frozen
class PictureRow:
    """Pictures with their captions, beside each other where there is room if there are several."""

    form: ClassVar = "figures"
    pictures: Sequence[CaptionedPicture]
    are_beside: bool = False


@attrs.frozen
class Terms:
    """Words and what they stand for here."""

    form: ClassVar = "terms"
    pairs: Sequence[tuple[str, object]]


@attrs.frozen
class FailureChooser:
    """Failures that a reader may try in the picture of the mesh."""

    form: ClassVar = "chooser"
    failures: Sequence[SingleFailure]

    @property
    def data(self) -> str:
        """Words and states for the page's script, as JSON without anything that is markup."""
        text = json.dumps([[each.said, each.links] for each in self.failures])
        return text.replace("<", "\\u003c")


Part = FailureChooser | Paragraph | Table | PictureRow | Terms


@attrs.frozen
class Section:
    """A section with a heading that can be linked to."""

    topic: str
    """A word, different for each section of the page."""
    title: str
    parts: Sequence[Part]
