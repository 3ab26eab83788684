"""Request of an operator for a run: failures, maintenance, changes of the mesh, growth; as text and as a plan."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import attrs

from router.whatif.model.added_link_forms import MOST_DIGITS, AddedLinkError, added_links
from router.whatif.model.elements import LinkEdge, SubscriberSite, nearest_name
from router.whatif.model.mesh_model import Model, ModelError, grown, with_costs, with_links, with_subscribers
from router.whatif.scenarios.failure_families import FailureCandidates, Maintenance
from router.whatif.scenarios.scenario_plan import Plan, PlanError, families_of, plan_error
from router.whatif.wording import BASE, DEFAULT_FAMILIES, NAMED, listed

CHANGED: Final = "changed"
"""The variant with all changes that were asked for."""
MAX_GROWTH_STEPS: Final = 1000
MAX_NUMBER: Final = 2**63
"""Above those that a table has room for."""
STEP_DIGITS: Final = 6
"""Maximum digits of a suggested STEP, instead of one that doesn't end at TO."""
FIELDS: Final[Mapping[str, str]] = {
    "--fail": "families",
    "--maintenance": "maintenance",
    "--growth": "growth",
    "--cost": "costs",
    "--add-link": "links",
    "--move-subscriber": "moves",
    "--add-subscriber": "subscribers",
    "--sample": "sample",
}
"""Fields of a request by the options of the command that say the same."""


def _texts(given: str | Iterable[str]) -> tuple[str, ...]:
    """Several texts; one alone is one of them, not its letters. What are no texts is left to `_are_texts`."""
    found: tuple[Any, ...] = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    return found


def _are_texts(_: object, field: attrs.Attribute[Any], value: tuple[object, ...]) -> None:
    for each in value:
        if not isinstance(each, str):
            words = f"as after `{_option_of(field.name)}`"
            raise plan_error(field.name, f"{each!r}", f"a text, {words}, or a list of texts")


def _is_text(_: object, field: attrs.Attribute[str], value: object) -> None:
    if not isinstance(value, str):
        raise plan_error(field.name, f"{value!r}", f"text, as after `{_option_of(field.name)}`")


def _is_from(least: int) -> Callable[[object, attrs.Attribute[Any], object], None]:
    """Check a whole number, or None where that is the default. Raises: PlanError."""

    def check(_: object, field: attrs.Attribute[Any], value: object) -> None:
        if value is None and field.default is None:
            return
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < MAX_NUMBER:
            raise plan_error(field.name, f"{value!r}", f"a whole number from {least}")

    return check


def _option_of(name: str) -> str:
    return next(option for option, field in FIELDS.items() if field == name)


