"""Rows of the tables of findings: a file with a mark at the line that a finding must name."""

from __future__ import annotations

import attrs

from mesh_config.findings import Finding, Severity

MARK = "# here"
FILE = "mesh.yaml"


@attrs.frozen(kw_only=True)
class Case:
    """One thing that is wrong with a file, in the line that ends with `# here`."""

    rule: str
    text: str
    key: str
    found: str
    """Part of the message."""
    expected: str = ""
    """Part of what was expected."""
    nearest: str | None = None
    severity: Severity = Severity.ERROR

    @property
    def line(self) -> int | None:
        lines = [number for number, line in enumerate(self.text.splitlines(), 1) if line.endswith(MARK)]
        return lines[0] if lines else None


def assert_only(findings: tuple[Finding, ...], case: Case) -> None:
    """The case's finding, complete, and no other."""
    assert len(findings) == 1, "\n".join(map(str, findings))
    (finding,) = findings
    assert (finding.severity, finding.line, finding.key, finding.nearest) == (
        case.severity,
        case.line,
        case.key,
        case.nearest,
    ), str(finding)
    assert case.found in finding.message
    assert case.expected in finding.expected
    assert finding.file is not None
    assert finding.file.endswith(FILE)


def row(rule: str, text: str, key: str, found: str, expected: str = "", nearest: str | None = None) -> Case:
    """A case of severity error."""
    return Case(rule=rule, text=text.lstrip("\n"), key=key, found=found, expected=expected, nearest=nearest)


def warning(rule: str, text: str, key: str, found: str, expected: str = "", nearest: str | None = None) -> Case:
    """A case of severity warning."""
    return attrs.evolve(row(rule, text, key, found, expected, nearest), severity=Severity.WARNING)
