"""Words of what-if answers: failures, amounts, shares; one way to say each, for commands and reports."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

LISTED: Final = 4
"""Names of a list that are written out; after these, how many more there are."""

NAMED: Final = 10
"""Maximum number of suggested names in an error."""

BASE: Final = "base"
"""The variant that is the mesh as it is."""
NOTHING: Final = "none"
"""The family in which nothing fails."""
DEFAULT_FAMILIES: Final = "links:1,routers:1"
"""Families that are played unless others are asked for, as after `--fail`."""
MAINTENANCE: Final = "maintenance"
"""The family in which a group is held down while something else fails."""
SPLIT: Final = "What is sent is split over all shortest paths (ECMP); where a path is shown it is one of them."
"""Said of what is explained of such a run."""
MEASURES_OF_PLACEMENT: Final[Mapping[str, str]] = {
    "unreachable_pairs": "pairs without a path",
    "mean_cost": "mean cost of paths",
    "cut_pairs": "pairs losing connectivity in single failures",
    "load": "messages/s times the cost of their paths",
    "max_utilisation": "highest utilisation",
    "lost_msgs": "messages/s lost in single failures",
}
"""Values of the column `measure` of the table `placement`."""
LEAST_PERCENT: Final = 1e-4
"""Percents below this are written with an exponent."""
MOST_DIGITS: Final = 17
"""Maximum number of digits of a number: these distinguish any two floats."""


class NumberWriter(Protocol):
    """A way to write numbers, such as `amount`."""

    def __call__(self, value: float, /, *, more: int = 0) -> str:
        """Write *value*, with so many digits more than it takes to read it."""


def counted(count: int, noun: str) -> str:
    """`1 link`, `2 links`, `1,000 addresses`."""
    plural = noun if count == 1 else noun + ("es" if noun.endswith(("s", "sh", "ch", "x")) else "s")
    if noun.endswith("y") and count != 1 and noun[-2] not in "aeiou":
        plural = noun[:-1] + "ies"
    return f"{count:,} {plural}"


def listed(names: Sequence[str], *, most: int = LISTED) -> str:
    """`A`, `A and B`, `A, B and C`; of many the first and how many there are."""
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most:,} more"
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "".join(names)


def parted(parts: Sequence[Sequence[str]], apart_pairs: int) -> str:
    """Say that a mesh is in several parts even when nothing fails; empty where it is in one.

    Args:
        parts: ids of the routers of each.
        apart_pairs: ordered pairs of routers in different parts.
    """
    if len(parts) < 2:
        return ""
    names = [listed(part) for part in parts[:LISTED]]
    rest = f"; and {counted(len(parts) - LISTED, 'part')} more" if len(parts) > LISTED else ""
    pairs = f"{counted(apart_pairs, 'ordered pair')} of routers have no path even when nothing fails"
    return f"the mesh is in {len(parts):,} parts ({'; '.join(names)}{rest}): {pairs}"


def failure(links: Sequence[str], routers: Sequence[str], group: str | None = None, family: str = "") -> str:
    """Name what fails in a scenario: `link A--B and router C`, `maintenance of G, and link A--B`, `nothing`.

    Args:
        links: ids of all that are down, as the column `failed_links` has them.
        routers: the same, as the column `failed_routers` has them.
        group: of which they are, or that is held down.
        family: as in the table `scenario`.
    """
    parts = []
    if group is not None:
        parts.append(f"{'maintenance of' if family == MAINTENANCE else 'group'} {group}")
    if routers:
        parts.append(f"{'router' if len(routers) == 1 else 'routers'} {listed(routers)}")
    if links:
        parts.append(f"{'link' if len(links) == 1 else 'links'} {listed(links)}")
    if group is not None and len(parts) > 1:
        return f"{parts[0]}: {' and '.join(parts[1:])}"
    return " and ".join(parts) or "nothing"


def failure_of(row: Mapping[str, Any]) -> str:
    """Name what fails, of a row of the table `scenario`; its variant too, unless it is the mesh as it is."""
    said = failure(row["failed_links"], row["failed_routers"], row["group"], row["family"])
    return said if row["variant"] == BASE else f"{said} ({row['variant']})"


def lose_each_other(pairs: int) -> str:
    """The verb of so many pairs of routers that had a path and have none; `without a path` are those that had none."""
    return "loses connectivity" if pairs == 1 else "lose connectivity"


def harm_of(row: Mapping[str, Any]) -> str:
    """Name what a row of the table `router_spof` takes from others."""
    parts = []
    if row["unreachable_pairs"]:
        parts.append(f"{counted(row['unreachable_pairs'], 'pair')} {lose_each_other(row['unreachable_pairs'])}")
    if row["dead_addresses"]:
        parts.append(f"{counted(row['dead_addresses'], 'address')} without a subscriber")
    if row["starved_publishers"]:
        parts.append(f"{counted(row['starved_publishers'], 'publisher')} without a subscriber")
    if row["lost_msgs_per_s"]:
        parts.append(f"{rate(row['lost_msgs_per_s'])} lost")
    return ", ".join(parts)


def amount(value: float, *, more: int = 0) -> str:
    """Write a number as one reads it: three digits at least, whole from 100 on, thousands apart.

    Args:
        value: any number.
        more: digits beyond that.
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) + more
    if digits > 6 + more:
        return f"{value:.{2 + more}e}"
    return _without_zeros(f"{value:,.{digits}f}")


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def exact(value: float) -> str:
    """Write a number that somebody has given, as it was given: nothing is rounded, thousands apart.

    Args:
        value: any number.
    """
    return f"{value:,.15g}"