@attrs.frozen(kw_only=True)
class Request:
    """Request for a run. All texts, so that it can be written into a table and read again.

    Where there may be several texts, one alone may be given as it is.

    Raises: PlanError for what is no text, or no number of what can be sampled.
    """

    families: str = attrs.field(default=DEFAULT_FAMILIES, validator=_is_text)
    """Families of failures, in the syntax of `--fail`."""
    maintenance: tuple[str, ...] = attrs.field(default=(), converter=_texts, validator=_are_texts)
    """Names of groups, each held down while everything else fails one by one."""
    growth: str = attrs.field(default="", validator=_is_text)
    """`FROM:TO:STEP`, or one factor: of the messages of all demands."""
    costs: tuple[str, ...] = attrs.field(default=(), converter=_texts, validator=_are_texts)
    """`LINK=COST`."""
    links: tuple[str, ...] = attrs.field(default=(), converter=_texts, validator=_are_texts)
    """`A,B,COST` and then `FIELD=NUMBER` of LINK_AMOUNTS: links that are added."""
    moves: tuple[str, ...] = attrs.field(default=(), converter=_texts, validator=_are_texts)
    """`ADDRESS,FROM,TO`: subscribers that are moved."""
    subscribers: tuple[str, ...] = attrs.field(default=(), converter=_texts, validator=_are_texts)
    """`ADDRESS,ROUTER`: subscribers that are added."""
    sample: int | None = attrs.field(default=None, validator=_is_from(1))
    """Sample size of families with more failures; None: all are run."""
    seed: int = attrs.field(default=0, validator=_is_from(0))

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
                found.append((text if name == BASE else f"{name}, {text}", _grown(kind, factor)))
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
        """Request as JSON, in a canonical form."""
        return json.dumps(attrs.asdict(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Request:
        """Read what `to_json` wrote."""
        return cls(**json.loads(text))

    def _changed(self, model: Model) -> Model:
        if self.costs:
            with _faults_of("--cost"):
                model = with_costs(model, _costs(model, self.costs))
        if self.links:
            with _faults_of("--add-link"):
                model = with_links(model, _new_links(model, self.links))
        for text in self.moves:
            with _faults_of("--move-subscriber"):
                model = _moved(model, text)
        for text in self.subscribers:
            with _faults_of("--add-subscriber"):
                model = _subscribed(model, text)
        return model


def of_fields(error: PlanError) -> PlanError:
    """Reword an error about options for callers that use fields of a request."""

    def said(text: str) -> str:
        for option, field in FIELDS.items():
            text = text.replace(option, field)
        return text

    return PlanError(
        attrs.evolve(each, key=said(each.key), message=said(each.message), expected=said(each.expected))
        for each in error.findings
    )


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
        steps = _steps(text, *numbers)
    return tuple(Decimal(f"{factor.normalize():f}") for factor in steps if factor != 1)


def _steps(text: str, low: Decimal, high: Decimal, step: Decimal) -> list[Decimal]:
    """Factors from *low* to *high*. Raises: PlanError, also where the last step doesn't end there."""
    if low > high:
        turned = ":".join(str(number) for number in (high, low, step))
        raise plan_error("--growth", f"`{text}`: FROM, {low}, is above TO, {high}", "the lower factor first", turned)
    try:
        count = (high - low) // step + 1
    except InvalidOperation:  # more steps than a Decimal has digits for
        raise plan_error("--growth", f"`{text}` has too many steps", f"1 to {MAX_GROWTH_STEPS} steps") from None
    if count > MAX_GROWTH_STEPS:
        raise plan_error("--growth", f"`{text}` has {count} steps", f"1 to {MAX_GROWTH_STEPS} steps")
    found = [low + number * step for number in range(int(count))]
    if found[-1] != high:
        even = _dividing(high - low, step)
        near = None if even is None else f"{low}:{high}:{even.normalize():f}"
        expected = f"a STEP with which TO is one of the factors; this one ends at {found[-1].normalize():f}"
        raise plan_error("--growth", f"`{text}`: no step ends at TO, {high}", expected, near)
    return found


def _dividing(span: Decimal, step: Decimal) -> Decimal | None:
    """The step nearest to *step* of which a whole number make *span*, above 0; None when all have many digits."""
    wanted = int(span / step)
    counts = sorted(range(1, 2 * wanted + 10), key=lambda count: abs(span / count - step))
    exact = (span / count for count in counts)
    return next((each for each in exact if len(each.normalize().as_tuple().digits) <= STEP_DIGITS), None)


def _grown(model: Model, factor: Decimal) -> Model:
    """The model of grown traffic. Raises: PlanError, since it is the option that leads out of range."""
    try:
        return grown(model, float(factor))
    except ModelError as error:
        first = error.findings[0]
        raise plan_error("--growth", f"`{factor}`: {first.key}: {first.message}", first.expected) from error


def _words(option: str, text: str, form: str) -> list[str]:
    """The parts of an option's value, from the right: an address may have commas."""
    count = form.count(",")
    words = [word.strip() for word in text.rsplit(",", count)]
    if len(words) != count + 1 or not all(words):
        raise plan_error(option, f"`{text}`", form)
    return words


def _whole(option: str, text: str, word: str) -> int:
    if not word.isascii() or not word.isdigit() or len(word) > MOST_DIGITS:
        raise plan_error(option, f"`{text}`: `{word}` is no cost", "a whole number from 1")
    return int(word)


def _cost(text: str) -> tuple[str, int]:
    link, sign, cost = text.rpartition("=")
    if not sign or not link.strip():
        raise plan_error("--cost", f"`{text}`", "LINK=COST")
    return link.strip(), _whole("--cost", text, cost.strip())


@contextmanager
def _faults_of(option: str) -> Iterator[None]:
    """Name the option that makes a model which can't be.

    Raises: PlanError
    """
    try:
        yield
    except PlanError:
        raise
    except ModelError as error:
        raise PlanError(attrs.evolve(each, key=f"{option}: {each.key}") for each in error.findings) from error


def _check_known(option: str, text: str, what: str, name: str, known: Iterable[str]) -> None:
    """Refuse a name that the model does not have.

    Raises: PlanError with what there is.
    """
    there = sorted(set(known))
    if name in there:
        return
    near = nearest_name(name, there)
    expected = "" if near or not there else f"one of {listed(there, most=NAMED)}"
    raise plan_error(option, f"`{text}`: the model has no {what} `{name}`", expected, near)


def _costs(model: Model, texts: Sequence[str]) -> dict[str, int]:
    """Read the new costs of links, by link id."""
    found: dict[str, int] = {}
    links = [link.id for link in model.links]
    for text in texts:
        link, cost = _cost(text)
        _check_known("--cost", text, "link", link, links)
        if link in found:
            raise plan_error("--cost", f"`{text}`: the cost of `{link}` is given twice", "each link once")
        found[link] = cost
    return found


def _new_links(model: Model, texts: Sequence[str]) -> list[LinkEdge]:
    """Make new links, each with the next usual id that is free."""
    try:
        found = added_links(texts, _routers(model), (link.id for link in model.links))
    except AddedLinkError as error:
        raise plan_error("--add-link", error.finding.message, error.finding.expected) from None
    for text, link in zip(texts, found, strict=True):
        for end in (link.a, link.b):
            _check_known("--add-link", text, "router", end, _routers(model))
    return found


def _routers(model: Model) -> list[str]:
    return [router.id for router in model.routers]


def _moved(model: Model, text: str) -> Model:
    address, origin, target = _words("--move-subscriber", text, "ADDRESS,FROM,TO")
    option = "--move-subscriber"
    _check_known(option, text, "subscriber of", address, (each.address for each in model.subscribers))
    there = [each.router for each in model.subscribers if each.address == address]
    _check_known(option, text, f"subscriber of `{address}` at", origin, there)
    _check_known(option, text, "router", target, _routers(model))
    site = _site(model, address, origin)
    assert site is not None
    if origin == target:
        return model
    whole = _joined(_site(model, address, target), attrs.evolve(site, router=target))
    return with_subscribers(model, [whole], removed=[(address, origin)])


def _subscribed(model: Model, text: str) -> Model:
    address, router = _words("--add-subscriber", text, "ADDRESS,ROUTER")
    _check_known("--add-subscriber", text, "address", address, (each.text for each in model.addresses))
    _check_known("--add-subscriber", text, "router", router, _routers(model))
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
