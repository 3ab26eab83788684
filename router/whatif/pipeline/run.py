"""A run: a model and what is asked of it become a folder of tables, by the engine that is wanted."""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import importlib
import importlib.util
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import attrs

from mesh_config.findings import nearest
from router import SPEED, __version__
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import Network, NetworkError
from router.whatif.kernel.network_codec import encode_network
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline import aggregate, local_engine, local_summaries, resumable_units
from router.whatif.pipeline.chunk_evaluator import ECMP, LOADS, LOST, MESH, NO_LOADS, PAIRS, ROUTINGS, VariantWork
from router.whatif.pipeline.held_signals import import_whole
from router.whatif.pipeline.local_engine import EngineResult
from router.whatif.pipeline.output_place import check_output_place
from router.whatif.pipeline.run_completeness import write_row_counts
from router.whatif.pipeline.run_staging import LocalRunStaging, run_error
from router.whatif.pipeline.run_storage import LocalStorage, RunStorage, is_elsewhere
from router.whatif.pipeline.spark_masters import SparkAddress, fault_of_addresses
from router.whatif.pipeline.table_files import write_table
from router.whatif.pipeline.table_layouts import FORMAT
from router.whatif.scenarios.run_request import Request
from router.whatif.scenarios.scenario_plan import Chunk, Plan, PlanError, plan_error, second_of_work

AUTO: Final = "auto"
LOCAL: Final = "local"
SPARK: Final = "spark"
ENGINES: Final = (AUTO, LOCAL, SPARK)

SPARK_VARIABLES: Final = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")
"""Set by spark-submit, and by who wants Spark Connect: then `auto` means Spark."""

LONG_S: Final = 20.0
"""Estimated seconds of work above which `auto` takes Spark."""
FASTER: Final = 1.5
"""Than `second_of_work` assumes, as measured: 179,701 scenarios of 300 routers in 15 s on two cores."""

PLAYING: Final = "running scenarios"
MAKING: Final = "writing tables"
Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is; the last is 0 where that isn't known."""
Finish = Callable[[Path], None]
"""Called with the folder when all tables of scenarios are in it, before it gets its name."""


def _one_of(*choices: str) -> Callable[[object, attrs.Attribute[str], object], None]:
    """Check a field that is one of some words. Raises: PlanError."""

    def check(_: object, field: attrs.Attribute[str], value: object) -> None:
        if value not in choices:
            raise plan_error(field.name, f"`{value}`", f"one of {', '.join(choices)}", nearest(str(value), choices))

    return check


@attrs.frozen(kw_only=True)
class Options:
    """Options of a run. Tables depend on `pairs`, `loads` and `routing` alone.

    Raises: PlanError for a word that there isn't, too few workers, and addresses that contradict each other.
    """

    pairs: str = attrs.field(default=LOST, validator=_one_of(*PAIRS))
    """Choice of the pairs that `pair_impact` lists: one of `chunk_evaluator.PAIRS`."""
    loads: str = attrs.field(default=NO_LOADS, validator=_one_of(*LOADS))
    """Choice of the loads that `scenario_load` lists: one of `chunk_evaluator.LOADS`."""
    routing: str = attrs.field(default=MESH, validator=_one_of(*ROUTINGS))
    """One of `chunk_evaluator.ROUTINGS`."""
    engine: str = attrs.field(default=AUTO, validator=_one_of(*ENGINES))
    """One of ENGINES. `auto` is Spark where there is a session or an address of it, or much to do: `takes_spark`."""
    master: str | None = None
    """Spark's master, such as `spark://host:7077` or `local[2]`."""
    remote: str | None = None
    """A server of Spark Connect, `sc://host:15002`."""
    settings: Mapping[str, str] = attrs.field(factory=dict)
    """Configuration settings of Spark."""
    workers: int | None = None
    """Processes on this machine; None: as many as there are processors."""
    is_resumed: bool = False
    """Whether what an interrupted run has left is kept."""

    def __attrs_post_init__(self) -> None:
        """Check what depends on several fields."""
        if self.workers is not None and self.workers < 1:
            raise plan_error("workers", f"{self.workers}", "1 or more, or None: as many as there are processors")
        if fault := fault_of_addresses(self.master, self.remote, is_local=self.engine == LOCAL):
            raise PlanError([fault])

    @property
    def address(self) -> SparkAddress:
        """Address of Spark."""
        return SparkAddress(master=self.master, remote=self.remote, settings=self.settings, workers=self.workers)

    @property
    def wants_spark(self) -> bool:
        """Whether Spark is asked for: by name, by an address, or by a session that is there."""
        if self.engine != AUTO:
            return self.engine == SPARK
        return bool(self.master or self.remote) or any(map(os.environ.get, SPARK_VARIABLES)) or _has_session()

    def takes_spark(self, plan: Plan) -> bool:
        """Whether a run is made on Spark: it is asked for, or `auto` finds much to be done, and Spark here."""
        if self.engine != AUTO or self.wants_spark:
            return self.wants_spark
        return estimated_s(plan, self.workers or len(os.sched_getaffinity(0))) > LONG_S and _is_spark_here()


