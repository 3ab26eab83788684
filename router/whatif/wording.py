"""Words of what-if answers: failures, amounts, shares; one way to say each, for commands and reports."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

LISTED: Final = 4
"""Names of a list that are written out; after these, how many more there are."""

BASE: Final = "base"
"""The variant that is the mesh as it is."""
NOTHING: Final = "none"
"""The family in which nothing fails."""
MAINTENANCE: Final = "maintenance"
"""The family in which a group is held down while something else fails."""
SPLIT: Final = "What is sent is split over all shortest paths (ECMP); where a path is shown it is one of them."
"""Said of what is explained of such a run."""


def counted(count: int, noun: str) -> str:
    """`1 link`, `2 links`, `1,000 addresses`."""
    plural = noun if count == 1 else noun + ("es" if noun.endswith(("s", "ch")) else "s")
    if noun.endswith("y") and count != 1 and noun[-2] not in "aeiou":
        plural = noun[:-1] + "ies"
    return f"{count:,} {plural}"


def listed(names: Sequence[str], *, most: int = LISTED) -> str:
    """`A`, `A and B`, `A, B and C`; of many the first and how many there are."""
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most:,} more"
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "".join(names)


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


def harm_of(row: Mapping[str, Any]) -> str:
    """Name what a row of the table `router_spof` takes from others."""
    parts = []
    if row["unreachable_pairs"]:
        parts.append(f"{counted(row['unreachable_pairs'], 'pair')} without a path")
    if row["dead_addresses"]:
        parts.append(f"{counted(row['dead_addresses'], 'address')} without a subscriber")
    if row["starved_publishers"]:
        parts.append(f"{counted(row['starved_publishers'], 'publisher')} without a subscriber")
    if row["lost_msgs_per_s"]:
        parts.append(f"{rate(row['lost_msgs_per_s'])} lost")
    return ", ".join(parts)


def amount(value: float) -> str:
    """Write a number as one reads it: three digits at least, whole from 100 on, thousands apart.

    Args:
        value: any number.
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    if digits > 6:
        return f"{value:.2e}"
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def rate(value: float) -> str:
    """Write a rate.

    Args:
        value: messages a second.
    """
    return f"{amount(value)} msg/s"


def percent(share: float) -> str:
    """Write a share as percent: `61 %`, `0.34 %`, `99.95 %`; never rounded up to 100 % or down to 0 %.

    Args:
        share: 0 to 1, or more.
    """
    value = 100 * share
    if value == 0 or value >= 100 or 10 <= value < 99.5:
        return f"{value:,.0f} %"
    # So many digits that the distance from 0 or 100 has two.
    digits = min(9, 1 - math.floor(math.log10(min(value, 100 - value))))
    return f"{value:.{digits}f} %"


def served(share: float) -> str:
    """Write a share of the time, near 1: what is missing to 100 % has two digits, such as `98.6 %` and `99.9971 %`.

    Args:
        share: 0 to 1.
    """
    missing = 100 * (1 - share)
    digits = min(9, max(0, 1 - math.floor(math.log10(missing)))) if missing > 0 else 0
    return f"{100 * share:.{digits}f} %"


def milliseconds(value: float) -> str:
    """Write a time.

    Args:
        value: milliseconds.
    """
    return f"{amount(value)} ms"


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
