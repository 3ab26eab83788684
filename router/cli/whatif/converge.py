"""`amqp-mesh whatif converge`: how long the control planes of a mesh take to agree, predicted by its digital twin."""

from __future__ import annotations

import importlib
from typing import Any

import attrs
import click
from rich.table import Table

from mesh_config.generators import KINDS
from mesh_config.models import LinkStateSettings
from router.cli.errors import BAD_INPUT, CommandError, faults_of, show
from router.cli.options import BoundedNumber, WholeNumber
from router.cli.stat_columns import printable
from router.cli.table_output_width import console
from router.cli.whatif.command_helpers import interruptions, resumed
from router.cli.whatif.options import check_engine, engine_options, output_option, resume_option, spark_settings
from router.cli.whatif.progress_bar import progress


@click.command("converge")
@click.argument("model", required=False, type=click.Path(readable=False))
@output_option("OUT")
@click.option(
    "--generate",
    "shapes",
    metavar="SHAPE[:N]",
    multiple=True,
    help=f"Use a mesh of a well-known shape instead of MODEL, of N routers or of --sizes: {', '.join(KINDS)}.",
)
@click.option(
    "--sizes", metavar="N,...", default="", help="Numbers of routers for shapes given without N, such as 10,30."
)
@click.option(
    "--timers",
    metavar="NAME=S,...",
    multiple=True,
    help="Timers of the routers, such as hello_interval_s=0.5,hello_max_age_s=1.5. Can be repeated: each "
    "setting is run.",
)
@click.option(
    "--seeds",
    type=WholeNumber(1, 100_000),
    default=1,
    show_default=True,
    metavar="K",
    help="Number of runs per mesh and timer setting, each with its own seed.",
)
@click.option(
    "--seed", type=WholeNumber(0, 2**31), default=1, show_default=True, metavar="S", help="Seed of the first run."
)
@click.option(
    "--failures",
    type=WholeNumber(0, 100_000),
    default=20,
    show_default=True,
    metavar="N",
    help="Number of failures per run.",
)
@click.option(
    "--kinds",
    metavar="KIND,...",
    help="Kinds of failures, in turn: link, router, silent-link, silent-router.  [default: "
    "link,router,link,router,silent-router]",
)
@click.option("--accumulate", is_flag=True, help="Let failures add up, instead of repairing each before the next one.")
@click.option(
    "--calm",
    type=BoundedNumber(min=0, max=86400),
    default=0.0,
    metavar="SECONDS",
    help="Observe the idle mesh for SECONDS at the end, and count control messages.",
)
@click.option(
    "--delay",
    type=BoundedNumber(min=0, max=60000),
    default=0.5,
    show_default=True,
    metavar="MS",
    help="One-way delay of links that have none in MODEL.",
)
@click.option(
    "--jitter",
    type=BoundedNumber(min=0, max=60000),
    default=0.5,
    show_default=True,
    metavar="MS",
    help="Maximum random extra delay on each link.",
)
@click.option(
    "--cores",
    type=WholeNumber(1, 100_000),
    metavar="N",
    help="Number of CPU cores that all routers share.  [default: one for each router]",
)
@click.option("--instant", is_flag=True, help="Ignore CPU time.")
@engine_options
@resume_option
def converge(output: str, is_resumed: bool, **asked: Any) -> None:
    """Predict how long the routers of MODEL, or of generated meshes, take to converge.

    The control planes of all routers run in one process, under virtual time: they start all at once; then links and
    routers fail, one after the other. Measured for each event are the time until every route is a shortest path, and
    what the routers send and compute meanwhile. The result is the table `convergence` in the folder OUT, which may be
    the folder of a run. Each mesh, timer setting and seed is a task of its own.

    Exit status: 2 for input that can't be used, 130 when interrupted, 1 when it fails or some mesh does not converge,
    else 0.
    """
    with interruptions(resumed(output)), faults_of(output, BAD_INPUT):
        wrong = _converge(output, is_resumed=is_resumed, **asked)
    if wrong:
        words = importlib.import_module("router.whatif.wording")
        after = words.counted(wrong, "event")
        raise CommandError(f"after {after} not all routes were right; see the column `wrong`")


