"""What the daemon sets in its process."""

from __future__ import annotations

import gc

from router.daemon import FULL_COLLECTION, spare_collector


def test_the_collector_looks_through_all_objects_more_rarely() -> None:
    before = gc.get_threshold()
    try:
        spare_collector()
        assert gc.get_threshold() == (*before[:2], FULL_COLLECTION)
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
