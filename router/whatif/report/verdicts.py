"""Verdicts on a run: a handful of findings, each with a value, a sentence, and whether it is trouble."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs

from router.whatif.analysis.availability import Range, unrated
from router.whatif.analysis.credit_plan import PathCountsByCredit
from router.whatif.model.connected_components import ConnectedComponents
from router.whatif.report.run_facts import Facts, Row
from router.whatif.wording import (
    BASE,
    MEASURES_OF_PLACEMENT,
    amount,
    counted,
    failure_of,
    harm_of,
    listed,
    parted,
    per_year,
    percent,
    rate,
    served,
    told_apart,
    without_capacities,
    without_credit,
)

BUSY: Final = 0.8
"""Utilisation above which a link counts as busy, since bursts find little room on it."""
VAGUE: Final = 0.1
"""Share of the time not covered above which an availability is shown as a range."""
LONG: Final = 2.0
"""Stretch above which paths count as long."""
SOME_LOST: Final = 0.01
"""Share of the messages lost in a scenario above which it is rated fair."""
MUCH_LOST: Final = 0.1
"""Share of the messages lost in a scenario above which it is rated bad."""
THREE_NINES: Final = 0.999
"""Availability from which it is rated good."""
TWO_NINES: Final = 0.99
"""Availability below which it is rated bad."""


class State(enum.StrEnum):
    """Whether something is to be done."""

    GOOD = "good"
    FAIR = "fair"
    BAD = "bad"
    UNKNOWN = "unknown"
    """Undecided, since something isn't known."""


@attrs.frozen(kw_only=True)
class Verdict:
    """One finding."""

    topic: str
    """A word: the section of the report that has more."""
    label: str
    value: str
    note: str
    state: State
    remedy: str = ""
    """Most helpful change, of what a run looks at; empty where nothing is to be done, or nothing was found."""


def verdicts(facts: Facts) -> list[Verdict]:
    """Verdicts on a run, in the order of the report."""
    makers: tuple[Callable[[Facts], Iterator[Verdict]], ...] = (
        _parts, _spof, _lost, _links, _paths, _addresses, _credit, _changes, _growth, _availability,
    )  # fmt: skip
    return [verdict for make in makers for verdict in make(facts)]


def scenario_text(row: Row) -> str:
    """`scenario 17: link A--B`."""
    return f"scenario {row['scenario']}: {failure_of(row)}"


def _parts(facts: Facts) -> Iterator[Verdict]:
    found = ConnectedComponents.of(facts.model)
    if said := parted(found.parts, found.apart_pairs):
        remedy = _link_remedy(facts, "unreachable_pairs")
        value, note = f"{len(found.parts):,}", _sentence(said)
        yield Verdict(topic="spof", label="Parts of the mesh", value=value, note=note, state=State.BAD, remedy=remedy)


def _spof(facts: Facts) -> Iterator[Verdict]:
    found = facts.spof
    label = "Single points of failure"
    if not found:
        note = "No single failure cuts off other routers or leaves an address without subscribers."
        yield Verdict(topic="spof", label=label, value="none", note=note, state=State.GOOD)
        return
    worst = found[0]
    note = f"The worst is {worst['kind']} {worst['element']}: {harm_of(worst)}."
    remedy = _link_remedy(facts, "unreachable_pairs") or _link_remedy(facts, "cut_pairs")
    yield Verdict(topic="spof", label=label, value=f"{len(found):,}", note=note, state=State.BAD, remedy=remedy)


def _lost(facts: Facts) -> Iterator[Verdict]:
    worst = facts.worst_by["lost_msgs_per_s"]
    label = "Most demand lost"
    if not facts.sent_msgs_per_s:
        return
    if worst is None:
        note = "No message is lost in any scenario."
        yield Verdict(topic="scenarios", label=label, value="none", note=note, state=State.GOOD)
        return
    share = min(1.0, worst["lost_msgs_per_s"] / facts.wanted_msgs_per_s)
    own = ", with the messages from and to itself" if worst["failed_routers"] else ""
    note = f"{rate(worst['lost_msgs_per_s'])}{own}, in {scenario_text(worst)}."
    state = State.BAD if share > MUCH_LOST else State.FAIR if share > SOME_LOST else State.GOOD
    remedy = _subscriber_remedy(facts, "lost_msgs") if state is not State.GOOD else ""
    yield Verdict(topic="scenarios", label=label, value=percent(share), note=note, state=state, remedy=remedy)


