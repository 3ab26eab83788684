"""Processes that the demonstration starts: they write their logs into a folder, and never outlive it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import trio

import router
from router.child_processes import mortal

ROOT = Path(router.__file__).parents[1]
"""Folder of the package: `python -m` looks there first, so children run the very code that their parent runs."""
STOP_S = 8.0
"""Time to end by itself; a router takes up to 6 s when something in flight does not settle."""
LOOK_S = 0.02
"""Time between two looks whether something has happened, seconds."""


class Child:
    """One process; to be started in the main thread."""

    def __init__(
        self, name: str, module: str, arguments: Sequence[object], log: Path, *, has_pipes: bool = False
    ) -> None:
        """Start `python -m MODULE ARGUMENTS`.

        Args:
            name: as messages call it.
            module: dotted name.
            arguments: of the command line; each is written as text.
            log: file for its standard error.
            has_pipes: it is spoken to through its standard input and output.
        """
        self.name = name
        self.log = log
        self._output: trio.lowlevel.FdStream | None = None
        self._read = b""
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                mortal([sys.executable, "-m", module, *map(str, arguments)]),
                stdin=subprocess.PIPE if has_pipes else subprocess.DEVNULL,
                stdout=subprocess.PIPE if has_pipes else errors,
                stderr=errors,
                cwd=ROOT,
                # An interrupt at the terminal is for the demonstration alone: it stops the others in their order.
                process_group=0,
            )

    @property
    def pid(self) -> int:
        """Process id; it stays that of the program which the launcher becomes."""
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.process.poll() is None

    def ending(self) -> str:
        """Describe how it ended, with the last line of its log."""
        code = self.process.poll()
        assert code is not None
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return f"{self.name} (pid {self.pid}) {how}" + (f"; its last words: {lines[-1].strip()}" if lines else "")

    async def line(self) -> bytes | None:
        """The next line of its standard output; None when it has closed it."""
        if self._output is None:
            assert self.process.stdout is not None
            self._output = trio.lowlevel.FdStream(os.dup(self.process.stdout.fileno()))
        while b"\n" not in self._read:
            chunk = await self._output.receive_some()
            if not chunk:
                return None
            self._read += chunk
        line, _, self._read = self._read.partition(b"\n")
        return line

    def tell(self, word: str) -> None:
        """Write a line to its standard input; it may be gone."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(word.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    async def wait(self) -> None:
        """Wait until the process has ended."""
        await until(lambda: not self.is_alive)

    def kill(self) -> None:
        """End it at once."""
        if self.is_alive:
            self.process.kill()
            self.process.wait()


async def until(condition: Callable[[], bool]) -> None:
    """Wait until *condition* holds."""
    while not condition():  # noqa: ASYNC110 (nothing tells of the end of a process without a signal's help)
        await trio.sleep(LOOK_S)


async def stop(children: Sequence[Child]) -> list[Child]:
    """Ask all to end, all at the same time; kill who does not within `STOP_S`. Returns: those who had to be killed."""
    for child in children:
        if child.is_alive:
            child.process.terminate()
    with trio.move_on_after(STOP_S):
        for child in children:
            await child.wait()
    slow = [child for child in children if child.is_alive]
    for child in slow:
        child.kill()
    return slow
