"""Window of the numbers of a sequence that were seen, in bounded memory: a highest one and a bitmap of those before it.

As in the anti-replay window of IPsec (RFC 4303, 3.4.3): what lies before the window counts as seen.
"""

from __future__ import annotations

from typing import Final

WINDOW: Final = 2048
"""Numbers up to the highest of which it is known whether each was seen."""
_MASK: Final = (1 << WINDOW) - 1


class SequenceWindow:
    """Numbers of one sender that have been seen."""

    __slots__ = ("_bits", "highest")

    def __init__(self) -> None:
        self.highest = 0
        """Numbers begin with 1."""
        self._bits = 0
        """Bit n is of the number that is n below the highest."""

    def see(self, number: int) -> bool:
        """Note a number.

        Returns: whether it is new; not when it was noted before, or is older than the window.
        """
        ahead = number - self.highest
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
