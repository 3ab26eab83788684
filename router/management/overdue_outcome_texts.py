"""Words for messages that a subscriber has given no outcome, and the time after which it is said to hang.

All that tells of such messages has these words: `stat problems`, `trace`, `send` and `call`.
"""

from __future__ import annotations

from typing import Final

HANGS_S: Final = 60
"""A subscriber that has had messages without outcome for so long, and has given none meanwhile, hangs; seconds."""


def is_hanging(unsettled_s: int | None) -> bool:
    """Tell whether a subscriber counts as one that hangs.

    Args:
        unsettled_s: seconds for which it has had messages without outcome and has given none; None where it has none.
    """
    return unsettled_s is not None and unsettled_s >= HANGS_S


def overdue(count: int, unsettled_s: int | None, last_outcome_s: int | None) -> str:
    """Messages that a subscriber has given no outcome, and for how long: `5 messages without outcome, none settled`.

    Args:
        count: of the messages.
        unsettled_s: as above.
        last_outcome_s: seconds since its last outcome; None where it has given none.
    """
    words = f"{count} message{'' if count == 1 else 's'} without outcome"
    if last_outcome_s is not None and (unsettled_s is None or last_outcome_s <= unsettled_s + 1):
        return f"{words}, the last outcome {last_outcome_s} s ago"
    # One that had nothing to do for long before may have given its last outcome long ago.
    return f"{words}, {'not' if count == 1 else 'none'} settled for {unsettled_s} s" if unsettled_s else words
