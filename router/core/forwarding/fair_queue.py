"""Queue of the messages of several clients that serves them by turns: one that sends many waits behind its own.

The clients stand in a line. Who was served, or is new, goes to its end: nobody waits for more than one message of each
client before it, however many come later.

Source: RFC 970 (Nagle, 1985), "On packet switches with infinite storage": a queue for each source, served round robin.
"""

from __future__ import annotations

from collections import OrderedDict

from router.core.forwarding.credit_actions import Key


class FairQueue:
    """Messages that wait; of each client the oldest is next."""

    def __init__(self) -> None:
        self._line: OrderedDict[Key, OrderedDict[Key, None]] = OrderedDict()
        """Messages of each client that has any, in the order of the clients' turns."""
        self._clients: dict[Key, Key] = {}
        """Client of each message, in the order in which the messages came."""

    def __len__(self) -> int:
        return len(self._clients)

    def client_count(self) -> int:
        """Clients with messages here."""
        return len(self._line)

    def add(self, message: Key, client: Key) -> None:
        """Let *message* of *client* wait, as its youngest."""
        queue = self._line.get(client)
        if queue is None:
            queue = self._line[client] = OrderedDict()
        queue[message] = None
        self._clients[message] = client

    def pop(self) -> Key:
        """Take out the next message. Raises: LookupError when there is none."""
        if not self._clients:
            raise LookupError("no message waits")
        client, queue = self._line.popitem(last=False)
        message, _ = queue.popitem(last=False)
        if queue:
            self._line[client] = queue
        del self._clients[message]
        return message

    def discard(self, message: Key) -> bool:
        """Take *message* out, if it is here. Returns: whether it was."""
        if message not in self._clients:
            return False
        client = self._clients.pop(message)
        queue = self._line[client]
        del queue[message]
        if not queue:
            del self._line[client]
        return True

    def clear(self) -> list[Key]:
        """Take everything out. Returns: the messages, in the order in which they came."""
        messages = list(self._clients)
        self._line.clear()
        self._clients.clear()
        return messages