def cell(value: object) -> str:
    """A value as a small table shows it; nothing where it isn't known.

    Args:
        value: text, a number, whether something is so, or None.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return amount(value) if isinstance(value, float) else str(value)


def without_capacities(count: int) -> str:
    """Say of how many links a utilisation tells nothing; empty where there are none.

    Args:
        count: of links of which no capacity is known.
    """
    return f"without {counted(count, 'link')} of which no capacity is known" if count else ""


def without_credit(count: int) -> str:
    """Say of how many paths nothing is said; with a blank before it, and empty where there are none.

    Args:
        count: of paths of which the credit or the delay is not known.
    """
    return f" (without {counted(count, 'path')} of which credit or delay is not known)" if count else ""


def rate(value: float, *, more: int = 0) -> str:
    """Write a rate.

    Args:
        value: messages a second.
        more: digits beyond those of `amount`.
    """
    return f"{amount(value, more=more)} msg/s"


def percent(share: float, *, more: int = 0) -> str:
    """Write a share as percent: `61 %`, `0.34 %`, `99.95 %`, `7.0e-11 %`; never rounded up to 100 % or down to 0 %.

    Args:
        share: 0 to 1, or more.
        more: digits beyond that.
    """
    value = 100 * share
    if value == 0 or value >= 100 or 10 <= value < 99.5:
        return f"{_without_zeros(f'{value:,.{more}f}')} %"
    if value < LEAST_PERCENT:
        return f"{value:.{1 + more}e} %"
    # So many digits that the distance from 0 or 100 has two.
    digits = 1 - math.floor(math.log10(min(value, 100 - value))) + more
    return f"{value:.{digits}f} %"


def served(share: float, *, more: int = 0) -> str:
    """Write a share of the time, near 1: what is missing to 100 % has two digits, such as `98.6 %` and `99.9971 %`.

    Args:
        share: 0 to 1.
        more: digits beyond that.
    """
    missing = 100 * (1 - share)
    digits = max(0, 1 - math.floor(math.log10(missing))) if missing > 0 else 0
    return f"{100 * share:.{digits + more}f} %"


def milliseconds(value: float, *, more: int = 0) -> str:
    """Write a time.

    Args:
        value: milliseconds.
        more: digits beyond those of `amount`.
    """
    return f"{amount(value, more=more)} ms"


def told_apart(words: NumberWriter, *values: float) -> list[str]:
    """Write numbers that are shown because they differ: with so many digits that different ones look different.

    Args:
        words: how they are written.
        values: two or more.
    Returns: the texts, in the order of the numbers.
    """
    different = len(set(values))
    texts: list[str] = []
    for more in range(MOST_DIGITS):
        texts = [words(value, more=more) for value in values]
        if len(set(texts)) >= different:
            break
    return texts


def per_year(share: float) -> str:
    """Write the time in a year that a share is: `3 h 12 min`, `41 s`.

    Args:
        share: 0 to 1.
    """
    seconds = share * 365 * 86400
    for size, unit, part, small in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} {int(seconds % size // part)} {small}"
    return f"{amount(seconds)} s"
