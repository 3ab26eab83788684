"""Write the table of security defaults into `explanation/threat-model.md`, from the settings.

All settings of listeners, virtual hosts and groups are in it, and those of a router that say who may do what, but for
the few that have nothing to do with it.

    python docs/security_defaults.py
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "explanation" / "threat-model.md"
BEGIN = "<!-- Made from the program by docs/security_defaults.py; changes belong into mesh_config/models/. -->\n"
END = "<!-- The end of what is made. -->\n"
HEAD = "| setting | default | what it is |\n|---|---|---|\n"
CLASSES = (("listeners", "ListenerSettings"), ("vhosts", "VhostSettings"), ("groups", "GroupSettings"))
WITHOUT = frozenset({"name", "port", "cost", "max_frame_bytes", "groups"})
OF_ROUTER = ("vhosts", "reserved_files")


def rows() -> Iterator[tuple[str, str, str]]:
    """The cells of each row, in the order of the reference."""
    models = importlib.import_module("mesh_config.models")
    values = importlib.import_module("mesh_config.value_rules")
    for field in values.fields_of(models.RouterSettings):
        if field.name in OF_ROUTER:
            yield f"`{field.name}`", default(field), field.metadata["doc"]
    for where, name in CLASSES:
        for field in values.fields_of(getattr(models, name)):
            if field.name not in WITHOUT:
                yield f"`{field.name}` of {where}", default(field), field.metadata["doc"]


def default(field: object) -> str:
    """The default as an operator would write it."""
    reference = importlib.import_module("mesh_config.reference")
    text: str = reference._default(field)  # the very words of the reference
    return text


def table() -> str:
    """The table in Markdown."""
    lines = (f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n" for cells in rows())
    return HEAD + "".join(lines)


def page() -> str:
    """The page with the table as it should be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    PAGE.write_text(page(), encoding="utf-8")
