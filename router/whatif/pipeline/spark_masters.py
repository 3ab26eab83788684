"""Addresses of masters of Spark, checked before Java is started, which says of a wrong one only that it has ended."""

from __future__ import annotations

import re
from typing import Final

from mesh_config.findings import nearest

_MASTERS: Final = re.compile(
    r"local"
    r"|local\[([1-9]\d*|\*)(,\s*[1-9]\d*)?\]"
    r"|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
    r"|spark://[^\s:,/]+:\d+(,[^\s:,/]+:\d+)*"
    r"|spark://\[[0-9A-Fa-f:.]+\]:\d+"
    r"|yarn"
    r"|k8s://\S+"
)
EXPECTED: Final = "local[N], spark://HOST:PORT, yarn or k8s://URL"
_WORDS: Final = ("local", "yarn", "local[2]", "local[*]")


def fault_of_master(text: str) -> tuple[str, str | None] | None:
    """Say why a text is no master of Spark, and which one it is nearly; None when it is one."""
    if _MASTERS.fullmatch(text):
        return None
    if re.fullmatch(r"spark://[^\s:,/]+/?", text):
        return f"`{text}` has no port", f"{text.rstrip('/')}:7077"
    return f"`{text}` is no master of Spark", nearest(text, _WORDS)