def estimated_s(plan: Plan, cores: int) -> float:
    """Estimate the seconds that the local engine takes to play a plan; only numbers of routers and scenarios count."""
    work_s = sum(
        section.count / second_of_work(len(plan.variants[section.variant].elements.routers))
        for section in plan.sections
    )
    return work_s / FASTER / cores


def _has_session() -> bool:
    """Whether this thread has a session of Spark. To ask it doesn't import pyspark."""
    if "pyspark.sql" not in sys.modules:
        return False
    return bool(importlib.import_module("router.whatif.pipeline.spark_session").is_active())


def _is_spark_here() -> bool:
    """Whether Spark could be started on this machine."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin")) if home else None
    return (java or shutil.which("java")) is not None and importlib.util.find_spec("pyspark") is not None


@attrs.frozen(kw_only=True)
class RunSummary:
    """Summary of a run."""

    scenarios: int
    resumed: int
    """Scenarios that an interrupted run had left."""
    variants: int
    """The mesh as it is, and changed or grown ones."""
    engine: str
    wall_s: float


def silent(what: str, done: int, total: int) -> None:
    """Progress that nobody sees."""


def run(
    model: Model,
    request: Request,
    out: str | os.PathLike[str],
    options: Options | None = None,
    *,
    on_progress: Progress = silent,
    finish: Finish | None = None,
    others: Sequence[tuple[str, Model]] = (),
) -> RunSummary:
    """Play scenarios, and write their tables into the folder *out*, which appears when all is in it.

    Args:
        model: that has been checked.
        request: what is played.
        out: a new folder, or a run that is replaced; with a scheme, such as `hdfs://name/run`, Spark writes it there.
        options: where, and what is written; the usual ones when absent.
        on_progress: told what is being done, how much of it is done, and how much there is.
        finish: adds what is made of the tables, such as the report.
        others: further variants, by name; *finish* has to keep their models, see `run_folder.write_variants`.
    Raises: PlanError, ModelError, RunError, NetworkError for what can't be; OSError.
    """
    options = options or Options()
    began, started = time.monotonic(), dt.datetime.now(dt.UTC)
    on_progress("planning", 0, 0)
    variants = (*request.variants(model), *others)
    plan = request.plan(variants)
    identity = _identity(model, request, plan, options)
    if others:
        identity["others"] = [variant.digest() for _, variant in others]
    with _folder(out, options, on_progress) as stage:
        done = stage.open(identity, is_resumed=options.is_resumed)
        rest = [chunk for chunk in plan.chunks() if chunk.number not in done]
        left = sum(chunk.stop - chunk.first for chunk in rest)
        made = _make(stage, plan, rest, _Works(variants, plan, identity), options, on_progress)
        stage.gather()
        for name, table in made.summaries.items():
            write_table(stage.path, table, name)
        wall_s = time.monotonic() - began
        measured = {"started": started.isoformat(timespec="seconds"), "wall_s": wall_s}
        measured["scenarios_per_s"] = len(plan) / wall_s
        aggregate.write_run(stage.path, _run_row(model, request, plan, options, made) | measured)
        if finish is not None:
            on_progress("writing answers", 0, 0)
            finish(stage.path)
        write_row_counts(stage.path)
        stage.finish()
    return RunSummary(
        scenarios=len(plan),
        resumed=len(plan) - left,
        variants=len(variants),
        engine=made.engine,
        wall_s=time.monotonic() - began,
    )


class RunStaging(Protocol):
    """The folder of a run that is under way: `LocalRunStaging` on this machine, or `HadoopRunStaging`."""

    path: Path
    """Folder of this machine for what the driver makes."""

    @property
    def storage(self) -> RunStorage:
        """The folder that is to be that of the run."""

    @property
    def log(self) -> Path:
        """Log of Spark."""

    def open(self, identity: Mapping[str, object], *, is_resumed: bool) -> set[int]:
        """Make the folder, or take what an interrupted run has left. Returns: numbers of chunks that are done."""

    def gather(self) -> None:
        """Have in `path` what answers are made of."""

    def finish(self) -> None:
        """Everything is there: give the folder its name."""

    def close(self) -> None:
        """Let others have the folder; what is done stays there, to be resumed."""


@contextlib.contextmanager
def _folder(out: str | os.PathLike[str], options: Options, on_progress: Progress) -> Iterator[RunStaging]:
    """The folder in which a run is made, by the place where it shall be in the end."""
    if not is_elsewhere(out):
        check_output_place(Path(out))
        here = LocalRunStaging(Path(out))
        try:
            yield here
        finally:
            here.close()
        return
    if options.engine == LOCAL:
        raise run_error(out, "the local engine writes to folders of this machine", "--engine spark, or another folder")
    on_progress("starting Spark", 0, 0)
    elsewhere = import_whole("router.whatif.pipeline.hadoop_run_staging")
    with elsewhere.unfinished(str(out), options.address) as there:
        try:
            yield there
        finally:
            there.close()


def _identity(model: Model, request: Request, plan: Plan, options: Options) -> dict[str, object]:
    """Identity of a run: all that its tables depend on."""
    return {
        "format": FORMAT,
        "version": __version__,
        "model": model.digest(),
        "request": json.loads(request.to_json()),
        "plan": plan.digest(),
        "pairs": options.pairs,
        "loads": options.loads,
        "routing": options.routing,
    }


@attrs.frozen
class _Works:
    """Knowledge of variants that is needed to play them."""

    variants: Sequence[tuple[str, Model]]
    plan: Plan
    identity: Mapping[str, object]

    def of(self, chunks: Iterable[Chunk]) -> dict[int, VariantWork]:
        """Make the work of each variant that has one of *chunks*."""
        places = sorted({chunk.variant for chunk in chunks})
        networks = {place: _network(*self.variants[place]) for place in sorted({0, *places})}
        if self.identity["routing"] != ECMP:
            for network in networks.values():
                network.refuse_asymmetric_costs()
        if len(self.variants) > 1:
            busiest = Kernel(networks[0], is_split=self.identity["routing"] == ECMP).busiest()
            networks = {place: network.measured_as(networks[0], busiest) for place, network in networks.items()}
        found = {}
        for place in places:
            text = json.dumps([self.identity, self.variants[place][0]], sort_keys=True).encode()
            found[place] = VariantWork(
                key=hashlib.sha256(text).hexdigest(),
                network=encode_network(networks[place]),
                plan=self.plan.of_variant(place),
                pairs=str(self.identity["pairs"]),
                loads=str(self.identity["loads"]),
                routing=str(self.identity["routing"]),
            )
        return found


def refuse_unplayable(model: Model) -> None:
    """Refuse a model that can't be played as a mesh routes. Raises: NetworkError."""
    Network.of(model).refuse_asymmetric_costs()


