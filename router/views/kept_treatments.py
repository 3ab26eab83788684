"""Addresses in use that keep the treatment they have, though the settings have another one for them now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from mesh_config.models import RouterSettings, Treatment, VhostSettings
from router.core.addressing.address import AddressKind, masked
from router.core.addressing.treatment_table import AddressRule, TreatmentTable
from router.core.forwarding.fib import AddressEntry, Fib

MOST_LOOKED: Final = 5000
"""Addresses that are looked at: a few milliseconds, in which nothing else is done."""
NAMED: Final = 10
"""Addresses that are named; of more, how many there are."""


def treatments_of(settings: RouterSettings) -> tuple[object, ...]:
    """All settings that treatments come from: where these are the same, so are the treatments."""
    return settings.addresses, settings.default_treatment, settings.forwarding.distance_messages


def kept_treatments(fib: Fib, before: TreatmentTable, vhosts: Iterable[VhostSettings]) -> list[str]:
    """Say which addresses are not as the treatments that *fib* has taken over say; a sentence, or none.

    Args:
        fib: with the new treatments.
        before: those that it had.
        vhosts: those of the settings: in an isolated one, addresses have the treatment that is configured without it.
    """
    isolated = [f"{each.name}/" for each in vhosts if each.isolated]
    looked_at = islice(fib.entries(), MOST_LOOKED)
    found = [masked(each.text) for each in looked_at if _is_kept(each, fib.treatments, before, isolated)]
    if not found:
        return []
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return [f"addresses in use keep their treatment as long as anybody uses them: {', '.join(found[:NAMED])}{more}"]


def _is_kept(entry: AddressEntry, after: TreatmentTable, before: TreatmentTable, isolated: Sequence[str]) -> bool:
    if entry.kind is not AddressKind.MOBILE or entry.service is not None:
        return False
    new, old = _rule(after, entry.text, isolated), _rule(before, entry.text, isolated)
    # What no entry is for, a neighbor may have given a treatment of its own.
    is_own = new.is_configured or old.is_configured or entry.treatment == old.treatment
    is_farther = entry.treatment is Treatment.BALANCED and entry.distance != after.rule(entry.text).distance
    return (is_own and entry.treatment != new.treatment) or is_farther


def _rule(table: TreatmentTable, text: str, isolated: Sequence[str]) -> AddressRule:
    """Rule for an address: as it is, or else as its clients name it."""
    found = table.rule(text)
    start = next((each for each in isolated if text.startswith(each)), None)
    return table.rule(text.removeprefix(start)) if start is not None and not found.is_configured else found
