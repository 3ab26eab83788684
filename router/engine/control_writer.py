"""Writer of control messages: each is encoded once for all neighbors, and counted where it is dropped."""

from __future__ import annotations

from router.core.events import SendControl
from router.core.linkstate.messages import Hello
from router.engine.control_links import BACKLOG, TOO_LARGE, ControlLinks
from router.engine.message_codec import encode_control


class ControlWriter:
    """Writes control messages to neighbors."""

    def __init__(self) -> None:
        self.dropped = {TOO_LARGE: 0, BACKLOG: 0}
        """Number of control messages that were dropped instead of being written, by the reason."""
        self._encoded: tuple[tuple[object, ...], bytes] = ((None, None, None, None), b"")
        """The last control message, and its bytes."""

    def write(self, links: ControlLinks, action: SendControl) -> None:
        """Write one control message to a neighbor, or drop it when the neighbor cannot take it.

        All but HELLOs may be dropped: what they say is said again, or asked for again.

        Raises:
            PeerProtocolError: too much waits for the neighbor already.
        """
        what = (action.to, action.message, action.ingress, action.trace)
        if what[1] is not self._encoded[0][1] or what != self._encoded[0]:  # a flooded message goes to each neighbor
            self._encoded = (what, bytes(encode_control(*what)))
        reason = links.send(self._encoded[1], may_drop=not isinstance(action.message, Hello))
        if reason is not None:
            self.dropped[reason] += 1
