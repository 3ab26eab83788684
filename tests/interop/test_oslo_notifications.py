"""oslo.messaging's notifications across two routers: with listeners, without one, and with one that is late."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest

from tests.helpers.oslo import LINE, OsloWorker, mesh_of, needs_oslo, oslo_url
from tests.helpers.processes import MeshProcesses, wait_until

pytestmark = [pytest.mark.interop, needs_oslo]

FAILED = "Could not send notification"
"""What the driver's Notifier logs; it never raises."""


@attrs.define(eq=False)
class Field:
    mesh: MeshProcesses
    listeners: OsloWorker
    notifiers: OsloWorker

    def failures(self) -> int:
        """Notifications that the driver has given up."""
        return self.notifiers.log().count(FAILED)

    def payloads(self, *names: str) -> list[object]:
        """Of all notifications that these listeners got."""
        return [payload for name in names for _, _, _, payload in self.listeners.do("seen", name=name)]


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    folder = tmp_path_factory.mktemp("oslo")
    with (
        MeshProcesses(mesh_of(LINE), folder) as mesh,
        OsloWorker(folder / "listeners.log") as listeners,
        OsloWorker(folder / "notifiers.log") as notifiers,
    ):
        mesh.start()
        mesh.wait_converged()
        for router in ("A", "B"):
            listeners.do("open", transport=router, url=oslo_url(mesh, router), kind="notification")
        notifiers.do("open", transport="B", url=oslo_url(mesh, "B", default_notify_timeout=5), kind="notification")
        yield Field(mesh, listeners, notifiers)


def test_each_notification_reaches_one_listener_once_by_its_priority(field: Field) -> None:
    failures = field.failures()
    for router in ("A", "B"):
        field.listeners.do("listen", transport=router, topic="news", name=router)
    for number in range(40):
        priority = "error" if number % 4 == 0 else "info"
        field.notifiers.do(
            "notify", transport="B", topic="news", event="changed", payload={"number": number}, priority=priority
        )
    wanted = [{"number": number} for number in range(40)]
    wait_until(lambda: len(field.payloads("A", "B")) >= 40, "all notifications arrive", 15)
    assert sorted(field.payloads("A", "B"), key=str) == sorted(wanted, key=str)
    for name in ("A", "B"):
        for priority, publisher, event, payload in field.listeners.do("seen", name=name):
            assert (priority, publisher, event) == (
                "error" if payload["number"] % 4 == 0 else "info",
                "tests",
                "changed",
            )
    assert field.failures() == failures


def test_a_listener_at_another_router_gets_what_it_gave_back_again(field: Field) -> None:
    """REQUEUE is `released`: the notifier hears of it and sends again after `link_retry_delay`."""
    failures = field.failures()
    field.listeners.do("listen", transport="A", topic="back", name="back")
    field.listeners.do("requeue", name="back", count=1)
    field.notifiers.do("notify", transport="B", topic="back", event="e", payload="again")
    assert field.payloads("back") == ["again", "again"]
    assert field.failures() == failures


def test_a_notification_without_a_listener_fails_in_the_end_and_holds_up_no_other(field: Field) -> None:
    field.listeners.do("listen", transport="A", topic="heard", name="heard")
    failures = field.failures()
    unheard = field.notifiers.begin("notify", transport="B", topic="unheard", event="e", payload="lost")
    field.notifiers.do("notify", transport="B", topic="heard", event="e", payload="found")
    assert not unheard.is_done
    unheard.result(15)
    wait_until(lambda: field.failures() == failures + 1, "the driver gives up", 5)
    # A listener that comes too late finds nothing, not even an empty message in its place, and all of its credit.
    field.listeners.do("listen", transport="A", topic="unheard", name="late")
    # By a fresh connection: on the old one the driver takes the acknowledgement for that of the message that expired.
    field.notifiers.do("open", transport="fresh", url=oslo_url(field.mesh, "B"), kind="notification")
    field.notifiers.do("notify", transport="fresh", topic="unheard", event="e", payload="next")
    wait_until(lambda: field.payloads("late") == ["next"], lambda: str(field.payloads("late")), 10)
    assert field.payloads("heard") == ["found"]
    assert "Traceback" not in field.listeners.log()


def test_a_listener_that_comes_within_the_deadline_gets_what_waits(field: Field) -> None:
    failures = field.failures()
    orders = [
        field.notifiers.begin("notify", transport="B", topic="soon", event="e", payload=number) for number in range(5)
    ]
    field.listeners.do("listen", transport="A", topic="soon", name="soon")
    for order in orders:
        order.result(10)
    assert sorted(field.payloads("soon")) == [0, 1, 2, 3, 4]
    assert field.failures() == failures
