"""The summary of a run as JSON, for programs; `summary.schema.json` says what it looks like."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

import attrs

from router.whatif.analysis.credit_plan import PathCountsByCredit
from router.whatif.report.run_facts import Facts, Row
from router.whatif.report.verdicts import Verdict
from router.whatif.wording import failure_of

SCHEMA: Final = "amqp-mesh-whatif"
VERSION: Final = 1
"""Version of the summary's format; it grows when a reader of the old one would be wrong."""
LISTED: Final = 20
"""Rows of each list."""


def schema() -> Any:
    """The JSON Schema of `summary`."""
    return json.loads(resources.files(__package__).joinpath("summary.schema.json").read_text(encoding="utf-8"))


def summary(facts: Facts, found: list[Verdict]) -> dict[str, object]:
    """Sum up the report; numbers are in the units of the tables."""
    run = facts.run
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "model": {
            "name": run["model"],
            "sha256": run["model_hash"],
            "routers": run["routers"],
            "links": run["links"],
            "addresses": len(facts.model.addresses),
            "msgs_per_s": facts.sent_msgs_per_s,
            "has_capacities": facts.has_capacities,
        },
        "run": {
            key: run[key]
            for key in (
                "version", "speed", "engine", "started", "wall_s", "scenarios", "scenarios_per_s", "routing", "pairs",
                "seed", "plan_hash",
            )
        },
        "verdicts": [attrs.asdict(verdict) for verdict in found],
        "base": _scenario(facts.base),
        "worst": {harm: None if row is None else _scenario(row) for harm, row in facts.worst_by.items()},
        "families": [attrs.asdict(family) for family in facts.families],
        "variants": [attrs.asdict(variant) for variant in facts.variants],
        "links": [attrs.asdict(link) for link in facts.links[:LISTED]],
        "single_points_of_failure": {"count": len(facts.spof), "worst": list(facts.spof[:LISTED])},
        "addresses": [attrs.asdict(address) for address in facts.addresses[:LISTED]],
        "credit": {
            "paths": len(facts.credit),
            **attrs.asdict(PathCountsByCredit.of(facts.credit, facts.model)),
            "worst": [row for row in facts.credit if row["is_enough"] is False][:LISTED],
        },
        "placement": list(facts.placement[:LISTED]),
        "availability": None if facts.availability is None else attrs.asdict(facts.availability),
    }  # fmt: skip


def _scenario(row: Row) -> Mapping[str, object]:
    found = {key: row[key] for key in ("scenario", "variant", "family", "group", "failed_links", "failed_routers")}
    found["fails"] = failure_of(row)
    for key in (
        "probability", "unreachable_pairs", "dead_end_pairs", "lost_msgs_per_s", "lost_bytes_per_s", "dead_addresses",
        "starved_publishers", "max_utilisation", "max_utilisation_link", "max_utilisation_src", "stretch_p50",
        "stretch_p95", "stretch_p99", "delay_p50_ms", "delay_p95_ms", "delay_p99_ms", "components",
    ):  # fmt: skip
        found[key] = row[key]
    return found
