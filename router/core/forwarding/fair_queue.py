"""Queue of the messages of several clients that serves them by turns: one that sends many waits behind its own.

There are rounds. In each a client is served once, also one that comes in the middle of it. So who has one message at a
time, and sends the next when the last is gone, has its turn in each round too. At most as many clients join a round as
it began with, and others the next one: clients that are new each time keep nobody from the next round.

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
        self._later: OrderedDict[Key, OrderedDict[Key, None]] = OrderedDict()
        """Messages of each client that has its turn in the next round only, likewise."""
        self._served: set[Key] = set()
        """Clients that had their turn in this round."""
        self._room = 0
        """Clients that may still join this round."""
        self._clients: dict[Key, Key] = {}
        """Client of each message, in the order in which the messages came."""

    def __len__(self) -> int:
        return len(self._clients)

    def client_count(self) -> int:
        """Clients with messages here."""
        return len(self._due) + len(self._later)

    def add(self, message: Key, client: Key) -> None:
        """Let *message* of *client* wait, as its youngest."""
        queue = self._due.get(client)
        if queue is None:
            queue = self._later.get(client)
        if queue is None:
            queue = OrderedDict()
            if self._room and client not in self._served:
                self._room -= 1
                self._due[client] = queue
            else:
                self._later[client] = queue
        queue[message] = None
        self._clients[message] = client

    def pop(self) -> Key:
        """Take out the next message. Raises: LookupError when there is none."""
        if not self._clients:
            raise LookupError("no message waits")
        if not self._due:
            self._due, self._later = self._later, self._due
            self._served.clear()
            self._room = len(self._due)
        client, queue = self._due.popitem(last=False)
        message, _ = queue.popitem(last=False)
        self._served.add(client)
        if queue:
            self._later[client] = queue
        del self._clients[message]
        return message

    def youngest(self) -> Key:
        """Find the message that came last. Raises: LookupError when there is none."""
        for message in reversed(self._clients):
            return message
        raise LookupError("no message waits")

    def discard(self, message: Key) -> bool:
        """Take *message* out, if it is here. Returns: whether it was."""
        if message not in self._clients:
            return False
        client = self._clients.pop(message)
        line = self._due if client in self._due else self._later
        queue = line[client]
        del queue[message]
        if not queue:
            del line[client]
        return True

    def clear(self) -> list[Key]:
        """Take everything out. Returns: the messages, in the order in which they came."""
        messages = list(self._clients)
        self._due.clear()
        self._later.clear()
        self._served.clear()
        self._room = 0
        self._clients.clear()
        return messages
