"""Lines of the log about a settings file, at a start and when it is read again: what `amqp-mesh config check` says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mesh_config.findings import Finding


def log_findings(log: Any, findings: Iterable[Finding]) -> None:
    """Write a line for each finding, of the level that its severity has.

    Args:
        log: of the router.
        findings: in the order in which they are written.
    """
    for finding in findings:
        hints = {"expected": finding.expected or None, "nearest": finding.nearest}
        getattr(log, finding.severity.value)(
            "settings_finding",
            place=finding.place,
            key=finding.key,
            message=finding.message,
            **{word: hint for word, hint in hints.items() if hint is not None},
        )
