"""Options of commands: one that several commands have is declared once."""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from router import cli
from router.cli import main
from router.cli.completion_and_man import contexts
from router.cli.manage_and_ping import OPERATIONS, ping
from router.cli.options import MAX_COUNT, BoundedNumber, WholeNumber
from router.cli.router_access import RouterAccess, access_options
from router.cli.stat import WHAT


def nodes() -> Iterator[tuple[Path, ast.AST]]:
    """What the sources of all commands are made of, with the file below `router/cli`."""
    folder = Path(cli.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield path.relative_to(folder), node


def test_an_option_that_several_commands_have_is_declared_once() -> None:
    declared = Counter(
        ast.unparse(node)
        for _, node in nodes()
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("click.option", "click.argument")
    )
    assert len(declared) > 50
    assert [text for text, times in declared.items() if times > 1] == []


def test_one_function_finds_out_how_wide_a_table_may_be() -> None:
    makers = [
        f"{path}:{node.lineno}"
        for path, node in nodes()
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("Console")
        and ast.unparse(node)
        not in ("Console(stderr=True)", "importlib.import_module('rich.console').Console(stderr=True)")
    ]
    assert [maker.partition(":")[0] for maker in makers] == ["table_output_width.py"], (
        "bars go to standard error: no width there"
    )


def test_every_number_of_an_option_is_of_the_two_kinds_with_worded_bounds() -> None:
    others = [
        f"{path}:{node.lineno}: {ast.unparse(node.value)}"
        for path, node in nodes()
        if isinstance(node, ast.keyword)
        and node.arg == "type"
        and re.search(r"loat|Int|INT|\bint\b", ast.unparse(node.value))
    ]
    assert others == []


@pytest.mark.parametrize(
    ("bounds", "in_help", "in_error"),
    [
        (WholeNumber(1, 10_000), "a whole number from 1 to 10000", "a whole number from 1 to 10000; did you mean `1`?"),
        (WholeNumber(1, MAX_COUNT), "a whole number from 1", "a whole number from 1; did you mean `1`?"),
        (WholeNumber(min=1), "a whole number from 1", "a whole number from 1; did you mean `1`?"),
        (
            BoundedNumber(0.001, 3600.0),
            "a number from 0.001 to 3600",
            "a number from 0.001 to 3600; did you mean `0.001`?",
        ),
        (BoundedNumber(min=0, min_open=True), "a number above 0", "a number above 0"),
        (BoundedNumber(0, 60.0, min_open=True), "a number above 0 and up to 60", "a number above 0 and up to 60"),
    ],
)
def test_bounds_are_worded_as_those_of_settings(
    bounds: BoundedNumber | WholeNumber, in_help: str, in_error: str
) -> None:
    command = click.Command("x", params=[click.Option(["--number"], type=bounds)])
    assert f"[{in_help}]" in CliRunner().invoke(command, ["--help"]).output
    assert f"0 is out of range; expected {in_error}\n" in CliRunner().invoke(command, ["--number", "0"]).output
    assert f"'x' is not valid; expected {in_help}\n" in CliRunner().invoke(command, ["--number", "x"]).output


def test_a_number_above_the_largest_is_told_which_that_is() -> None:
    command = click.Command("x", params=[click.Option(["--number"], type=WholeNumber(1, MAX_COUNT))])
    said = CliRunner().invoke(command, ["--number", str(MAX_COUNT + 1)]).output
    assert f"{MAX_COUNT + 1} is out of range; expected a whole number from 1 to {MAX_COUNT}" in said


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ("send x --size 1KiB", "; did you mean `1024`?"),
        ("send x --size 2GB", ""),
        ("send x --ttl 500ms", "; did you mean `0.5`?"),
        ("send x --timeout 2m", "; did you mean `120`?"),
        ("send x --timeout 0s", ""),
        ("send x --count 5s", ""),
    ],
)
def test_a_number_with_its_unit_is_answered_with_the_one_without(words: str, near: str) -> None:
    found = CliRunner().invoke(main, words.split())
    assert found.exit_code == 2
    assert re.search(rf"' is not valid; expected a .*number [^;]*{re.escape(near)}$", found.output)


def test_the_line_of_usage_breaks_within_no_word() -> None:
    for context in contexts(main, "amqp-mesh"):
        program, *words = context.command_path.split()
        shown = CliRunner().invoke(main, [*words, "--help"], prog_name=program, terminal_width=80).output
        pieces = " ".join(context.command.collect_usage_pieces(context))
        assert shown.partition("\n\n")[0].split() == ["Usage:", program, *words, *pieces.split()]


