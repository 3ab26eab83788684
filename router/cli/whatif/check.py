"""`amqp-mesh whatif check`: the gate of a pipeline."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import click

from router.cli.errors import BAD_INPUT
from router.cli.options import BoundedNumber, WholeNumber
from router.cli.stat_columns import printable
from router.cli.stdout_errors import failing_with
from router.cli.whatif.command_helpers import answering, need_run, say_json
from router.cli.whatif.options import (
    F,
    allowed_option,
    folder_argument,
    json_option,
    lost_messages_option,
    lost_pairs_option,
    share_option,
    single_point_option,
)

NOT_KEPT = 1


def _named(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    """Limits by name, of texts such as `rpc=20`; a name may have a `=` of its own.

    Raises: click.BadParameter
    """
    found: dict[str, float] = {}
    for value in values:
        name, _, text = value.rpartition("=")
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not name or not 0 <= number < 1e9:
            word = (param.metavar or "NAME=MS").partition("=")[0]
            raise click.BadParameter(f"{value!r}; expected {word}=MS, with a number of milliseconds", ctx, param)
        if name in found:
            raise click.BadParameter(f"{value!r}: `{name}` has a limit already", ctx, param)
        found[name] = number
    return found


def _named_option(name: str, metavar: str, help_text: str) -> Callable[[F], F]:
    return click.option(name, callback=_named, metavar=metavar, multiple=True, help=help_text)


def _limit(name: str, kind: Any, help_text: str, metavar: str) -> Callable[[F], F]:
    return click.option(name, type=kind, metavar=metavar, help=help_text)


@click.command("check")
@folder_argument("folder", "RUN")
@share_option("--max-util", "Maximum utilisation of any link in any scenario.")
@share_option("--max-base-util", "Maximum utilisation of any link while nothing fails.")
@single_point_option
@allowed_option
@lost_pairs_option
@lost_messages_option
@_limit(
    "--max-dead-addresses",
    WholeNumber(min=0),
    "Maximum number of addresses that lose their last subscriber in any scenario.",
    "N",
)
@_limit(
    "--max-starved-publishers",
    WholeNumber(min=0),
    "Maximum number of publishers that find no subscriber in any scenario.",
    "N",
)
@_limit(
    "--max-stretch",
    BoundedNumber(min=1),
    "Maximum 99th percentile of path stretch: the cost after a failure divided by the cost before.",
    "X",
)
@_limit("--max-delay-ms", BoundedNumber(min=0), "Maximum 99th percentile of the one-way delay of paths.", "MS")
@_named_option(
    "--max-address-delay-ms", "ADDRESS=MS", "Maximum 99th percentile of the one-way delay of the address's messages."
)
@_named_option(
    "--max-class-delay-ms",
    "CLASS=MS",
    "Maximum 99th percentile of the one-way delay of the messages of a demand class.",
)
@share_option(
    "--min-availability",
    "Minimum availability (share of messages delivered); time not covered by scenarios counts as lost.",
)
@click.option(
    "--enough-credit", is_flag=True, help="Every path must have the credit that its rate needs while nothing fails."
)
@click.option(
    "--enough-credit-always",
    is_flag=True,
    help="Every path must have the credit that its rate needs in every scenario.",
)
@click.option("--family", "families", metavar="FAMILY", multiple=True, help="Check only scenarios of this family.")
@click.option("--variant", metavar="NAME", default="base", show_default=True, help="Check only this variant.")
@json_option
def check(folder: Path, is_json: bool, **asked: Any) -> None:
    """Check RUN against limits, and show what breaks each.

    A limit that the run has no data for counts as broken: utilisation without capacities, availability without failure
    rates. Limits for the delay of an address or of a class, and --enough-credit-always, run the scenarios again,
    because the tables of a run don't have this.

    Exit status: 0 when all limits are kept, 1 when one is not, 2 for input that can't be used, or files
    and output that can't be read or written.
    """
    checking = importlib.import_module("router.whatif.analysis.check")
    limits = checking.Limits(**asked)
    need_run(folder)
    with failing_with(BAD_INPUT), answering(folder):
        model = importlib.import_module("router.whatif.pipeline.run_folder").model_of(folder)
        answers = checking.check(folder, limits, model)
    if not answers:
        raise click.UsageError("no limit is given: see --help")
    with failing_with(BAD_INPUT):
        if is_json:
            say_json([attrs.asdict(answer) for answer in answers])
        else:
            for answer in answers:
                _say(answer)
    if not all(answer.is_kept for answer in answers):
        raise SystemExit(NOT_KEPT)


def _say(answer: Any) -> None:
    word, color = ("kept  ", "green") if answer.is_kept else ("broken", "red")
    click.echo(f"{click.style(word, fg=color)}  {answer.limit}: {printable(answer.found)}")
    for fault in answer.faults:
        click.echo(f"        {printable(fault)}")
    left = answer.count - len(answer.faults)
    if left > 0:
        click.echo(f"        and {left:,} more")
