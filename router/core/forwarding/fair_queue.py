"""Queue of the messages of several clients that serves them by turns: who sends many waits behind its own.

There are rounds. In each a client is served once, also one that comes in the middle of it. So who has one message at a
time, and sends the next when the last is gone, has its turn in each round too.

Source: RFC 970 (Nagle, 1985), "On packet switches with infinite storage": a queue for each source, served round robin.
"""

from __future__ import annotations

from collections import OrderedDict

from router.core.forwarding.credit_actions import Key


class FairQueue:
    """Messages that wait; of each client the oldest is next."""

    def __init__(self) -> None:
        self._due: OrderedDict[Key, OrderedDict[Key, None]] = OrderedDict()
        """Messages of each client that has its turn in this round, in the order of their turns."""
        self._served: OrderedDict[Key, OrderedDict[Key, None]] = OrderedDict()
        """The same of each that had it: what waits, if anything, is for the next round."""
        self._clients: dict[Key, Key] = {}
        """Of each message."""
        self._client_count = 0

    def __len__(self) -> int:
        return len(self._clients)

    def client_count(self) -> int:
        """Clients with messages here."""
        return self._client_count

    def add(self, message: Key, client: Key) -> None:
        """Let *message* of *client* wait, as its youngest."""
        queue = self._served.get(client)
        if queue is None:
            queue = self._due.get(client)
            if queue is None:
                queue = self._due[client] = OrderedDict()
        self._client_count += not queue
        queue[message] = None
        self._clients[message] = client

    def pop(self) -> Key:
        """Take out the next message. Raises: LookupError when there is none."""
        if not self._clients:
            raise LookupError("no message waits")
        if not self._due:
            for client, queue in self._served.items():
                if queue:
                    self._due[client] = queue
            self._served.clear()
        client, queue = self._due.popitem(last=False)
        message, _ = queue.popitem(last=False)
        self._served[client] = queue
        self._client_count -= not queue
        del self._clients[message]
        return message

    def discard(self, message: Key) -> bool:
        """Take *message* out, if it is here. Returns: whether it was."""
        if message not in self._clients:
            return False
        client = self._clients.pop(message)
        queue = self._due.get(client)
        if queue is None:
            queue = self._served[client]
        del queue[message]
        if not queue:
            self._client_count -= 1
            self._due.pop(client, None)
        return True

    def clear(self) -> list[Key]:
        """Take everything out. Returns: the messages, in the order in which they came."""
        messages = list(self._clients)
        self._due.clear()
        self._served.clear()
        self._clients.clear()
        self._client_count = 0
        return messages
