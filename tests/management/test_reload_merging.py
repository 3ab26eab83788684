"""Settings of the file and of management, merged at a reload."""

from __future__ import annotations

import pytest

from mesh_config.change_plan import plan_change
from mesh_config.models import AddressSettings, RouterSettings, Treatment
from router.views.reload_merging import running_after


@pytest.mark.parametrize(
    ("created", "is_kept"),
    [
        (AddressSettings(prefix="a.b", treatment=Treatment.MULTICAST), False),
        (AddressSettings(prefix="/a/b/", treatment=Treatment.MULTICAST), False),
        (AddressSettings(pattern="a/b", treatment=Treatment.MULTICAST), True),
        (AddressSettings(prefix="a/c", treatment=Treatment.MULTICAST), True),
    ],
)
def test_a_treatment_of_management_gives_way_to_that_of_the_file(created: AddressSettings, is_kept: bool) -> None:
    before = RouterSettings(id="A")
    running = RouterSettings(id="A", addresses=(created,))
    new = RouterSettings(id="A", addresses=(AddressSettings(prefix="a/b", treatment=Treatment.CLOSEST),))
    after = running_after(running, before, new, plan_change(before, new))
    assert after.addresses == (*new.addresses, *([created] if is_kept else []))
