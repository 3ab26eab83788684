"""Options and arguments that several commands of what-if have."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from router.cli.did_you_mean import HintingChoice
from router.cli.errors import BAD_INPUT, faults_of
from router.cli.options import BoundedNumber, WholeNumber
from router.cli.stat_columns import printable
from router.whatif.pipeline.held_signals import import_whole
from router.whatif.wording import DEFAULT_FAMILIES

F = TypeVar("F", bound=Callable[..., Any])

down_option: Final = click.option(
    "--down", metavar="NAME", multiple=True, help="Take down this router, link or group. Can be repeated."
)
demands_option: Final = click.option(
    "--demands", metavar="FILE", type=click.Path(readable=False), help="Table of demands, CSV or Parquet."
)
groups_option: Final = click.option(
    "--details",
    "--groups",
    "details",
    metavar="FILE",
    type=click.Path(readable=False),
    multiple=True,
    help="YAML file of groups, failure rates, capacities, addresses and subscribers. Can be repeated; "
    "later files override earlier ones. (--groups: deprecated alias)",
)
single_point_option: Final = click.option(
    "--no-single-point-of-failure",
    is_flag=True,
    help="No single failure may cut off other routers or leave an address without subscribers.",
)
allowed_option: Final = click.option(
    "--allow",
    "allowed",
    metavar="ID",
    multiple=True,
    help="Accept this router, link or group as a single point of failure. Can be repeated.",
)
lost_pairs_option: Final = click.option(
    "--max-lost-pairs",
    type=WholeNumber(min=0),
    metavar="N",
    help="Maximum number of ordered router pairs (both up) that lose connectivity in any scenario.",
)
lost_messages_option: Final = click.option(
    "--max-lost-msgs", type=BoundedNumber(min=0), metavar="X", help="Maximum message loss in any scenario, messages/s."
)
json_option: Final = click.option("--json", "is_json", is_flag=True, help="Write JSON instead of tables.")
fail_option: Final = click.option(
    "--fail",
    "families",
    metavar="FAMILY,...",
    multiple=True,
    default=(DEFAULT_FAMILIES,),
    help=f"Failures to run, as `run --fail`.  [default: {DEFAULT_FAMILIES}]",
)
tries_option: Final = click.option(
    "--tries",
    type=WholeNumber(1, 10**7),
    default=2000,
    show_default=True,
    metavar="N",
    help="Maximum number of candidate meshes to evaluate; each is run through all failures.",
)
resume_option: Final = click.option(
    "--resume", "is_resumed", is_flag=True, help="Continue an interrupted run to OUT: finished parts are kept."
)
master_option: Final = click.option(
    "--master", metavar="URL", help="Address of the Spark master, such as spark://host:7077 or local[2]."
)
remote_option: Final = click.option(
    "--remote", metavar="URL", help="Address of a Spark Connect server, such as sc://host:15002."
)
spark_conf_option: Final = click.option(
    "--spark-conf", "settings", metavar="KEY=VALUE", multiple=True, help="Spark configuration setting. Can be repeated."
)


def _share(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A share of an option's value: `0.999` or `99.9%`.

    A link may be used several times over; ten times, and a share above all, are a percentage without its sign.

    Raises: click.BadParameter
    """
    if value is None:
        return None
    text = value.strip()
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9:
        raise click.BadParameter(f"{value!r} is no share; expected a number such as 0.999, or 99.9%", ctx, param)
    most = 1 if param.name == "min_availability" else 10
    if number > most:
        said = text.removesuffix("%")
        raise click.BadParameter(
            f"{value!r} is more than {most:.0%}; did you mean {said}%, or {number / 100:g}?", ctx, param
        )
    return number


