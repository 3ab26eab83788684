"""The last part of a run with a report: answers from its tables, and the report."""

from __future__ import annotations

from pathlib import Path

from router.whatif import report
from router.whatif.analysis.derived_tables import write_answers
from router.whatif.model.mesh_model import Model
from router.whatif.report.verdicts import Verdict


def complete_run(folder: Path, model: Model) -> list[Verdict]:
    """Add to a run its answers, as `write_answers` does, the report and its summary.

    Args:
        folder: of the run, with all tables of scenarios.
        model: that was run.
    Returns: what was found, in short.
    Raises: TableError, OSError.
    """
    write_answers(folder, model)
    return report.write(folder, model)
