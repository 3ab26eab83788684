"""YAML with places."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_config import yaml_text
from tests.mesh_config.cases import FILE, Case, assert_only, row

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.sampled_from(
        ["yes", "NO", "on", "1:30", "0o17", "0x1F", "1_000", "~", "null", "=", "<<", "2020-01-01", ".5", "-"]
    )
)
TREES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4))

CASES = (
    row("a duplicate key", "a: 1\nb: 2\na: 3  # here\n", "a", "given twice, first in line 1", "each key once"),
    row("a duplicate key far down", "a:\n- b: 1\n  b: 2  # here\n", "a[0].b", "given twice", "each key once"),
    row("an alias", "a: &x 1\nb: *x  # here\n", "b", "an alias", "`defaults`"),
    row("a list as a key", "a: 1\n? [x]  # here\n: 1\n", "", "as a key", "a word"),
    row("a tag", "a: !!int foo  # here\n", "a", "tag", "a plain value"),
    row("a tag of Python", "a: !!python/name:os.system x  # here\n", "a", "tag", "a plain value"),
    row("two documents", "a: 1\n---  # here\nb: 1\n", "", "expected a single document"),
    row("text that is no YAML", "a: 1\nb: ]  # here\n", "", "not readable as YAML"),
    row("a tab that indents", "a:\n  b: 1\n\tc: 2  # here\n", "", "a tab", "blanks instead of the tab"),
    row("a tab that indents first", "a:\n\t- b  # here\n", "", "cannot start any token", "blanks instead of the tab"),
    row("an indentation too deep", "- a: 1\n    b: 2  # here\n", "", "mapping values", "of the keys beside it"),
    row("an indentation of nobody", "a:\n    b: 1\n  c: 2  # here\n", "", "expected key", "of those beside it"),
    row("a key without its colon", "a: 1\nb 2  # here\n", "", "find expected ':'", "`: ` after a key"),
    row("an open brace", "a: {b: 1,\n  c: 2\nd: 1  # here\n", "", "',' or '}'", "since the `{` of line 1 is open"),
    row("an open bracket", "a:\n- [1\nd: 1  # here\n", "", "',' or ']'", "since the `[` of line 2 is open"),
    row("an open quote", 'a:\n  b: "c\n  d: e  # here', "", "end of stream", "the text that begins in line 2"),
    row("a key among items", "a:\n  - b\n  c: 1  # here\n", "", "'-' indicator", "of the items beside it"),
    row("a character that means something", "a: @b  # here\n", "", "cannot start any token", "quotes around a text"),
    row("an alias of nothing", "a: 1\nb: *x  # here\n", "", "undefined alias"),
    row("a control character", "a: 1\nb: \x07  # here", "", r"the character \x07", r'escape in quotes: `"\x07"`'),
    row("what is no character", "a: 1\n\nb: \uffff  # here", "", r"the character \uffff", "none, or its escape"),
    row("an empty file", "# here\n", "", "the file is empty", "`router` or `routers`"),
    row(
        "a file of Qpid Dispatch",
        "\n# Of qdrouterd\n\nrouter {  # here\n    mode: interior\n}\n",
        "",
        "`router {`: a configuration of Qpid Dispatch",
        "docs/how_to/replace-qdrouterd.md",
    ),
    row("the same in a line", "listener { port: 5672 }  # here", "", "a configuration of Qpid Dispatch"),
    row("deep nesting", "[" * 100_000 + "]" * 100_000 + " # here", "", "nested too deep", "at most 100 levels"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_what_is_not_plain_yaml_is_found_at_its_line(case: Case) -> None:
    findings = yaml_text.read(case.text, FILE)[1]
    if case.line is None:
        assert [(finding.line, finding.key) for finding in findings] == [(1, "")]
    else:
        assert_only(findings, case)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"), ("off", "off"), ("1:30", "1:30"), ("1_000", "1_000"), ("2020-01-01", "2020-01-01"),
        ("true", True), ("FALSE", False), ("~", None), ("", None), ("0123", 123), ("0o17", 15), ("0x1F", 31),
        ("-5", -5), ("1e3", 1000.0), ("5.", 5.0), (".5", 0.5), ("-.INF", float("-inf")), ("'5'", "5"), ("<<", "<<"),
    ],
)  # fmt: skip
def test_scalars_follow_the_core_schema(text: str, value: object) -> None:
    node, findings = yaml_text.read(f"a: {text}\n", None)
    assert not findings
    assert node is not None
    plain = yaml_text.plain(node)
    assert plain == {"a": value}
    assert isinstance(plain, dict)
    assert type(plain["a"]) is type(value)


@given(TREES)
def test_what_is_written_is_read_back(tree: Any) -> None:
    node, findings = yaml_text.read(yaml_text.write([tree]), None)
    assert not findings
    assert node is not None
    assert yaml_text.plain(node) == [tree]


@given(st.text(st.sampled_from("ab:-[]{}&*!|>'\"#%@`,? \n\t01.~<\x00\ufeff")))
def test_any_text_is_read_or_has_findings(text: str) -> None:
    node, findings = yaml_text.read(text, FILE)
    assert node is not None or findings


@pytest.mark.parametrize("text", ["{", "a: [1,\nb", "a:\r- {", "'"])
def test_what_ends_too_early_is_told_of_the_last_line(text: str) -> None:
    _, (finding,) = yaml_text.read(text, "f.yaml")
    assert finding.line == len(text.splitlines())
