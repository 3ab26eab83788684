"""Writes the report of a run into its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.atomic_files import write_atomically
from router.whatif.report.html_page import page
from router.whatif.report.json_summary import summary
from router.whatif.report.pictures import pictures
from router.whatif.report.run_facts import facts_of
from router.whatif.report.verdicts import Verdict, verdicts

PAGE: Final = "report.html"
SUMMARY: Final = "summary.json"


def write(folder: Path, model: Model) -> list[Verdict]:
    """Write `report.html` and `summary.json` beside the tables of a run.

    Args:
        folder: of the run, with all its tables.
        model: that was run.
    Returns: what was found, in short.
    Raises: TableError when a table is missing or not what it should be; OSError.
    """
    facts = facts_of(folder, model)
    found = verdicts(facts)
    text = json.dumps(summary(facts, found), indent=1, allow_nan=False) + "\n"
    write_atomically(folder / SUMMARY, text.encode())
    write_atomically(folder / PAGE, page(facts, found, pictures(facts)).encode())
    return found
