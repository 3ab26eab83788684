"""Request of an operator for a run: failures, maintenance, changes of the mesh, growth; as text and as a plan."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import attrs

from router.whatif.model.elements import LinkEdge, SubscriberSite, link_ids
from router.whatif.model.mesh_model import Model, grown, with_costs, with_links, with_subscribers
from router.whatif.scenarios.failure_families import FailureCandidates, Maintenance
from router.whatif.scenarios.scenario_plan import BASE, DEFAULT_FAMILIES, Plan, families_of, plan_error

CHANGED: Final = "changed"
"""The variant with all changes that were asked for."""
MAX_GROWTH_STEPS: Final = 1000
LINK_AMOUNTS: Final = ("delay_ms", "capacity_msgs", "capacity_bytes")
"""Amounts that may be said of a link that is added: fields of `LinkEdge`."""
_ADDED_LINK: Final = re.compile(r"(.*?,[^,=]*)((?:,[^,=]*=[^,]*)*)")
"""Ends and cost, then the amounts, each after a comma. Ids may have commas and equals signs, a cost has none."""


def _texts(given: str | Iterable[str]) -> tuple[str, ...]:
    """Several texts; one alone is one of them, not its letters."""
    return (given,) if isinstance(given, str) else tuple(given)


@attrs.frozen(kw_only=True)
class Request:
    """Request for a run. All texts, so that it can be written into a table and read again.

    Where there may be several texts, one alone may be given as it is.
    """

    families: str = DEFAULT_FAMILIES
    """As after `--fail`."""
    maintenance: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    """Names of groups, each held down while everything else fails one by one."""
    growth: str = ""
    """`FROM:TO:STEP`, or one factor: of the messages of all demands."""
    costs: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    """`LINK=COST`."""
    links: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    """`A,B,COST` and then `FIELD=NUMBER` of LINK_AMOUNTS: links that are added."""
    moves: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    """`ADDRESS,FROM,TO`: subscribers that are moved."""
    subscribers: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    """`ADDRESS,ROUTER`: subscribers that are added."""
    sample: int | None = None
    """Of families with more failures, only so many are played."""
    seed: int = 0

    def variants(self, model: Model) -> tuple[tuple[str, Model], ...]:
        """The mesh as it is and each changed one, with their names.

        Raises: PlanError, ModelError
        """
        kinds = [(BASE, model)]
        if self.costs or self.links or self.moves or self.subscribers:
            kinds.append((CHANGED, self._changed(model)))
        found = list(kinds)
        for factor in growth_factors(self.growth):
            for name, kind in kinds:
                text = f"growth {factor}"
                found.append((text if name == BASE else f"{name}, {text}", grown(kind, float(factor))))
        return tuple(found)

    def plan(self, variants: Sequence[tuple[str, Model]]) -> Plan:
        """The scenarios.

        Raises: PlanError
        """
        return Plan.of(
            [(name, FailureCandidates.of(model)) for name, model in variants],
            [*families_of(self.families), *(Maintenance(name) for name in self.maintenance)],
            sample=self.sample,
            seed=self.seed,
        )

    def to_json(self) -> str:
        """As JSON, in one form."""
        return json.dumps(attrs.asdict(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Request:
        """Read what `to_json` wrote."""
        return cls(**json.loads(text))

    def _changed(self, model: Model) -> Model:
        if self.costs:
            model = with_costs(model, _costs(self.costs))
        if self.links:
            model = with_links(model, _new_links(model, self.links))
        for text in self.moves:
            model = _moved(model, text)
        for text in self.subscribers:
            model = _subscribed(model, text)
        return model


def growth_factors(text: str) -> tuple[Decimal, ...]:
    """Factors of `FROM:TO:STEP`, both ends included, or of one factor; 1 is left out, since it is no growth.

    Raises: PlanError
    """
    if not text:
        return ()
    expected = "FROM:TO:STEP such as 1:2:0.1, or one factor, each above 0"
    try:
        numbers = [Decimal(word.strip()) for word in text.split(":")]
    except InvalidOperation:
        numbers = []
    # A Decimal may be larger, or nearer to 0, than what it can be calculated with.
    are_usable = all(number.is_finite() and 0 < float(number) < math.inf for number in numbers)
    if len(numbers) not in (1, 3) or not are_usable:
        raise plan_error("--growth", f"`{text}`", expected)
    if len(numbers) == 1:
        steps = numbers
    else:
        low, high, step = numbers
        try:
            count = (high - low) // step + 1
        except InvalidOperation:  # more steps than a Decimal has digits for
            raise plan_error("--growth", f"`{text}` has too many steps", f"1 to {MAX_GROWTH_STEPS} steps") from None
        if not 1 <= count <= MAX_GROWTH_STEPS:
            raise plan_error("--growth", f"`{text}` has {max(count, 0)} steps", f"1 to {MAX_GROWTH_STEPS} steps")
        steps = [low + number * step for number in range(int(count))]
    return tuple(Decimal(f"{factor.normalize():f}") for factor in steps if factor != 1)


def _words(option: str, text: str, form: str) -> list[str]:
    """The parts of an option's value, from the right: an address may have commas."""
    count = form.count(",")
    words = [word.strip() for word in text.rsplit(",", count)]
    if len(words) != count + 1 or not all(words):
        raise plan_error(option, f"`{text}`", form)
    return words


