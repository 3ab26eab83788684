"""Compare loads under ECMP with those that TopoHub publishes, for each network of a folder.

    python -m tests.measure.whatif.published_loads CHECKOUT/data/sndlib CHECKOUT/data/topozoo

CHECKOUT is the repository that `tests/whatif/data/SOURCES.md` names. Says what differs, and ends with 1 then.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.whatif.topohub_loads import LOADS_WITHIN, largest_difference, published_kinds


def main(folders: Sequence[str]) -> int:
    """Returns: the exit status."""
    compared, different = 0, 0
    worst = 0.0
    for folder in folders:
        for path in sorted(Path(folder).glob("*.json")):
            found = json.loads(path.read_text(encoding="utf-8"))
            for kind in published_kinds(found):
                difference = largest_difference(found, kind)
                compared += 1
                worst = max(worst, difference)
                if difference > LOADS_WITHIN:
                    different += 1
                    print(f"{path.stem}, {kind}: {difference:.5f} percentage points")
    print(f"{compared} sets of loads compared, {different} differ by more than {LOADS_WITHIN}; the most is {worst:.6f}")
    return 1 if different or not compared else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
