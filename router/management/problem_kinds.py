"""Kinds of problems that a router tells of."""

from __future__ import annotations

from typing import Final

PROBLEM_KINDS: Final = (
    "router-absent",
    "link-absent",
    "connector-failed",
    "wrong-role",
    "router-refused",
    "duplicate-router-id",
    "publisher-floods",
    "subscriber-hangs",
    "publishers-blocked",
    "subscriber-slow",
    "no-subscriber",
    "memory",
    "listener-full",
    "unusable-file",
    "dropped",
    "flapping",
    "certificate",
    "router-drained",
    "lost-for-a-while",
)
"""Kinds of problems, the most urgent first. These words are stable: metrics have them as labels."""
NOTICES: Final = ("lost-for-a-while",)
"""Kinds of problems that are over, but still shown for some minutes."""
SEEN_BY_ALL: Final = (
    "router-absent", "link-absent", "duplicate-router-id", "no-subscriber", "flapping", "router-drained",
    "lost-for-a-while",
)  # fmt: skip
"""Kinds of problems that each router of the mesh reports, each in its own way."""