def _whole(option: str, text: str, word: str) -> int:
    if not word.isascii() or not word.isdigit():
        raise plan_error(option, f"`{text}`: `{word}` is no cost", "a whole number from 1")
    return int(word)


def _cost(text: str) -> tuple[str, int]:
    link, sign, cost = text.rpartition("=")
    if not sign or not link.strip():
        raise plan_error("--cost", f"`{text}`", "LINK=COST")
    return link.strip(), _whole("--cost", text, cost.strip())


def _costs(texts: Sequence[str]) -> dict[str, int]:
    """By link."""
    found: dict[str, int] = {}
    for text in texts:
        link, cost = _cost(text)
        if link in found:
            raise plan_error("--cost", f"`{text}`: the cost of `{link}` is given twice", "each link once")
        found[link] = cost
    return found


def _new_links(model: Model, texts: Sequence[str]) -> Iterator[LinkEdge]:
    """Each with the next usual id that is free."""
    wanted = []
    for text in texts:
        match = _ADDED_LINK.fullmatch(text)
        head, amounts = match.groups() if match is not None else (text, "")
        both, _, cost = head.rpartition(",")
        one, other = _ends(model, text, both)
        whole = _whole("--add-link", text, cost.strip())
        wanted.append((min(one, other), max(one, other), whole, _amounts(text, amounts.split(",")[1:])))
    there = {link.id for link in model.links}
    for a, b, whole, amounts in wanted:
        free = next(name for name in link_ids([(a, b)] * (len(there) + 1)) if name not in there)
        there.add(free)
        yield LinkEdge(id=free, a=a, b=b, cost=whole, **amounts)


def _ends(model: Model, text: str, both: str) -> tuple[str, str]:
    """Two routers, with a comma between them as it may be in their ids: where both sides are routers."""
    words = both.split(",")
    choices = [
        (",".join(words[:at]).strip(), ",".join(words[at:]).strip()) for at in range(1, len(words))
    ]  # one, unless there are commas in ids
    known = {router.id for router in model.routers}
    found = [pair for pair in choices if known.issuperset(pair)]
    if len(found) == 1:
        return found[0]
    if len(choices) == 1 and all(choices[0]):
        return choices[0]  # the model says which it does not have
    if found:
        ways = " or ".join(f"`{one}` and `{other}`" for one, other in found)
        raise plan_error("--add-link", f"`{text}` may mean {ways}", "router ids that can be told apart")
    raise plan_error("--add-link", f"`{text}`", "A,B,COST, A and B routers")


def _amounts(text: str, words: Sequence[str]) -> dict[str, Any]:
    """Read what is said of a link by `FIELD=NUMBER`."""
    found: dict[str, float] = {}
    for word in words:
        name, sign, number = (part.strip() for part in word.partition("="))
        if not sign or name not in LINK_AMOUNTS or name in found:
            expected = f"FIELD=NUMBER, each once, of {', '.join(LINK_AMOUNTS)}"
            raise plan_error("--add-link", f"`{text}`: `{word.strip()}`", expected)
        try:
            found[name] = float(number)
        except ValueError:
            raise plan_error("--add-link", f"`{text}`: `{number}` is no number", f"{name}=NUMBER") from None
    return found


def _moved(model: Model, text: str) -> Model:
    address, origin, target = _words("--move-subscriber", text, "ADDRESS,FROM,TO")
    site = _site(model, address, origin)
    if site is None:
        return with_subscribers(model, removed=[(address, origin)])  # which says what is wrong
    if origin == target:
        return model
    whole = _joined(_site(model, address, target), attrs.evolve(site, router=target))
    return with_subscribers(model, [whole], removed=[(address, origin)])


def _subscribed(model: Model, text: str) -> Model:
    address, router = _words("--add-subscriber", text, "ADDRESS,ROUTER")
    there = _site(model, address, router)
    like = there or next((site for site in model.subscribers if site.address == address), None)
    new = SubscriberSite(address=address, router=router)
    if like is not None:  # one more of the kind that is there, or else that the address has
        credit = like.credit
        if credit:
            credit = max(1, credit // like.count)
        new = attrs.evolve(new, credit=credit, service_ms=like.service_ms)
    return with_subscribers(model, [_joined(there, new)])


def _site(model: Model, address: str, router: str) -> SubscriberSite | None:
    return next((each for each in model.subscribers if (each.address, each.router) == (address, router)), None)


def _joined(there: SubscriberSite | None, new: SubscriberSite) -> SubscriberSite:
    """Subscribers that come to where there are some already: their credit in all, and their mean service time.

    What is not known of some is not known of all.
    """
    if there is None:
        return new
    count = there.count + new.count
    credit = None if there.credit is None or new.credit is None else there.credit + new.credit
    service_ms = there.service_ms
    if there.service_ms is None or new.service_ms is None:
        service_ms = None
    elif there.service_ms != new.service_ms:  # else the mean might be another one in its last digit
        service_ms = (there.count * there.service_ms + new.count * new.service_ms) / count
    return attrs.evolve(there, count=count, credit=credit, service_ms=service_ms)
