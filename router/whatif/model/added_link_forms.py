"""Links that are to be added to a mesh, in the forms in which people say them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeGuard

import attrs
import numpy as np

from mesh_config.findings import Finding, Severity
from router.whatif.model.elements import LinkEdge, free_link_id

LINK_AMOUNTS: Final = ("delay_ms", "capacity_msgs", "capacity_bytes")
"""Amounts that may be said of a link in a text: fields of `LinkEdge`."""
MOST_DIGITS: Final = 9
"""Maximum number of digits of a cost, whose bound the model checks."""
FORMS: Final = (
    "a list of links, each a LinkEdge, a text such as `A,B,2,delay_ms=5`, (a, b), (a, b, cost), or a dict with a, b "
    "and other fields of LinkEdge"
)

_ADDED_LINK: Final = re.compile(r"(.*?,[^,=]*)((?:,[^,=]*=[^,]*)*)")
"""Ends and cost, then the amounts, each after a comma. Ids may have commas and equals signs, a cost has none."""

Fields = dict[str, Any]


class AddedLinkError(ValueError):
    """A link that isn't understood; `finding` says why, without a key."""

    def __init__(self, message: str, expected: str) -> None:
        super().__init__(message)
        self.finding = Finding(severity=Severity.ERROR, message=message, expected=expected)


def added_links(given: object, routers: Iterable[str], there: Iterable[str]) -> list[LinkEdge]:
    """Make links of what somebody has said, each with the next usual id that is free unless it has one.

    Args:
        given: links in the forms of FORMS, or one of them alone.
        routers: ids of those of the mesh.
        there: ids of the links of the mesh.
    Raises: AddedLinkError
    """
    known, taken = set(routers), set(there)
    wanted = [_fields(each, known) for each in _each(given, known)]
    for fields in wanted:
        cost = fields.get("cost", 1)
        if not isinstance(cost, int | np.integer) or isinstance(cost, bool):
            raise AddedLinkError(f"the cost {cost!r} of type {type(cost).__name__}", "a whole number from 1")
    found = []
    for fields in wanted:
        if "id" not in fields:
            fields["a"], fields["b"] = min(fields["a"], fields["b"]), max(fields["a"], fields["b"])
            fields["id"] = free_link_id(fields["a"], fields["b"], taken)
        taken.add(fields["id"])
        found.append(LinkEdge(**fields))
    return found


def _each(given: object, routers: set[str]) -> Iterable[object]:
    # Two texts may be two links, each with commas.
    is_one = _is_pair(given) and all(end in routers or "," not in end for end in given[:2])
    if isinstance(given, LinkEdge | str | Mapping) or is_one:
        return [given]
    if isinstance(given, Iterable):
        return list(given)
    raise _other(given)


def _is_pair(given: object) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(given, tuple) and len(given) in (2, 3) and all(isinstance(end, str) for end in given[:2])


def _fields(given: object, routers: set[str]) -> Fields:
    """Fields of the link, without an id where it has none."""
    if isinstance(given, LinkEdge):
        return {field.name: getattr(given, field.name) for field in attrs.fields(LinkEdge)}
    if isinstance(given, str):
        return _of_text(given, routers)
    if _is_pair(given):
        return dict(zip(("a", "b", "cost"), given, strict=False))
    if isinstance(given, Mapping):
        names = [field.name for field in attrs.fields(LinkEdge)]
        others = [str(name) for name in given if name not in names]
        missing = [name for name in ("a", "b") if not isinstance(given.get(name), str)]
        if not others and not missing:
            return dict(given)
        message = f"{given!r}: no field `{others[0]}`" if others else f"{given!r}: `{missing[0]}` is missing"
        raise AddedLinkError(message, f"a dict of {', '.join(names)}, a and b at least")
    raise _other(given)


def _other(given: object) -> AddedLinkError:
    return AddedLinkError(f"{given!r} of type {type(given).__name__}", FORMS)


def _of_text(text: str, routers: set[str]) -> Fields:
    match = _ADDED_LINK.fullmatch(text)
    head, amounts = match.groups() if match is not None else (text, "")
    both, _, cost = head.rpartition(",")
    one, other = _ends(text, both, routers)
    word = cost.strip()
    if not word.isascii() or not word.isdigit() or len(word) > MOST_DIGITS:
        raise AddedLinkError(f"`{text}`: `{word}` is no cost", "a whole number from 1")
    return {"a": one, "b": other, "cost": int(word), **_amounts(text, amounts.split(",")[1:])}


def _ends(text: str, both: str, routers: set[str]) -> tuple[str, str]:
    """Two routers, with a comma between them as it may be in their ids: where both sides are routers."""
    words = both.split(",")
    choices = [
        (",".join(words[:at]).strip(), ",".join(words[at:]).strip()) for at in range(1, len(words))
    ]  # one, unless there are commas in ids
    found = [pair for pair in choices if routers.issuperset(pair)]
    if len(found) == 1:
        return found[0]
    if len(choices) == 1 and all(choices[0]):
        return choices[0]  # the model says which it does not have
    if found:
        ways = " or ".join(f"`{one}` and `{other}`" for one, other in found)
        raise AddedLinkError(f"`{text}` may mean {ways}", "router ids that can be distinguished")
    raise AddedLinkError(f"`{text}`", "A,B,COST, A and B routers")


def _amounts(text: str, words: Sequence[str]) -> dict[str, float]:
    """Read what is said of a link by `FIELD=NUMBER`."""
    found: dict[str, float] = {}
    for word in words:
        name, sign, number = (part.strip() for part in word.partition("="))
        if not sign or name not in LINK_AMOUNTS or name in found:
            expected = f"FIELD=NUMBER, each once, of {', '.join(LINK_AMOUNTS)}"
            raise AddedLinkError(f"`{text}`: `{word.strip()}`", expected)
        try:
            found[name] = float(number)
        except ValueError:
            raise AddedLinkError(f"`{text}`: `{number}` is no number", f"{name}=NUMBER") from None
    return found
