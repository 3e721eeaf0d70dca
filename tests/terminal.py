"""A real terminal with a program on it, and how that ends.

A program's output ends a moment before the program does. The library's own `close` gives it some tenths of a second,
then kills it or fails, which on a busy machine spoils the exit status; this class waits for the status.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import pexpect


class Terminal:
    """A program on a terminal of so many columns and rows."""

    def __init__(
        self,
        args: Sequence[str],
        *,
        folder: Path,
        env: Mapping[str, str],
        columns: int = 80,
        rows: int = 24,
        within: float = 60,
    ) -> None:
        program, *rest = args
        self._child = pexpect.spawn(
            program, rest, cwd=str(folder), env=dict(env), dimensions=(rows, columns), encoding="utf-8", timeout=within
        )

    def type(self, line: str) -> None:
        self._child.sendline(line)

    def interrupt(self) -> None:
        self._child.sendintr()

    def end_input(self) -> None:
        self._child.sendeof()

    def stop_and_continue(self) -> None:
        """Stop the program and let it continue, as a shell does with Ctrl-Z and fg."""
        self._child.kill(signal.SIGSTOP)
        self._child.kill(signal.SIGCONT)

    def resize(self, *, columns: int, rows: int) -> None:
        self._child.setwinsize(rows, columns)

    def until(self, text: str) -> str:
        """What is shown before a text, which is waited for."""
        self._child.expect_exact(text)
        return str(self._child.before)

    def find(self, pattern: str) -> str:
        """The first group of a pattern, which is waited for."""
        self._child.expect(re.compile(pattern, re.DOTALL))
        return str(self._child.match[1])

    def rest(self) -> str:
        """All that is shown from here to the end of the output."""
        self._child.expect(pexpect.EOF)
        return str(self._child.before)

    def status(self) -> int:
        """How the program ended, as a shell says it, once it has."""
        self.rest()
        if self._child.isalive():
            self._child.wait()
        ended = self._child.exitstatus
        return int(ended if ended is not None else 128 + self._child.signalstatus)

    def kill(self) -> None:
        """End the program, whatever it does, and be sure that it has."""
        if self._child.isalive():
            self._child.kill(signal.SIGKILL)
            self._child.wait()