def _links(facts: Facts) -> Iterator[Verdict]:
    if not facts.links or not facts.links[0].worst_utilisation:
        return
    before, after = facts.base["max_utilisation"], facts.links[0].worst_utilisation
    state = State.BAD if after > 1 else State.FAIR if after > BUSY else State.GOOD
    if not facts.has_capacities:
        state = State.UNKNOWN
    remedy = _link_remedy(facts, "max_utilisation") if state is not State.GOOD else ""
    worst = facts.links[0]
    by_number = {row["scenario"]: row for row in facts.link_rows}
    cause = next((by_number[number] for number in worst.scenarios if number in by_number), None)
    where = f"{worst.src} to {worst.dst}"
    note = (
        f"At most {percent(before)} while nothing fails. In the worst case {where} has {rate(worst.worst_msgs_per_s)}"
    )
    note += f" and {amount(worst.worst_bytes_per_s)} bytes/s" if worst.worst_bytes_per_s else ""
    note += f", in {scenario_text(cause)}." if cause else "."
    if not facts.has_capacities:
        note += " The model has no capacities: 100 % is the busiest link while nothing fails."
    else:
        note += _without_capacities(facts.model.unknown_capacities)
    yield Verdict(topic="links", label="Busiest link", value=_of_full(after), note=note, state=state, remedy=remedy)


def _without_capacities(links: int) -> str:
    """The sentence that says of how many links a utilisation tells nothing, if there are any."""
    said = without_capacities(links)
    return f" {_sentence(said)}" if said else ""


def _of_full(utilisation: float) -> str:
    """Write a utilisation so that more than all that a link can carry doesn't look like all, nor less."""
    return told_apart(percent, utilisation, 1.0)[0]


def _paths(facts: Facts) -> Iterator[Verdict]:
    worst = facts.worst_by["stretch_p99"]
    label = "Longer paths"
    if worst is None:
        if facts.run["scenarios"] > 1:
            note = "At least 99 % of the paths keep their cost in every scenario."
            yield Verdict(topic="scenarios", label=label, value="none", note=note, state=State.GOOD)
        return
    value = worst["stretch_p99"]
    note = f"99 % of the paths cost at most {amount(value)} times as much, in {scenario_text(worst)}."
    state = State.FAIR if value > LONG else State.GOOD
    remedy = _link_remedy(facts, "mean_cost") if state is State.FAIR else ""
    yield Verdict(topic="scenarios", label=label, value=f"{amount(value)} x", note=note, state=state, remedy=remedy)


def _addresses(facts: Facts) -> Iterator[Verdict]:
    if not facts.addresses:
        return
    without = [it for it in facts.addresses if not it.subscriber_routers]
    single = [it for it in facts.addresses if it.subscriber_routers == 1]
    label = "Addresses at no more than one router"
    if not single and not without:
        note = f"All {counted(len(facts.addresses), 'address')} have subscribers at two routers or more."
        yield Verdict(topic="addresses", label=label, value="none", note=note, state=State.GOOD)
        return
    said = []
    if single:
        said.append(f"{listed([it.address for it in single], most=2)}: no subscriber is left when that router fails.")
    if without:
        said.append(f"Nobody subscribes to {listed([it.address for it in without], most=2)}.")
    state = State.BAD if without else State.FAIR
    count = f"{len(single) + len(without):,}"
    remedy = _subscriber_remedy(facts, "lost_msgs")
    yield Verdict(topic="addresses", label=label, value=count, note=" ".join(said), state=state, remedy=remedy)


def _credit(facts: Facts) -> Iterator[Verdict]:
    counts = PathCountsByCredit.of(facts.credit, facts.model)
    label = "Paths short of credit"
    if not counts.known:
        return
    of = f"{counted(counts.known, 'path')}{without_credit(counts.unknown)}"
    if not counts.short:
        note = f"The credit is enough for the rate on {of}."
        yield Verdict(topic="credit", label=label, value="none", note=note, state=State.GOOD)
        return
    worst = next(row for row in facts.credit if row["is_enough"] is False)
    note = (
        f"Of {of}. All paths of {worst['address']} to {worst['dst']} together need "
        f"{worst['shared_needed']:,}, and {worst['configured']:,} are configured."
    )
    remedy = f"Subscribers of {worst['address']} at {worst['dst']} that grant {worst['shared_needed']:,} together."
    yield Verdict(topic="credit", label=label, value=f"{counts.short:,}", note=note, state=State.BAD, remedy=remedy)


