"""Wrong words on the command line: what is said of them."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from router.cli import main
from tests.helpers.spark_presence import needs_spark


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ("confg", "config"),
        ("stat conections", "connections"),
        ("run mesh.yaml --log-level warn", "warning"),
        ("config generate rng", "ring"),
        ("whatif suggest model --goal resiliance", "resilience"),
        ("config chek mesh.yaml", "check"),
        ("user ad file name", "add"),
        ("whatif suggset model", "suggest"),
        ("stat linsk --wehre x", "--where"),
        ("stat links --vebose", "--verbose"),
        ("config graph mesh.yaml --outpt x", "--output"),
        ("whatif run model --gorwth 1:2", "--growth"),
        ("--verson", "--version"),
    ],
)
def test_a_wrong_word_is_answered_with_the_nearest_right_one(words: str, near: str) -> None:
    result = CliRunner().invoke(main, words.split())
    assert result.exit_code == 2
    assert result.output.rstrip().endswith(f"Did you mean '{near}'?")


@pytest.mark.parametrize("group", ["", "config", "user", "whatif"])
def test_what_a_command_is_for_fits_its_line(group: str) -> None:
    said = CliRunner().invoke(main, [*group.split(), "--help"], terminal_width=80).output
    assert "..." not in said.partition("Commands:")[2]


def test_the_help_of_a_command_says_what_is_so() -> None:
    said = CliRunner().invoke(main, ["replay", "--help"]).output
    assert "None" not in said
    said = " ".join(CliRunner().invoke(main, ["top", "--help"]).output.split())
    assert "by default all routers of the mesh" in said


def test_a_group_without_a_command_shows_its_help() -> None:
    help_text = CliRunner().invoke(main, ["user", "--help"]).stdout
    assert "Commands:\n  add" in help_text
    assert help_text in CliRunner().invoke(main, ["user"]).output


@pytest.mark.parametrize("words", ["stat --xyz", "stat -Q", "stat links -wehre x"])
def test_an_option_that_is_like_none_is_answered_without_a_guess(words: str) -> None:
    result = CliRunner().invoke(main, words.split())
    assert result.exit_code == 2
    assert result.output.splitlines()[-1].startswith("Error: No such option")
    assert "Did you mean" not in result.output


def test_a_word_that_is_like_none_is_answered_with_those_that_there_are() -> None:
    result = CliRunner().invoke(main, ["stat", "xyz"])
    assert result.exit_code == 2
    assert "'connections', 'links'" in result.output
    assert "Did you mean" not in result.output


def test_words_are_shown_as_they_are_written_though_small_letters_will_do() -> None:
    result = CliRunner().invoke(main, ["stat", "--sasl", "PLAN"])
    assert "'SCRAM-SHA-256'" in result.output
    assert result.output.endswith("Did you mean 'PLAIN'?\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("stat --json --csv", "--json and --csv exclude each other"),
        ("stat --url http://127.0.0.1:1", "http://127.0.0.1:1 is an address of HTTP, which is for browsers"),
        (
            "stat --url amqp://a..b:1",
            "amqp://a..b:1 has a dot with nothing before it; expected a host name or an address",
        ),
        ("stat --url amqp://[::", "amqp://[:: is no address of AMQP: amqp://HOST:PORT is expected"),
        ("stat --url amqp://h:99999", "the port of amqp://h:99999 is 99999; expected one from 1 to 65535"),
        ("send x m --url amqp://127.0.0.1:-1", "the port of amqp://127.0.0.1:-1 is -1; expected one from 1 to 65535"),
        ("ping --url amqp://127.0.0.1:0", "the port of amqp://127.0.0.1:0 is 0; expected one from 1 to 65535"),
        ("stat --url amqp://::1:41001", "amqp://::1:41001 is no address of AMQP: amqp://HOST:PORT is expected"),
        ("ping --url amqp:///127.0.0.1:41001", "amqp:///127.0.0.1:41001 is no address of AMQP"),
        ("ping --url amqp://127.0.0.1:", "amqp://127.0.0.1: is no address of AMQP"),
        ("ping --url amqp://127.0.0.1:41001:5", "amqp://127.0.0.1:41001:5 is no address of AMQP"),
        ("ping --url amqp://", "amqp:// is no address of AMQP"),
        ("ping --url amqp://user@:5672", "amqp://user@:5672 is no address of AMQP"),
        pytest.param(
            "whatif snapshot amqp://::1:41001 -o x", "amqp://::1:41001 is no address of AMQP", marks=needs_spark
        ),
        ("ping --url amqp://127.0.0.1:abc", "abc is no address of AMQP: amqp://HOST:PORT is expected"),
        (
            "stat connections --timeout inf",
            "'inf' is not valid; expected a number above 0 and up to 2592000",
        ),
        (
            "stat connections --timeout nan",
            "'nan' is not valid; expected a number above 0 and up to 2592000",
        ),
        ("stat --ca x --url amqp://h", "--ca goes with TLS, which amqp://h does without: expected amqps://HOST:PORT"),
        ("stat --insecure --url u:p@h", "--insecure goes with TLS, which"),
        pytest.param(
            "whatif snapshot amqp://h --certificate x -o y",
            "--certificate goes with TLS, which amqp://h does without",
            marks=needs_spark,
        ),
        ("stat --interval 3", "--interval and --looks go with --watch"),
        ("stat links --looks 2", "--interval and --looks go with --watch"),
        (
            "manage query --type listener --name x",
            "query is about no single entity: --name and --id go with read, create",
        ),
        ("manage reload --id x", "reload is about no single entity"),
        ("manage create --type listener --id 7", "--name goes with create, and not --id"),
        ("manage read --type router x=1", "read has no attribute `x`; it takes none"),
        ("send x --size 3 --as json", "--as json has its body from BODY or --file"),
        ("stat --interval x", "Invalid value for '--interval': 'x' is not valid; expected a number from 0.2"),
        ("stat credit --limit x", "Invalid value for '--limit': 'x' is not valid; expected a whole number from 1"),
        ("send x m --rate inf", "Invalid value for '--rate': 'inf' is not valid; expected a number above 0"),
        ("send x m -p n=9223372036854775808", "9223372036854775808 is no whole number that AMQP has: -2^63 to 2^63-1"),
        ("send x [-9223372036854775809] --as json", "-9223372036854775809 is no whole number that AMQP has"),
        ("manage get-log limit=99999999999999999999999", "99999999999999999999999 is no whole number that AMQP has"),
        ("ping --url amqp://u:secret@a..b", "amqp://u:***@a..b has a dot with nothing before it"),
        pytest.param(
            "whatif snapshot a..b -o out", "the host of a..b has a dot with nothing before it", marks=needs_spark
        ),
        ("whatif watch amqp://a b..c --checkpoint x --model y", "b..c has a dot with nothing before it"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(words: str, said: str) -> None:
    result = CliRunner().invoke(main, words.split())
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