def share_option(name: str, help_text: str, *, default: str | None = None) -> Callable[[F], F]:
    """Take a share, as a number or percentage.

    Args:
        name: of the option.
        help_text: what it is.
        default: as it might be given.
    """
    return click.option(
        name,
        callback=_share,
        metavar="SHARE",
        help=f"{help_text} Such as 0.8 or 80%.",
        default=default,
        show_default=True,
    )


class RunPath(click.Path):
    """A folder of this machine, or a copy of the one elsewhere that an address such as `hdfs://name/run` names."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Give the path of the folder, or of a copy of it that is removed when the command ends."""
        if "://" not in str(value) or ctx is None or ctx.resilient_parsing:
            return super().convert(value, param, ctx)
        folder = ctx.with_resource(tempfile.TemporaryDirectory(prefix="amqp-mesh-"))
        place = Path(folder) / (value.rstrip("/").rpartition("/")[2] or "run")
        click.echo(f"starting Spark, which copies {printable(value)}", err=True)
        with faults_of(value, BAD_INPUT):
            import_whole("router.whatif.pipeline.hadoop_run_staging").copy_run(value, place)
        return place


def folder_argument(name: str, what: str, *, is_elsewhere: bool = True) -> Callable[[F], F]:
    """Take the folder of a run, or of a model.

    Args:
        name: of the parameter.
        what: it is, as the help shows it.
        is_elsewhere: whether it may be on another file system, so that a copy of it does.
    """
    kind = RunPath if is_elsewhere else click.Path
    return click.argument(name, metavar=what, type=kind(path_type=Path))


def check_output(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Refuse a place that can't be written before there is work for it; an address elsewhere is for Spark to refuse.

    Raises: InvalidInputError
    """
    if value is not None and "://" not in str(value) and not ctx.resilient_parsing:
        places = importlib.import_module("router.whatif.pipeline.output_place")
        with faults_of(value, BAD_INPUT):
            places.check_output_place(Path(value))
    return value


def check_model_output(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Refuse a place that can't be written, or that something other than a model has, before there is work for it.

    Raises: InvalidInputError
    """
    check_output(ctx, param, value)
    if value is not None and not ctx.resilient_parsing:
        with faults_of(value, BAD_INPUT):
            importlib.import_module("router.whatif.formats.model_folder").check_model_place(value)
    return value


def output_option(what: str, check: Callable[..., Any] = check_output) -> Callable[[F], F]:
    """Take the folder to be written.

    Args:
        what: it will be, as the help shows it.
        check: refuses places that it can't have.
    """
    return click.option(
        "-o", "--output", metavar=what, type=click.Path(), required=True, help="Folder to write.", callback=check
    )


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say where it does its work."""
    options = (
        click.option(
            "--engine",
            type=HintingChoice(("auto", "local", "spark")),
            default="auto",
            show_default=True,
            help="auto: Spark if its address is given or the run would take more than about 20 s; else processes "
            "on this machine.",
        ),
        master_option,
        remote_option,
        spark_conf_option,
        click.option(
            "--workers",
            type=WholeNumber(1, 1024),
            metavar="N",
            help="Number of worker processes on this machine.  [default: number of CPU cores]",
        ),
    )
    for option in reversed(options):  # the last one that is given is listed first
        command = option(command)
    return command


def check_engine(engine: str, master: str | None, remote: str | None) -> None:
    """Refuse options about the engine that contradict each other, and a master that is none.

    Raises: click.UsageError
    """
    masters = importlib.import_module("router.whatif.pipeline.spark_masters")
    fault = masters.fault_of_addresses(master, remote, is_local=engine == "local", prefix="--")
    if fault is not None:
        raise click.UsageError(str(fault).partition("error: ")[2])


def spark_settings(texts: tuple[str, ...]) -> dict[str, str]:
    """Take settings of Spark from a command line.

    Raises: click.UsageError
    """
    found = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key.startswith("spark."):
            raise click.UsageError(f"--spark-conf {text}: expected KEY=VALUE, such as spark.executor.memory=2g")
        found[key] = value
    return found
