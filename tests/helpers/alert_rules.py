"""Alert rules of examples/monitoring, and the kinds of problems that they name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

RULES = Path(__file__).parents[2] / "examples" / "monitoring" / "alerts.yaml"


def rules() -> dict[str, dict[str, Any]]:
    found = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"][0]["rules"]
    return {rule["alert"]: rule for rule in found}


def alerts_by_kind() -> dict[str, str]:
    """The alert of each kind of problem that a rule names."""
    found: dict[str, str] = {}
    for name, rule in rules().items():
        for kinds in re.findall(r'amqp_mesh_problems\{kind=~?"([^"]*)"\}', rule["expr"]):
            for kind in kinds.split("|"):
                assert kind not in found, f"{kind}: {found[kind]} and {name}"
                found[kind] = name
    return found
