"""A page takes its share of the time and no more, whoever asks for it and is gone before it is there."""

from __future__ import annotations

from collections.abc import Generator

import trio
import trio.testing

from router.management.throttled_page import LEAST_S, ThrottledPage

STEPS = 20


class Maker:
    """Makes pages that are numbered."""

    def __init__(self) -> None:
        self.begun = 0
        self.asked = 0

    async def before(self) -> None:
        self.asked += 1
        await trio.sleep(0.1)

    def make(self) -> Generator[None, None, bytes]:
        self.begun += 1
        for _ in range(STEPS):
            yield
        return b"%d" % self.begun


async def ask_and_leave(page: ThrottledPage, *, after_s: float) -> None:
    with trio.move_on_after(after_s):
        await page.get()
        await trio.sleep_forever()


async def test_a_page_is_made_to_its_end_and_counted_though_who_asked_is_gone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    made = Maker()
    page = ThrottledPage(made.make, 0.02, made.before)
    async with trio.open_nursery() as nursery:
        for _ in range(50):  # as if each came when the one before was evicted
            nursery.start_soon(lambda: ask_and_leave(page, after_s=0.001))
            await trio.sleep(0.001)
            assert made.asked == 1
    assert page.cost_s > 0
    assert await page.get() == b"1"
    assert (made.begun, made.asked) == (1, 1)
    await trio.sleep(LEAST_S + page.cost_s / 0.02)
    assert await page.get() == b"2"
