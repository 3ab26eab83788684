"""Pace at which passwords and tickets are checked: no host can set it for the others, and who guesses has to wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar, TypeVarTuple, Unpack

import trio

from router.net.handshake_socket import PeerLeft
from router.security.users import Users

T = TypeVar("T")
Args = TypeVarTuple("Args")

WRONG_PASSWORD_PAUSE_S: Final = 1.0
"""Delay of the answer to a wrong password, seconds: a peer that tries many has to wait, and no other one."""
GUESSES_AT_ONCE: Final = 10
"""Number of guesses pending from one host for each of which the delay grows by another `WRONG_PASSWORD_PAUSE_S`."""
LONGEST_PAUSES: Final = 8
"""Maximum delay of the answer to a wrong password, in `WRONG_PASSWORD_PAUSE_S`."""


def _never() -> bool:
    return False


class PasswordThrottle:
    """Checks the passwords and tickets of one router's clients, by AMQP and by HTTP."""

    def __init__(self) -> None:
        # None of trio's limiter for everybody: name servers that don't answer may hold all threads of that.
        self._checks = trio.CapacityLimiter(1)
        """Limiter by which there is one thread for checks: the router has the other processors."""
        self._hosts: dict[str, trio.Lock] = {}
        """Hosts for which something is checked, one thing at a time: none can fill the line for the others."""
        self._guesses: dict[str, int] = {}
        """Number of wrong passwords whose answers wait, by host."""

    async def check_password(self, users: Users, user: str, password: bytes, host: str) -> bool:
        """Check the password of a user of HTTP. A wrong one is answered late.

        Args:
            users: of the file.
            user: its name.
            password: prepared as SASL has it.
            host: that it comes from.
        """
        is_right = await self.find_mark(users, user, password, host) is not None
        if not is_right:
            await self.pause_guesser(host)
        return is_right

    async def find_mark(
        self, users: Users, user: str, password: bytes, host: str, has_left: Callable[[], bool] = _never
    ) -> bytes | None:
        """Check a password. Returns: the mark of the keys that it fits; None when it is wrong.

        Raises:
            PeerLeft: *has_left* says that nobody waits for it any more.
        """
        mark = users.remembers(user, password)
        return mark if mark is not None else await self.compute(host, has_left, users.check, user, password)

    async def compute(
        self, host: str, has_left: Callable[[], bool], function: Callable[[Unpack[Args]], T], *args: *Args
    ) -> T:
        """Call what computes for long, in the thread: one call at a time, and each host in turn.

        Raises:
            PeerLeft: *has_left* says that nobody waits for it any more.
        """
        lock = self._hosts.setdefault(host, trio.Lock())
        try:
            async with lock:
                if has_left():
                    raise PeerLeft("the other side closed it")
                return await trio.to_thread.run_sync(function, *args, limiter=self._checks)
        finally:
            if not lock.locked() and not lock.statistics().tasks_waiting:
                self._hosts.pop(host, None)

    async def pause_guesser(self, host: str) -> None:
        """Pause before the answer to a wrong password. Who has the right one waits for none of them."""
        self._guesses[host] = self._guesses.get(host, 0) + 1
        try:
            await trio.sleep(WRONG_PASSWORD_PAUSE_S * min(LONGEST_PAUSES, 1 + self._guesses[host] // GUESSES_AT_ONCE))
        finally:
            self._guesses[host] -= 1
            if not self._guesses[host]:
                del self._guesses[host]
