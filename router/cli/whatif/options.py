"""Options and arguments that several commands of what-if have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from router.cli.did_you_mean import HintingChoice

F = TypeVar("F", bound=Callable[..., Any])

down_option: Final = click.option(
    "--down", metavar="NAME", multiple=True, help="Let this router, link or group be down. Can be repeated."
)
demands_option: Final = click.option(
    "--demands", metavar="FILE", type=click.Path(), help="Table of demands, CSV or Parquet."
)
groups_option: Final = click.option(
    "--groups",
    "details",
    metavar="FILE",
    type=click.Path(),
    multiple=True,
    help="Groups, failure rates, capacities, addresses and subscribers, YAML. May be given several times.",
)
json_option: Final = click.option("--json", "is_json", is_flag=True, help="Write JSON instead of tables.")
resume_option: Final = click.option(
    "--resume", "is_resumed", is_flag=True, help="Go on with a run to OUT that was interrupted: what is done stays."
)
spark_conf_option: Final = click.option(
    "--spark-conf", "settings", metavar="KEY=VALUE", multiple=True, help="A setting of Spark."
)


def folder_argument(name: str, what: str) -> Callable[[F], F]:
    """Take the folder of a run, or of a model.

    Args:
        name: of the parameter.
        what: it is, as the help shows it.
    """
    return click.argument(name, metavar=what, type=click.Path(exists=True, file_okay=False, path_type=Path))


def output_option(what: str) -> Callable[[F], F]:
    """Take the folder to be written.

    Args:
        what: it will be, as the help shows it.
    """
    return click.option("-o", "--output", metavar=what, type=click.Path(), required=True, help="Folder to write.")


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say where it does its work."""
    options = (
        click.option(
            "--engine",
            type=HintingChoice(("auto", "local", "spark")),
            default="auto",
            show_default=True,
            help="auto: Spark when its address is given or more than about 20 s are to be played, else processes here.",
        ),
        click.option("--master", metavar="URL", help="Spark's master, such as spark://host:7077 or local[2]."),
        click.option("--remote", metavar="URL", help="A server of Spark Connect, such as sc://host:15002."),
        spark_conf_option,
        click.option(
            "--workers",
            type=click.IntRange(1, 1024),
            metavar="N",
            help="Processes on this machine.  [default: processors]",
        ),
    )
    for option in reversed(options):  # the last one that is given is listed first
        command = option(command)
    return command


def check_engine(engine: str, master: str | None, remote: str | None) -> None:
    """Refuse options about the engine that contradict each other.

    Raises: click.UsageError
    """
    if master and remote:
        raise click.UsageError("--master and --remote: only one of them can be given")
    if engine == "local" and (master or remote):
        raise click.UsageError(f"--engine local and {'--master' if master else '--remote'} contradict each other")


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