def _converge(
    output: str,
    *,
    model: str | None,
    shapes: tuple[str, ...],
    sizes: str,
    timers: tuple[str, ...],
    seeds: int,
    seed: int,
    is_resumed: bool,
    **asked: Any,
) -> int:
    """Run what is asked for, and show it. Returns: after how many events not all was right."""
    if (model is None) == (not shapes):
        raise click.UsageError("either MODEL or --generate must be given")
    twins = importlib.import_module("router.whatif.convergence.twin_runs")
    convergence = importlib.import_module("router.whatif.convergence.twin")
    engine = _engine(asked)
    if model is not None:
        if sizes:
            raise click.UsageError("--sizes are of shapes; a model has its own")
        mesh = importlib.import_module("router.whatif.formats.model_folder").read_model(model)
        show(importlib.import_module("router.whatif.formats.importer").parts_warning(mesh, model), err=True)
        grounds = [convergence.TwinTopology.of_model(mesh)]
    else:
        grounds = twins.shapes(shapes, _numbers(sizes))
    common = {
        "failures": asked["failures"],
        "kinds": _kinds(asked["kinds"], convergence),
        "is_repaired": not asked["accumulate"],
        "calm_s": asked["calm"],
        "conditions": _conditions(asked),
    }
    cases = twins.grid(
        grounds,
        [twins.timers(text) for text in timers] or [LinkStateSettings()],
        range(seed, seed + seeds),
        lambda **own: convergence.TwinCase(**common, **own),
    )
    with progress() as on_progress:
        table = twins.run(cases, output, **engine, is_resumed=is_resumed, on_progress=on_progress)
    found = twins.summary(table)
    _show(found)
    counted = importlib.import_module("router.whatif.wording").counted
    click.echo(f"{output}: {counted(table.num_rows, 'event')} of {counted(len(cases), 'run')}")
    return sum(row["wrong"] for row in found)


def _numbers(text: str) -> list[int]:
    try:
        found = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        found = [0]
    if any(number < 1 for number in found):
        raise click.UsageError(f"--sizes {text}: expected numbers of routers from 1, such as 10,30,100")
    return found


def _kinds(text: str | None, convergence: Any) -> tuple[Any, ...]:
    if text is None:
        return tuple(convergence.FAILURES)
    possible = {kind.value: kind for kind in convergence.EventKind if kind.value in convergence.CAN_FAIL}
    chosen = [part.strip() for part in text.split(",")]
    for word in chosen:
        if word not in possible:
            raise click.UsageError(f"--kinds: `{word}` is none of {', '.join(possible)}")
    return tuple(possible[word] for word in chosen)


def _conditions(asked: dict[str, Any]) -> Any:
    if asked["instant"] and asked["cores"]:
        raise click.UsageError("--instant and --cores contradict each other")
    usual = importlib.import_module("router.whatif.convergence.simulation_parameters").SimulationParameters()
    network = attrs.evolve(usual.network, delay_s=asked["delay"] / 1000, jitter_s=asked["jitter"] / 1000)
    cpu_costs = None if asked["instant"] else attrs.evolve(usual.cpu_costs, cores=asked["cores"])
    return attrs.evolve(usual, network=network, cpu_costs=cpu_costs)


def _engine(asked: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `twin_runs.run` that say where cases run."""
    engine, master, remote = asked["engine"], asked["master"], asked["remote"]
    check_engine(engine, master, remote)
    options = importlib.import_module("router.whatif.pipeline.run").Options
    settings, workers = spark_settings(asked["settings"]), asked["workers"]
    found = options(engine=engine, master=master, remote=remote, settings=settings, workers=workers)
    return {"spark": found.address if found.wants_spark else None, "workers": workers}


def _show(rows: list[dict[str, Any]]) -> None:
    """One line for each mesh, choice of timers and kind of event."""
    has_timers = any(row["timers"] for row in rows)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", title_justify="left")
    table.title = "time until all routers agree; mean messages, bytes and SPF runs of one router"
    for name, justify in (("mesh", "left"), ("routers", "right"), ("links", "right")):
        table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for name in (*(["timers"] if has_timers else []), "event"):
        table.add_column(name, no_wrap=True)
    for name in ("events", "median", "max", "messages", "kB", "SPF runs"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        cells = [row["mesh"], f"{row['routers']:,}", f"{row['links']:,}"]
        cells += [*([row["timers"] or "defaults"] if has_timers else []), row["kind"]]
        if row["kind"] == "calm":
            cells[-1] += f", {row['period_s']:g} s"
        cells += [
            str(row["events"]) + (f" ({row['wrong']} wrong)" if row["wrong"] else ""),
            _time(row["median_s"]),
            _time(row["most_s"]),
            f"{row['messages']:,.1f}",
            f"{row['kilobytes']:,.1f}",
            f"{row['spf_runs']:,.1f}",
        ]
        table.add_row(*map(printable, cells))
    console().print(table)


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"
