"""Values of messages as they are shown."""

from __future__ import annotations

import json

import pytest

from router.cli.amqp_value_formatting import json_line

STEERING = "\x1b[2J\x9b2J\u202eabc\u2028\udcff"
"""Clears a screen, by C0 and by C1; turns the direction of writing; ends a line; is no character."""


@pytest.mark.parametrize("is_ascii", [False, True])
def test_a_line_of_json_steers_no_terminal_and_says_the_same(is_ascii: bool) -> None:
    value = {STEERING: [f"ü{STEERING}", 1.5, None]}
    line = json_line(value, is_ascii=is_ascii)
    assert line.isprintable()
    assert line.isascii() == is_ascii
    assert json.loads(line) == value
