"""The folder of a run, as who asks a run later finds it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import attrs

from mesh_config.findings import nearest
from router.whatif.formats.model_folder import read_model, write_model
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.chunk_evaluator import ECMP
from router.whatif.pipeline.local_summaries import ScenarioRange
from router.whatif.pipeline.run_completeness import check_complete, has_tables
from router.whatif.pipeline.table_files import read_table
from router.whatif.pipeline.table_layouts import RUN, TableError
from router.whatif.scenarios.run_request import Request
from router.whatif.wording import BASE

MODEL: Final = "model"
"""Folder in it with the model that was run: what is asked about a run later needs it."""
VARIANTS: Final = "variants"
"""Folder in it with the models of variants that no request makes, each in a folder of its name, quoted."""


def is_run(folder: Path) -> bool:
    """Whether a folder is a run, all of it; else it may be a model.

    Raises: TableError when it is a run of which something is missing, and which would answer wrongly.
    """
    if not has_tables(folder):
        return False
    if not (folder / MODEL).is_dir():
        raise TableError(f"{folder / MODEL}: no such folder; expected the model that was run, which is written with it")
    check_complete(folder)
    return True


@attrs.frozen
class RunPlan:
    """The plan of a run, as its table `run` has it."""

    variants: tuple[str, ...]
    """Names, the mesh as it is first."""
    sections: tuple[Mapping[str, Any], ...]
    """Ranges of scenario numbers, in their order: `first`, `count`, `variant`, `family` and others."""
    _request: Mapping[str, Any]

    @property
    def request(self) -> Request:
        """The request that it was made of."""
        return Request.from_json(json.dumps(self._request))

    @property
    def ranges(self) -> list[ScenarioRange]:
        """The sections as ranges."""
        return [
            ScenarioRange(each["variant"], each["family"], each["first"], each["first"] + each["count"])
            for each in self.sections
        ]


def read_plan(folder: Path) -> RunPlan:
    """Read the plan of a run. Raises: TableError when its table is missing, or has no row."""
    rows = read_table(folder, RUN.name, ["plan"]).to_pylist()
    if len(rows) != 1:
        raise TableError(f"{folder / RUN.name}: {len(rows)} rows; expected one")
    plan = json.loads(rows[0]["plan"])
    return RunPlan(tuple(plan["variants"]), tuple(plan["sections"]), plan["request"])


def model_of(folder: Path) -> Model:
    """The model of a run. Raises: SettingsError when there is none, or it can't be used."""
    return read_model(folder / MODEL)


def is_split(folder: Path) -> bool:
    """Whether a run splits what is sent over all shortest paths. Raises: TableError when its table is missing."""
    (row,) = read_table(folder, "run").to_pylist()
    return bool(row["routing"] == ECMP)


def variant_of(folder: Path, model: Model, name: str) -> Model:
    """A variant of a run's model. Raises: TableError when the run has none of that name."""
    if name == BASE:
        return model
    kept = folder / VARIANTS / quote(name, safe="")
    if kept.is_dir():
        return read_model(kept)
    plan = read_plan(folder)
    if name not in plan.variants:
        near = nearest(name, plan.variants)
        hint = f"; did you mean `{near}`?" if near else ""
        raise TableError(f"no variant `{name}` in {folder}; expected one of {', '.join(plan.variants)}{hint}")
    return dict(plan.request.variants(model))[name]


def write_variants(folder: Path, variants: Iterable[tuple[str, Model]]) -> None:
    """Keep models of variants with a run, for `variant_of`.

    Args:
        folder: of the run.
        variants: their names and models.
    Raises: OSError
    """
    (folder / VARIANTS).mkdir(exist_ok=True)
    for name, model in variants:
        write_model(model, folder / VARIANTS / quote(name, safe=""))