def _network(name: str, model: Model) -> Network:
    """Network of a variant.

    Raises: NetworkError with its name
    """
    try:
        return Network.of(model)
    except NetworkError as error:
        raise NetworkError(f"variant {name}: {error}") from error


def _make(
    stage: RunStaging, plan: Plan, rest: Sequence[Chunk], works: _Works, options: Options, on_progress: Progress
) -> EngineResult:
    """Play what is left to be played, and make the tables.

    Args:
        stage: folder of the run.
        plan: of all of it.
        rest: chunks that have not been played.
        works: of the variants.
        options: of the run.
        on_progress: told what is being done.
    """
    folder, total = stage.path, len(plan)
    done = total - sum(chunk.stop - chunk.first for chunk in rest)

    def on_done(chunk: Chunk) -> None:
        nonlocal done
        done += chunk.stop - chunk.first
        on_progress(PLAYING, done, total)

    if isinstance(stage.storage, LocalStorage) and not options.takes_spark(plan):
        resumable_units.units_to_files(folder)
        on_progress(PLAYING, done, total)
        local_engine.run(works.of(rest), rest, folder, workers=options.workers, on_done=on_done)
        on_progress(MAKING, 0, 0)
        aggregate.write_links(folder, plan)
        aggregate.write_empty(folder, has_loads=options.loads != NO_LOADS)
        return EngineResult(
            engine=LOCAL,
            coverage=aggregate.coverage(folder, plan),
            summaries=local_summaries.of_plan(folder, plan).tables(),
        )

    def on_start(pages: str | None) -> None:
        if pages is not None:
            on_progress(f"Spark's pages: {pages}", done, total)
        on_progress(PLAYING, done, total)

    on_progress("starting Spark", done, total)
    spark = import_whole("router.whatif.pipeline.spark_engine")
    left = resumable_units.chunks_in_files(folder) - resumable_units.chunks_in_units(stage.storage)
    chunks = plan.chunks()
    in_files = [chunks[number] for number in sorted(left)]
    made: EngineResult = spark.run(
        options.address,
        works.of([*rest, *in_files]),
        rest,
        stage.storage,
        log=stage.log,
        left=in_files,
        plan=plan,
        has_loads=options.loads != NO_LOADS,
        on_start=on_start,
        on_done=on_done,
        on_tables=lambda: on_progress(MAKING, 0, 0),
    )
    return made


def _run_row(model: Model, request: Request, plan: Plan, options: Options, made: EngineResult) -> dict[str, Any]:
    sections = json.loads(plan.to_json())
    text = json.dumps({"request": json.loads(request.to_json()), **sections}, sort_keys=True, separators=(",", ":"))
    return {
        "model": model.name,
        "model_hash": model.digest(),
        "plan": text,
        "plan_hash": hashlib.sha256(text.encode()).hexdigest(),
        "routing": options.routing,
        "pairs": options.pairs,
        "loads": options.loads,
        "seed": request.seed,
        "scenarios": len(plan),
        "routers": len(model.routers),
        "links": len(model.links),
        "coverage": made.coverage,
        "residual": None if made.coverage is None else 1.0 - made.coverage,
        "engine": made.engine,
        "version": __version__,
        "speed": SPEED,
    }
