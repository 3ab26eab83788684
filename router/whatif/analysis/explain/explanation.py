"""Parts of an explanation: sentences, small tables, and what a picture of it shows."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen(kw_only=True)
class Listing:
    """A small table."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    """Texts, numbers, and None where nothing is known."""


@attrs.frozen(kw_only=True)
class PictureHighlights:
    """Marks that set something off in a picture of the mesh."""

    utilisation: Mapping[str, float] = attrs.field(factory=dict)
    """Utilisation of links as a share, by link id."""
    failed_links: frozenset[str] = frozenset()
    failed_routers: frozenset[str] = frozenset()
    marked_links: frozenset[str] = frozenset()
    marked_routers: frozenset[str] = frozenset()
    path: tuple[str, ...] = ()
    """Links of a path as it is now."""
    old_path: tuple[str, ...] = ()
    """Links of the path before something failed."""


@attrs.frozen(kw_only=True)
class Explanation:
    """All that is said of one thing."""

    title: str
    sentences: tuple[str, ...]
    listings: tuple[Listing, ...] = ()
    marks: PictureHighlights = PictureHighlights()

    def noting(self, sentence: str) -> Explanation:
        """Explanation with another sentence at its end."""
        return attrs.evolve(self, sentences=(*self.sentences, sentence))

    def plain(self) -> dict[str, object]:
        """Explanation as plain values for JSON."""
        return {
            "title": self.title,
            "sentences": list(self.sentences),
            "tables": [
                {"title": each.title, "rows": [dict(zip(each.columns, row, strict=True)) for row in each.rows]}
                for each in self.listings
            ],
        }
