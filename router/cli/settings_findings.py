"""Findings about settings, shown to the operator."""

from __future__ import annotations

from collections.abc import Iterable

import click

from mesh_config.findings import Finding, SettingsError, Severity

_COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow"}


class BadSettingsError(click.ClickException):
    """A file with which the command cannot go on; shows all its findings and exits with 1."""

    def __init__(self, error: SettingsError) -> None:
        super().__init__(str(error))
        self._findings = error.findings

    def show(self, file: object = None) -> None:
        """Write the findings to standard error."""
        show(self._findings, err=True)


def show(findings: Iterable[Finding], *, err: bool = False) -> None:
    """Write each finding in one line, in colour on a terminal.

    Args:
        err: to standard error.
    """
    for finding in findings:
        click.secho(str(finding), fg=_COLORS[finding.severity], err=err)