def _changes(facts: Facts) -> Iterator[Verdict]:
    """Tell what the changes that were asked for make of the mesh as it is."""
    before = next(it for it in facts.variants if it.name == BASE)
    after = next((it for it in facts.variants if it.is_changed and it.growth == 1), None)
    if after is None:
        return
    said = []
    signs = set()
    for what, text, old, new in (
        ("the busiest link has {} while nothing fails", percent, before.base_utilisation, after.base_utilisation),
        ("the busiest link has {} in the worst case", percent, before.worst_utilisation, after.worst_utilisation),
        ("{} lost while nothing fails", rate, before.base_lost_msgs_per_s, after.base_lost_msgs_per_s),
        ("at most {} lost", rate, before.worst_lost_msgs_per_s, after.worst_lost_msgs_per_s),
        ("pairs without a path while nothing fails: {}", _whole, before.apart_pairs, after.apart_pairs),
        (
            "pairs without a path in the worst case: {}",
            _whole,
            before.apart_pairs + before.worst_living_pairs,
            after.apart_pairs + after.worst_living_pairs,
        ),
    ):
        if text(new) != text(old):  # what can't be read is no difference
            signs.add(new > old)
            said.append(f"{what.format(text(new))}, not {text(old)}")
    value, state = {
        (): ("no difference", State.FAIR),
        (False,): ("better", State.GOOD),
        (True,): ("worse", State.BAD),
        (False, True): ("better and worse", State.FAIR),
    }[tuple(sorted(signs))]
    note = "; ".join(said) if said else ("the same load of the busiest link and the same loss, also in the worst case")
    note = _sentence(note)
    if facts.has_capacities:
        note += _without_capacities(after.unknown_capacities)
    yield Verdict(topic="variants", label="With the changes", value=value, note=note, state=state)


def _growth(facts: Facts) -> Iterator[Verdict]:
    """Tell how much more all can send."""
    for is_changed, label in ((False, "Growth headroom"), (True, "Growth headroom with the changes")):
        steps = facts.growth_steps(is_changed=is_changed)
        if len(steps) < 2 or not facts.has_capacities:
            continue
        within = [factor for factor, _ in itertools.takewhile(lambda step: step[1].worst_utilisation <= 1, steps)]
        factor, shown = steps[min(len(within), len(steps) - 1)]
        grown = f"With {amount(factor)} times the messages"
        if factor == 1:
            grown = "With only the changes" if is_changed else "Without growth"
        note = f"{grown} the busiest link has {_of_full(shown.base_utilisation)}"
        note += f", and {_of_full(shown.worst_utilisation)} in the worst case."
        note += _without_capacities(shown.unknown_capacities)
        value = f"{amount(within[-1])} x" if within else "none"
        state = State.BAD if not within else State.GOOD if within[-1] > 1 else State.FAIR
        yield Verdict(topic="variants", label=label, value=value, note=note, state=state)


def _whole(count: float) -> str:
    return f"{int(count):,}"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _availability(facts: Facts) -> Iterator[Verdict]:
    found = facts.availability
    if found is None or (share := found.demand or found.pairs) is None:
        return
    arrive = "of all messages that arrive" if found.demand else "of all pairs that can reach each other"
    lost = per_year(1 - share.at_least)
    value = f"at least {served(share.at_least)}"
    note = f"Share {arrive}: at most {lost} a year are lost"
    if found.residual:
        note += f", with the {percent(found.residual)} of the time that the scenarios do not cover taken as lost"
    if found.residual > VAGUE:
        value = f"{served(share.at_least)} to {served(share.at_most)}"
        note = f"Share {arrive}: {percent(found.residual)} of the time is not covered by the scenarios"
    note += "."
    if without := unrated(facts.model):
        note += f" Without rates, and taken never to fail: {without}."
    yield Verdict(
        topic="availability",
        label="Availability",
        value=value,
        note=note,
        state=_availability_state(share),
    )


def _availability_state(share: Range) -> State:
    """Judge an availability, if both of its ends are judged alike."""
    low, high = (
        State.GOOD if each >= THREE_NINES else State.FAIR if each >= TWO_NINES else State.BAD
        for each in (share.at_least, share.at_most)
    )
    return low if low == high else State.UNKNOWN


# What would help


def _link_remedy(facts: Facts, measure: str) -> str:
    """Name the link that makes a measure best, of the table `placement`."""
    row = _best(facts, measure, ("link",))
    if row is None:
        return ""
    what = MEASURES_OF_PLACEMENT[measure]
    after, before = told_apart(amount, row["after"], row["before"])
    return f"One more link between {row['a']} and {row['b']}: {what} {after}, not {before}."


def _subscriber_remedy(facts: Facts, measure: str) -> str:
    """Name the subscriber to be added or moved that makes a measure best, of the table `placement`."""
    row = _best(facts, measure, ("addition", "move"))
    if row is None:
        return ""
    after, before = told_apart(rate, row["after"], row["before"])
    saved = f"{after} lost over all single failures, not {before}"
    if row["kind"] == "addition":
        return f"One more subscriber of {row['address']}, at {row['b']}: {saved}."
    return f"Subscribers of {row['address']} at {row['b']} instead of {row['a']}: {saved}."


def _best(facts: Facts, measure: str, kinds: Sequence[str]) -> Row | None:
    """The row of `placement` with the largest gain, of one measure."""
    rows = [row for row in facts.placement if row["measure"] == measure and row["kind"] in kinds and row["gain"] > 0]
    return max(rows, key=lambda row: (row["gain"], row["kind"]), default=None)
