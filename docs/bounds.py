"""Write the table of bounds into `explanation/hostile-peers.md`, from settings and from constants of the program.

A setting that is a bound says itself what happens beyond it (`beyond` in `mesh_config.models.setting`); a bound that is
no setting stands in `CONSTANTS` below, where its number is read from the program.

    python docs/bounds.py
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "explanation" / "hostile-peers.md"
BEGIN = "<!-- Made from the program by docs/bounds.py; changes belong there, or into mesh_config/models/. -->\n"
END = "<!-- The end of what is made. -->\n"
CLASSES = (
    "ListenerSettings",
    "VhostSettings",
    "GroupSettings",
    "LinkStateSettings",
    "ForwardingSettings",
    "RecorderSettings",
    "HttpSettings",
    "RouterSettings",
)
HEAD = "| what is bounded | by | default | beyond it |\n|---|---|---|---|\n"

CONSTANTS = (
    ("router.guard.endpoint_guard", "MAX_NAME_BYTES", "Name of a link, in bytes.", "closed"),
    ("router.binding.proton_data", "MOST_PROPERTIES", "Properties of an Open or a link that are read.", "left out"),
    (
        "router.binding.proton_data",
        "MOST_OUTCOME_BYTES",
        "What an error says, in bytes, and annotations of an outcome.",
        "cut, or left out",
    ),
    ("mesh_config.user_names", "MOST_NAME_CHARS", "Name of a user, in characters.", "refused"),
    ("mesh_config.user_names", "MOST_PASSWORD_CHARS", "Password of a user, in characters.", "refused"),
    (
        "router.net.listener",
        "MOST_WAITING",
        "Connections at a listener that wait to be served; half of `max_handshakes`, if that is less.",
        "wait in the kernel",
    ),
    ("router.engine.connection", "MAX_UNANSWERED", "Attaches and Begins whose answers a peer leaves unread.", "closed"),
    ("router.engine.connection", "MAX_REFUSED", "Refused links that a peer doesn't detach.", "closed"),
    (
        "router.ended_connection_reaper",
        "LINKS_AT_ONCE",
        "Links that an ended connection loses at once.",
        "done in later rounds",
    ),
    (
        "router.ended_connection_reaper",
        "MESSAGES_AT_ONCE",
        "Messages that get their outcomes at once then.",
        "done in later rounds",
    ),
    (
        "router.dataplane.slow_streams",
        "STREAM_BYTES_S",
        "A message that is passed on in parts while others wait comes at so many bytes a second, or it is slow.",
        "counted as its address's debt",
    ),
    (
        "router.dataplane.slow_streams",
        "MOST_DEBT_S",
        "Seconds that slow ones to an address keep others waiting; of the debt a hundredth of the time passes.",
        "rejected",
    ),
    (
        "router.core.linkstate.lsdb",
        "MOST_UNHEARD",
        "Routers that others name and that have said nothing themselves.",
        "not there until they do",
    ),
    (
        "router.core.linkstate.due_routers",
        "MOST_AT_ONCE",
        "Routers that are asked for link state, and as many for addresses, in each 0.1 s.",
        "asked later",
    ),
    (
        "router.core.addressing.address_list_parts",
        "MOST_LISTS",
        "Lists of a router's own addresses that others read in parts, each of one state of them.",
        "the one longest unused is made anew",
    ),
    (
        "router.core.addressing.address_list_parts",
        "MOST_CHANGED_BYTES",
        "Changes of another router's addresses that wait for the end of its list, in bytes.",
        "asked for later",
    ),
    (
        "router.core.addressing.address_list_parts",
        "MOST_CHANGED_BYTES_OF_ALL",
        "The same of all routers together.",
        "asked for later",
    ),
    ("router.core.linkstate.neighbors", "MOST_PARALLEL", "Connections to one neighbor.", "closed"),
    ("router.engine.message_codec", "LONGEST_TRACE", "Routers in the trace of a control message.", "not read"),
    (
        "router.run_to_completion",
        "MOST_STEPS",
        "Steps of one turn, of which a large message takes one for each piece.",
        "the turn ends, `turn_fault` is logged",
    ),
    (
        "router.views.management_service",
        "MAX_WAITING",
        "Requests to `$management` of one connection that wait.",
        "rejected",
    ),
    ("router.views.management_service", "MAX_WAITING_BYTES", "The same in bytes.", "rejected"),
    ("router.management.node", "MAX_RESULT_BYTES", "A reply of `$management`, in bytes.", "it ends there, and says so"),
    ("mesh_config.check_router", "MOST_PATTERN_WORDS", "Words of all patterns in `addresses`.", "refused"),
    ("router.dataplane.message_sender", "MAX_STREAMS", "Streaming links to one neighbor.", "large messages share them"),
    ("router.engine.control_links", "CONTROL_BACKLOG", "Control messages that wait for a neighbor.", "closed"),
    (
        "router.engine.control_links",
        "CONTROL_BACKLOG_BYTES",
        "The same in bytes.",
        "what is asked for again is dropped and counted",
    ),
    (
        "router.engine.control_links",
        "MOST_BACKLOG_BYTES",
        "The same with HELLOs and what is said of circuits.",
        "closed",
    ),
)
"""Module and name of each; what it bounds, and what happens beyond it. `closed` is the connection."""


def rows() -> Iterator[tuple[str, str, str, str]]:
    """The cells of each row: settings in the order of their reference, then constants."""
    models = importlib.import_module("mesh_config.models")
    for name in CLASSES:
        for field in attrs.fields(getattr(models, name)):
            beyond = field.metadata.get("beyond")
            if beyond:
                unit = field.metadata["unit"]
                yield field.metadata["doc"], f"`{field.name}`", f"{number(field.default)} {unit}".rstrip(), beyond
    for module, name, what, beyond in CONSTANTS:
        yield what, "fixed", number(getattr(importlib.import_module(module), name)), beyond


def number(value: float) -> str:
    """As people read it: 64 MiB in bytes is 67,108,864."""
    return f"{value:,.10g}" if isinstance(value, float) else f"{value:,}"


def table() -> str:
    """The table in Markdown."""
    return HEAD + "".join(f"| {' | '.join(cells)} |\n" for cells in rows())


def page() -> str:
    """The page with the table as it should be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    PAGE.write_text(page(), encoding="utf-8")
