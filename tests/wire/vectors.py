"""Recorded bytes and what is known of them (tests/vectors/README.md)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import attrs

FOLDER = Path(__file__).resolve().parent.parent / "vectors"


@attrs.frozen
class Vector:
    """One file of tests/vectors and its entry in the index."""

    file: str
    data: bytes
    entry: dict[str, Any]

    def section(self, name: str) -> Any:
        """The decoded content of a section; an empty dict when the message has none."""
        return dict(self.entry.get("decoded", ())).get(name, {})


@cache
def load(file: str) -> Vector:
    return Vector(file, (FOLDER / file).read_bytes(), index()[file])


@cache
def index() -> dict[str, dict[str, Any]]:
    entries = json.loads((FOLDER / "index.json").read_text())["entries"]
    return {entry["file"]: entry for entry in entries}


def files(folder: str, suffix: str = ".bin") -> list[str]:
    """Every file of a folder, as pytest parameters."""
    return sorted(f"{folder}/{path.name}" for path in (FOLDER / folder).glob(f"*{suffix}"))
