"""Programs of tests that run the commands, and that Ctrl-C interrupts in any case."""

from __future__ import annotations

from typing import Final

START: Final = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""Begin of such a program: whoever runs the tests may have had SIGINT ignored."""
MAIN: Final = "from router.__main__ import main; main()"
"""End of it: the command with the arguments of the program."""
