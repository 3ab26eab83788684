"""The messages of one link, counted."""

from __future__ import annotations


class LinkCounters:
    """Messages of one link since it was attached."""

    __slots__ = ("accepted", "deliveries", "dropped", "modified", "presettled", "rejected", "released")

    def __init__(self) -> None:
        self.deliveries = self.presettled = self.dropped = 0
        self.accepted = self.rejected = self.released = self.modified = 0

    def add(self, other: LinkCounters) -> None:
        """Count the messages of another link too."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
