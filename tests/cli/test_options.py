"""Options of commands: one that several commands have is declared once."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from router import cli
from router.cli import main
from router.cli.options import shell_word
from router.cli.router_access import RouterAccess


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


def test_every_number_with_a_fraction_is_one_that_is_none_of_nan_and_infinity() -> None:
    others = [
        f"{path}:{node.lineno}: {ast.unparse(node.value)}"
        for path, node in nodes()
        if isinstance(node, ast.keyword) and node.arg == "type" and "loat" in ast.unparse(node.value)
    ]
    assert others == []


@pytest.mark.parametrize("word", ["nan", "inf", "-inf"])
@pytest.mark.parametrize(
    "words", ["bench --seconds", "demo --seconds", "whatif import x --message-bytes", "replay x --from"]
)
def test_no_number_is_refused(words: str, word: str) -> None:
    found = CliRunner().invoke(main, [*words.split(), word])
    assert found.exit_code == 2
    assert f"'{word}' is not a valid number" in found.output or "is not in the range" in found.output


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("amqp://u:***@[::1]:5672", "amqp://u:***@[::1]:5672"),
        ("/etc/mesh/ca.pem", "/etc/mesh/ca.pem"),
        ("a b", "'a b'"),
        ("$management", "'$management'"),
        ("", "''"),
    ],
)
def test_a_hint_can_be_pasted_into_a_shell(text: str, word: str) -> None:
    assert shell_word(text) == word


def test_a_hint_has_the_options_that_reach_the_same_router() -> None:
    access = RouterAccess(url="amqps://h", user="a b", ca="ca.pem", sasl="PLAIN", is_unverified=True)
    assert access.suffix == " --url amqps://h --user 'a b' --ca ca.pem --sasl PLAIN --insecure"
    known = RouterAccess(user="alice", password="secret", password_file="/a b/password")
    assert known.suffix == " --user alice --password-file '/a b/password'"


@pytest.mark.parametrize(
    ("url", "suffix"),
    [
        ("amqps://alice:se%3Acret@h:7", " --url amqps://h:7 --user alice --password-file -"),
        ("alice:secret@[::1]:7/x@y", " --url [::1]:7/x@y --user alice --password-file -"),
        ("amqp://a%20b:secret@127.0.0.1:5672", " --user 'a b' --password-file -"),
        ("amqps://alice@h", " --url amqps://alice@h"),
    ],
)
def test_a_hint_asks_for_a_password_that_stands_in_the_url(url: str, suffix: str) -> None:
    assert RouterAccess(url=url).suffix == suffix
