"""Inputs that are kept.

`corpus/NAME.hex` has one in each line, found by coverage; `finds/NAME/` has a file for each input that broke a promise
once, named after what it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

CORPUS: Final = Path(os.environ.get("AMQP_MESH_FUZZ_CORPUS") or Path(__file__).parent / "corpus")
FINDS: Final = Path(__file__).parent / "finds"


def kept(name: str) -> list[bytes]:
    """The inputs that are kept for an entry point."""
    file = CORPUS / f"{name}.hex"
    return [bytes.fromhex(line) for line in file.read_text().split("\n")] if file.exists() else []


def finds(name: str) -> dict[str, bytes]:
    """Inputs that broke a promise once, by what they were."""
    return {file.name: file.read_bytes() for file in sorted((FINDS / name).glob("*")) if file.is_file()}


def keep(name: str, inputs: Iterable[bytes]) -> None:
    """Keep these in place of what was kept."""
    lines = sorted({data.hex() for data in inputs}, key=lambda line: (len(line), line))
    (CORPUS / f"{name}.hex").write_text("\n".join(lines))