@pytest.mark.parametrize(("command", "words"), [("stat", WHAT), ("manage", OPERATIONS)])
def test_the_help_names_each_word_that_an_argument_takes(command: str, words: tuple[str, ...]) -> None:
    told = re.sub(r"-\s+", "-", CliRunner().invoke(main, [command, "--help"]).output)
    assert [word for word in words if f"`{word}`" not in told] == []


@pytest.mark.parametrize("word", ["nan", "inf", "-inf"])
@pytest.mark.parametrize(
    "words", ["bench --seconds", "demo --seconds", "whatif import x --message-bytes", "replay x --from"]
)
def test_no_number_is_refused(words: str, word: str) -> None:
    found = CliRunner().invoke(main, [*words.split(), word])
    assert found.exit_code == 2
    assert f"'{word}' is not valid; expected a number from " in found.output


def test_a_variable_stands_in_for_each_option_of_a_connection() -> None:
    options = {each.name: each for each in ping.params if isinstance(each, click.Option)}
    variables = {name: option.envvar for name, option in options.items() if option.envvar is not None}
    assert options.keys() - variables.keys() == {"insecure", "timeout"}
    assert all(variable == f"AMQP_MESH_{name.upper()}" for name, variable in variables.items())
    page = (Path(__file__).parents[2] / "docs/how_to/send-and-receive.md").read_text(encoding="utf-8")
    assert [variable for variable in variables.values() if f"`{variable}`" not in page] == []


def test_a_hint_has_the_options_that_reach_the_same_router() -> None:
    access = RouterAccess(url="amqps://h", user="a b", ca="ca.pem", sasl="PLAIN", is_unverified=True)
    assert access.suffix == " --url amqps://h --user 'a b' --ca ca.pem --sasl PLAIN --insecure"
    known = RouterAccess(user="alice", password="secret", password_file="/a b/password")
    assert known.suffix == " --user alice --password-file '/a b/password'"


@pytest.mark.parametrize(
    ("url", "suffix"),
    [
        ("amqps://alice:se%3Acret@h:7", " --url amqps://h:7 --user alice --password-file -"),
        ("alice:secret@[::1]:7/x@y", " --url '[::1]:7/x@y' --user alice --password-file -"),
        ("amqp://a%20b:secret@127.0.0.1:5672", " --user 'a b' --password-file -"),
        ("amqps://alice@h", " --url amqps://alice@h"),
    ],
)
def test_a_hint_asks_for_a_password_that_stands_in_the_url(url: str, suffix: str) -> None:
    assert RouterAccess(url=url).suffix == suffix


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("alice:secret@h", "alice:***@h"),
        ("alice:secret@[::1]:7/x@y", "alice:***@[::1]:7/x@y"),
        ("amqp://alice:my secret@h", "amqp://alice:***@h"),
        ("amqps://alice:se%3Acret@h:7", "amqps://alice:***@h:7"),
        ("amqp://alice@h", "amqp://alice@h"),
        ("amqp://h:5672/x@y", "amqp://h:5672/x@y"),
        ("[::1]:7/x:y@z", "[::1]:7/x:y@z"),
    ],
)
def test_no_address_is_shown_with_its_password(url: str, shown: str) -> None:
    assert RouterAccess(url=url).shown == shown


@pytest.mark.parametrize("url", ["amqp://alice:se@cret@h", "alice:se/cret@h", "x://alice:secret@h", "alice:secret@h:0"])
def test_what_is_wrong_with_an_address_is_said_without_its_password(url: str) -> None:
    found = CliRunner().invoke(main, ["ping", "--url", url])
    assert found.exit_code == 2
    assert "alice:***@h" in found.output
    assert "cret" not in found.output


@pytest.mark.parametrize(
    "words", ["config check FILE", "config graph FILE", "user list FILE", "whatif import FILE -o OUT"]
)
def test_whether_a_file_may_be_read_is_found_out_by_reading_it(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mesh.yaml"
    runner = CliRunner()
    runner.invoke(main, ["config", "generate", "ring", "--routers", "3", "-o", str(file)], catch_exceptions=False)
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode, **more: Path(path) != file and access(path, mode, **more))
    given = {"FILE": str(file), "OUT": str(tmp_path / "model")}
    result = runner.invoke(main, [given.get(word, word) for word in words.split()])
    assert "is not readable" not in result.output


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r\nbody", "\nbody"])
@pytest.mark.parametrize("is_file", [False, True], ids=["standard input", "a file"])
def test_a_password_ends_where_its_line_does(tmp_path: Path, is_file: bool, end: str) -> None:
    @click.command
    @access_options
    def show(access: RouterAccess) -> None:
        click.echo(access.password, nl=False)

    text = f"secret{end}".encode()
    file = tmp_path / "password"
    file.write_bytes(text)
    found = CliRunner().invoke(show, ["--user", "u", "--password-file", str(file) if is_file else "-"], input=text)
    assert found.stdout == "secret"
