"""Write the table of clients and mechanisms into explanation/security.md, from the cases of the tests.

Run by hand after a change of the cases; a test compares.
"""

from __future__ import annotations

import sys
from pathlib import Path

PAGE = Path(__file__).parent / "explanation" / "security.md"
sys.path.insert(0, str(PAGE.parents[2]))

from tests.helpers.who_gets_in import MECHANISMS_OF, NO_SASL, WHO_GETS_IN  # noqa: E402

BEGIN = "<!-- From here on made by docs/who_gets_in.py from tests/helpers/who_gets_in.py. -->\n"
END = "<!-- The table of clients ends here. -->\n"
WORDS = {"none": "plain", "required": "TLS", "optional": "either"}


def table() -> str:
    """The table in Markdown."""
    clients = list(MECHANISMS_OF)
    mechanisms = dict.fromkeys(mechanism for _, mechanism, _ in WHO_GETS_IN)
    lines = [f"| | {' | '.join(clients)} |", "|---" * (len(clients) + 1) + "|"]
    for mechanism in mechanisms:
        cells = []
        for client in clients:
            modes = [mode for one, other, mode in WHO_GETS_IN if (one, other) == (client, mechanism)]
            cells.append(", ".join(WORDS[mode] for mode in modes) or "not known to it")
        name = mechanism if mechanism == NO_SASL else f"`{mechanism}`"
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def with_table(text: str) -> str:
    """The page with the table as it is now."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return before + begin + "\n" + table() + "\n" + end + after


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
