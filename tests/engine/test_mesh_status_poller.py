"""A console asks the routers that can be reached what is wrong there, and how much they do."""

from __future__ import annotations

from router.views.management_service import serve_management
from router.views.mesh_status_poller import MeshStatusPoller
from tests.helpers.engine import Bench


def test_a_console_is_answered_though_another_was_made_meanwhile(bench: Bench) -> None:
    routers = bench.mesh(("A", "B"))
    for router in routers:
        serve_management(router)
    served = MeshStatusPoller(routers[0])
    served.ask()
    bench.run()
    before = served.figures("B")
    assert before
    # One that was to take its place, and never came to serve since another setting was wrong.
    MeshStatusPoller(routers[0])
    sender = bench.client(routers[1]).sender("x")
    bench.client(routers[1]).receiver("x", credit=10)
    sender.send(b"\x00Sw@", settled=True)
    bench.advance(5)
    served.ask()
    bench.run()
    after = served.figures("B")
    assert (before["in"], after["in"]) == (0, 1)
