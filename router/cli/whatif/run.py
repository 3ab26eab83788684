"""`amqp-mesh whatif run`: failures, maintenance, growth and changes played through a model."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from mesh_config.findings import Finding, SettingsError, Severity
from router.cli.did_you_mean import HintingChoice
from router.cli.errors import BAD_INPUT, InvalidInputError, faults_of, show
from router.cli.options import WholeNumber
from router.cli.stat_columns import printable
from router.cli.whatif.command_helpers import interruptions, resumed
from router.cli.whatif.options import check_engine, engine_options, output_option, resume_option, spark_settings
from router.cli.whatif.progress_bar import progress
from router.whatif.wording import DEFAULT_FAMILIES


@click.command("run")
@click.argument("model", type=click.Path(readable=False))
@output_option("OUT")
@click.option(
    "--fail",
    "families",
    metavar="FAMILY,...",
    multiple=True,
    default=(DEFAULT_FAMILIES,),
    help="Failures to run: links:N, routers:N (every choice of N; N-M: of N to M), links:N+routers:M, srlg (groups of"
    f" links that fail together, such as those of one duct), sites.  [default: {DEFAULT_FAMILIES}]",
)
@click.option(
    "--maintenance",
    metavar="GROUP",
    multiple=True,
    help="Keep this group down while every other link and router fails, one by one.",
)
@click.option(
    "--growth",
    metavar="FROM:TO:STEP",
    help="Also run with all demands multiplied by FROM, FROM+STEP, ... up to TO; or by one factor.",
)
@click.option("--cost", "costs", metavar="LINK=COST", multiple=True, help="Change the cost of a link to COST.")
@click.option(
    "--add-link",
    "links",
    metavar="A,B,COST,...",
    multiple=True,
    help="Add a link between routers A and B; optional after COST: delay_ms=N, capacity_msgs=N, capacity_bytes=N.",
)
@click.option(
    "--move-subscriber",
    "moves",
    metavar="ADDRESS,FROM,TO",
    multiple=True,
    help="Move the subscribers of ADDRESS at router FROM to router TO.",
)
@click.option(
    "--add-subscriber",
    "subscribers",
    metavar="ADDRESS,ROUTER",
    multiple=True,
    help="Add a subscriber of ADDRESS at ROUTER.",
)
@click.option(
    "--sample",
    type=WholeNumber(min=1),
    metavar="N",
    help="Run a random sample of N scenarios of each family that has more.",
)
@click.option(
    "--seed",
    type=WholeNumber(0, 2**63 - 1),
    default=0,
    show_default=True,
    metavar="S",
    help="Seed of the random choice made by --sample.",
)
@click.option(
    "--pairs",
    type=HintingChoice(("lost", "changed", "none")),
    default="lost",
    show_default=True,
    help="Pairs of routers to list in the table pair_impact.",
)
@click.option(
    "--loads",
    type=HintingChoice(("none", "changed", "all")),
    default="none",
    show_default=True,
    help="Link loads by scenario to list in the table scenario_load.",
)
@click.option(
    "--routing",
    type=HintingChoice(("mesh", "ecmp")),
    default="mesh",
    show_default=True,
    help="mesh: one path, as these routers choose it; ecmp: traffic split evenly over equal-cost paths.",
)
@engine_options
@resume_option
@click.option(
    "--report/--no-report", "has_report", default=True, help="Write report.html and summary.json beside the tables."
)
def run(
    model: str,
    output: str,
    engine: str,
    master: str | None,
    remote: str | None,
    settings: tuple[str, ...],
    workers: int | None,
    pairs: str,
    loads: str,
    routing: str,
    is_resumed: bool,
    has_report: bool,
    **asked: Any,
) -> None:
    """Run failures and changes through MODEL, a folder that `import` or `snapshot` wrote.

    OUT becomes a folder with a table for each kind of result, report.html and summary.json; it appears when it is
    complete, and replaces an existing run. If OUT is an address such as hdfs://name/run, Spark writes it there. All
    changes together (--cost, --add-link, --move-subscriber, --add-subscriber) make one variant of the mesh, which is
    run in addition to the unchanged mesh.

    Exit status: 2 for input that can't be used, 130 when interrupted (--resume continues), 1 when it fails, else 0.
    """
    check_engine(engine, master, remote)
    asked["families"] = ",".join(asked["families"])
    if asked["growth"] is None:
        asked["growth"] = ""
    elif not asked["growth"].strip():
        raise click.UsageError("--growth: empty value; expected FROM:TO:STEP such as 1:2:0.1, or one factor")
    runs = importlib.import_module("router.whatif.pipeline.run")
    options = runs.Options(
        pairs=pairs,
        loads=loads,
        routing=routing,
        engine=engine,
        master=master,
        remote=remote,
        settings=spark_settings(settings),
        workers=workers,
        is_resumed=is_resumed,
    )
    with interruptions(resumed(output)), faults_of(output, BAD_INPUT):
        _run(model, output, options, asked, has_report=has_report)


def _run(folder: str, output: str, options: Any, asked: Mapping[str, Any], *, has_report: bool) -> None:
    runs = importlib.import_module("router.whatif.pipeline.run")
    networks = importlib.import_module("router.whatif.kernel.network_arrays")
    request = importlib.import_module("router.whatif.scenarios.run_request").Request(**asked)
    model = importlib.import_module("router.whatif.formats.model_folder").read_model(folder)
    show(importlib.import_module("router.whatif.formats.importer").parts_warning(model, folder), err=True)
    verdicts: list[Any] = []

    def finish(path: Path) -> None:
        if has_report:
            verdicts.extend(importlib.import_module("router.whatif.report.finish_run").complete_run(path, model))
        else:  # without what draws
            importlib.import_module("router.whatif.analysis.derived_tables").write_answers(path, model)

    with progress() as on_progress:
        try:
            done = runs.run(model, request, output, options, on_progress=on_progress, finish=finish)
        except networks.NetworkError as error:
            finding = Finding(severity=Severity.ERROR, file=folder, message=str(error))
            raise InvalidInputError(SettingsError([finding]), BAD_INPUT) from error
    played = done.scenarios - done.resumed
    rate = f" ({played / max(done.wall_s, 1e-9):,.0f}/s)" if played else ""
    resumed = f", {done.resumed:,} of them before" if done.resumed else ""
    count = importlib.import_module("router.whatif.wording").counted(done.scenarios, "scenario")
    click.echo(f"{output}: {count} in {done.wall_s:.1f} s{rate} by {done.engine}{resumed}")
    if verdicts and done.variants > 1:
        click.echo("The lines below are about the unchanged mesh; the table family_summary has each variant.")
    for verdict in verdicts:
        click.echo(printable(f"{verdict.label}: {verdict.value}. {verdict.note}"))
