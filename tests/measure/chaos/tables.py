"""What a run came to, as a table of Markdown."""

from __future__ import annotations

from tests.measure.chaos.ledger import VIOLATIONS
from tests.measure.chaos.run import Run
from tests.measure.chaos.stage import ROUTERS


def show(run: Run) -> None:
    """Print it."""
    print("\n".join(lines(run)), flush=True)


def lines(run: Run) -> list[str]:
    """The table of faults, then the totals."""
    ledger = run.stage.ledger
    found = [
        "| fault | times | messages | violations | traffic flows again: median | worst |",
        "|---|---|---|---|---|---|",
    ]
    for row in run.rows.values():
        bad = ", ".join(f"{name}: {count}" for name, count in sorted(row.violations.items())) or "0"
        found.append(
            f"| {row.fault.what} | {row.count} | {row.sent:,} | {bad} | {row.median:.2f} s | {row.worst:.2f} s |"
        )
    count = sum(row.count for row in run.rows.values())
    recoveries = sorted(each for row in run.rows.values() for each in row.recoveries)
    middle = recoveries[len(recoveries) // 2] if recoveries else float("nan")
    worst = recoveries[-1] if recoveries else float("nan")
    bad = str(sum(ledger.violations.values()))
    found.append(f"| all | {count} | {ledger.totals['sent']:,} | {bad} | {middle:.2f} s | {worst:.2f} s |")
    found += ["", f"Seed {run.seed}, {run.seconds / 60:.0f} minutes.", ""]
    found += [f"- {name}: {number:,}" for name, number in sorted(ledger.totals.items())]
    for name, number in sorted(ledger.violations.items()):
        found.append(f"- VIOLATION, {name} ({VIOLATIONS[name]}): {number}")
    for key in ROUTERS:
        sizes = [f"{each[key] / 1e6:.1f}" for each in run.memory]
        found.append(f"- resident memory of {key} without clients, MB: {', '.join(sizes)}")
    if run.calls is not None:
        found.append(
            f"- calls of oslo.messaging: {dict(run.calls.outcomes)}; received more than once: {run.calls.twice}"
        )
    return found
