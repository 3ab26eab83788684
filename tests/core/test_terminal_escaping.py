"""Text of others in commands: what is shown can be pasted into a shell, and means that text and nothing else."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.core.terminal_escaping import shell_word


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("amqp://u@h:5672", "amqp://u@h:5672"),
        ("amqp://[::1]:5672", "'amqp://[::1]:5672'"),
        ("/etc/mesh/ca.pem", "/etc/mesh/ca.pem"),
        ("a b", "'a b'"),
        ("$management", "'$management'"),
        ("y$(touch x)", "'y$(touch x)'"),
        ("a*b", "'a*b'"),
        ("", "''"),
        ("it's\x1b[0m\\", r"$'it\'s\x1b[0m\\'"),
    ],
)
def test_what_a_shell_would_change_is_quoted(text: str, word: str) -> None:
    assert shell_word(text) == word


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_shell_reads_the_word_as_the_text_and_shows_nothing_that_steers(text: str) -> None:
    word = shell_word(text)
    assert word.isprintable()
    said = subprocess.run(
        ["bash", "-c", f"printf %s {word}"], capture_output=True, env={"LC_ALL": "C.UTF-8"}, timeout=60, check=True
    )
    assert said.stdout.decode() == text
