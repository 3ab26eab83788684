"""Link window: the credit of a publisher's link that has a fixed window.

Such a publisher has credit only while somebody, anywhere in the mesh, subscribes to its address. It then gets a fixed
window, counted as credit it holds plus its messages that this router took and that have no outcome yet; when the last
subscriber leaves, what it holds is taken back.

A sender that names an address in each message may name one that nobody serves, so its window begins small
(`doubling_window.py`): it doubles each time that messages for half of it went to where somebody is, up to the setting,
and each RELEASED one halves it.

Source: AMQP 1.0 part 2, 2.6.7.
"""

from __future__ import annotations


def change(is_open: bool, window: int, held: int, in_flight: int) -> int:
    """Find the credit to add to a publisher's link; negative to take back.

    Args:
        is_open: somebody takes messages of the publisher's address.
        window: messages that it may have under way, at least 1.
        held: credit that it holds, messages; below 0 while transfers that it sent before a lowering arrive.
        in_flight: its messages taken by this router and not yet settled, pre-settled ones until they are sent on.
    Returns: messages. Small top-ups wait until half of the window is free, since each costs a frame.
    """
    if not is_open:
        return -held  # DEV-18: qdrouterd leaves it there, and releases what is sent with it.
    free = window - in_flight - held
    if held <= 0 or 2 * free >= window:
        return max(free, -held if held < 0 else 0)
    return 0
