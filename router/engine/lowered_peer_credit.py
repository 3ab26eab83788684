"""Credit that a peer takes back while transfers are on their way to it, as the engine must see it.

A receiver that lowers its credit states what it had seen by then, so the credit can come out below zero (AMQP 1.0 part
2, 2.6.7). Proton counts that by an unsigned number: once the session's window opens it would send all it was given.
"""

from __future__ import annotations

from router.binding import proton_functions as pn
from router.binding.proton_functions import Handle
from router.core.errors import PeerProtocolError
from router.core.ids_and_conditions import Condition
from router.dataplane.links import EgressLink
from router.guard.flow_answers import flow_without_credit
from router.guard.frame_guard import FrameGuard


def withdraw(transport: Handle, guard: FrameGuard, link: EgressLink, excess: int) -> None:
    """Have the engine count no credit for a link of ours, in place of *excess* messages below zero.

    Behind half a frame of the peer there is no place for one more; then the next flow of the link comes by here.

    Raises:
        PeerProtocolError: the peer has links of the same name in several sessions, so it can't be told which it is;
            or the engine goes on counting below zero: its event of that would bring us here again without end.
    """
    try:
        frame = flow_without_credit(guard.peer_sessions, guard.receivers, link.name.encode(), excess)
    except ValueError as error:
        raise PeerProtocolError(f"credit taken back on the link {link.name!r}: {error}") from error
    if frame is None or guard.kept or pn.pn_transport_capacity(transport) < len(frame):
        return
    pn.memory_at(pn.pn_transport_tail(transport), len(frame))[:] = frame
    pn.pn_transport_process(transport, len(frame))
    if pn.pn_link_credit(link.handle) + pn.pn_link_queued(link.handle) < 0:
        raise PeerProtocolError("the engine lost count of credit", condition=Condition.INTERNAL_ERROR)
