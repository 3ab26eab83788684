"""Relays in a process of their own, so that what they carry costs the clients nothing.

Run by `python -m tests.measure.chaos.wires`. Orders come as lines of JSON on the standard input, and each has one
line as its answer.
"""

from __future__ import annotations

import json
import subprocess
import sys
from types import TracebackType
from typing import Any, Self

import attrs

from tests.helpers.relay import Relay

END_S = 10.0


@attrs.frozen
class Wire:
    """One relay of the process; its faults are those of `Relay`."""

    wires: Wires
    port: int
    """Where it listens."""

    def cut(self, *, reset: bool = True) -> None:
        """See `Relay.cut`."""
        self.wires.order("cut", self.port, reset=reset)

    def hold(self, *sides: int) -> None:
        """See `Relay.hold`."""
        self.wires.order("hold", self.port, sides)

    def delay(self, seconds: float) -> None:
        """See `Relay.delay`."""
        self.wires.order("delay", self.port, [seconds])

    def half_open(self, gone: int) -> None:
        """See `Relay.half_open`."""
        self.wires.order("half_open", self.port, [gone])

    def mend(self) -> None:
        """See `Relay.mend`."""
        self.wires.order("mend", self.port)

    def close(self) -> None:
        """See `Relay.close`."""
        self.wires.order("close", self.port)


class Wires:
    """The process; a context manager that leaves none behind."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.measure.chaos.wires"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(END_S)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()

    def to(self, target: int) -> Wire:
        """A new relay to a port of loopback."""
        return Wire(self, int(self.order("new", target)))

    def order(self, what: str, port: int, arguments: Any = (), **named: Any) -> Any:
        """Give an order and wait until it is carried out."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([what, port, list(arguments), named]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def main() -> None:
    """Carry bytes and obey until the standard input ends."""
    relays: dict[int, Relay] = {}
    for line in sys.stdin:
        what, port, arguments, named = json.loads(line)
        answer = None
        if what == "new":
            relay = Relay(port)
            relays[relay.port] = relay
            answer = relay.port
        else:
            getattr(relays[port], what)(*arguments, **named)
            if what == "close":
                del relays[port]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
