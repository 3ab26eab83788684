"""Window of the numbers of a sequence that were seen, in bounded memory: a highest one and a bitmap of those before it.

As in the anti-replay window of IPsec (RFC 4303, 3.4.3): what lies before the window counts as seen. But a highest
number that somebody has made up would have all true ones count as seen for good. So after several in a row that lie
before the window, each higher than the one before, it begins anew with the last of them: soon if fewer than these were
seen in the window, and else, since they may be what a link held back while all of them came by another one, late.
"""

from __future__ import annotations

from typing import Final

WINDOW: Final = 2048
"""Number of sequence numbers up to the highest of which it is known whether each was seen."""
MOST_BEHIND: Final = 8
"""Rising numbers before the window after which the last of them is believed, if fewer were seen in the window."""
MOST_OVERTAKEN: Final = 4 * WINDOW
"""Rising numbers before the window after which the last of them is believed, however many were seen in the window."""
_MASK: Final = (1 << WINDOW) - 1


class SequenceWindow:
    """Numbers of one sender that have been seen."""

    __slots__ = ("_behind", "_bits", "_last_behind", "highest")

    def __init__(self) -> None:
        self.highest = 0
        """Highest number seen; numbers begin with 1."""
        self._bits = 0
        """Numbers seen, as bits: bit n is of the number that is n below the highest."""
        self._behind = 0
        """Number of rising numbers before the window that came last."""
        self._last_behind = 0
        """Last number before the window."""

    def see(self, number: int, is_first: bool = True) -> bool:
        """Note a number.

        Args:
            number: 1 or more.
            is_first: it is sent for the first time; of those that are sent again many lie before the window.
        Returns: whether it is new; not when it was noted before, or is older than the window.
        """
        ahead = number - self.highest
        if ahead > -WINDOW:
            self._behind = 0
        elif is_first:
            self._behind = self._behind + 1 if number > self._last_behind else 1
            self._last_behind = number
            if self._behind >= MOST_BEHIND and (self._behind >= MOST_OVERTAKEN or self._bits.bit_count() < MOST_BEHIND):
                self._behind, self._bits, self.highest = 0, 1, number
                return True
        if ahead > 0:
            self._bits = ((self._bits << ahead) | 1) & _MASK if ahead < WINDOW else 1
            self.highest = number
            return True
        if ahead <= -WINDOW:
            return False
        bit = 1 << -ahead
        if self._bits & bit:
            return False
        self._bits |= bit
        return True
