"""Make the fields of settings: what each carries for the loader, the checks, the JSON Schema and the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

MIB = 1024 * 1024

UNSEEN = (
    "\\u0000-\\u001f\\u007f-\\u009f"  # controls
    "\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f"
    "\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb"
)
"""Characters of no width, of which no name consists, as a part of a class of characters: controls, and what turns the
direction of writing or is shown as nothing. Two names that look alike would be two; or one would look like another.
Source: Unicode, Default_Ignorable_Code_Point, without the selectors of a form, which emoji have."""
ID_PATTERN = f"(?!all$)[^\\s/{UNSEEN}]{{1,255}}"
"""Pattern of a router id: it becomes a word of `amqp:/_topo/0/<id>/...`, so no blank and no `/` may be in it, and `all`
means every router there. Neighbors take no longer one."""
NAME_PATTERN = f"(?!\\s)[^{UNSEEN}]+(?<!\\s)"
"""A name by which people and settings refer to something."""
HOST_PATTERN = "[^\\s/\\u0000-\\u001f\\u007f-\\u009f]+"
"""A host name or an address; IPv6 without brackets. `mesh_config.usable_hosts` looks at its form."""
TEXT_PATTERN = "[^\\u0000-\\u001f\\u007f-\\u009f]+"
"""An address, a path, or the name of a user."""
TLS_PROFILE = "a profile of the router's `tls`"


def setting(
    doc: str,
    *,
    default: Any = attrs.NOTHING,
    factory: Callable[[], Any] | None = None,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    pattern: str | None = None,
    beyond: str = "",
    names: str = "",
) -> Any:
    """One setting: an attrs field whose metadata the loader, the checks, the schema and the reference read.

    Args:
        doc: a sentence for operators.
        default: as in `attrs.field`; without it and *factory* the setting must be written.
        factory: as in `attrs.field`.
        unit: of a number, in words; empty for a plain number.
        low: least value of a number, in that unit.
        high: greatest value of a number, in that unit.
        pattern: regular expression (common to Python and ECMA 262) that the whole of a text must match.
        beyond: of a bound, what happens to what is beyond it; for the table in docs/explanation/hostile-peers.md.
        names: of the name of another thing, which thing that is, in words.
    """
    metadata: Mapping[str, object] = {
        "doc": doc,
        "unit": unit,
        "low": low,
        "high": high,
        "pattern": pattern,
        "beyond": beyond,
        "names": names,
    }
    if factory is not None:
        return attrs.field(factory=factory, metadata=metadata)
    return attrs.field(default=default, metadata=metadata)
