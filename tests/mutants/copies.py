"""A copy of the project, in which tests run with or without a change.

Owns the copy, and the processes that run in it.
Must not touch the project itself.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.conftest import ROOT
from tests.mutants.changes import Change

#: Tests that take too long to follow, or look at more than the product's code.
_LEFT_OUT = ("tests/fuzz", "tests/mutants", "tests/bad_input/test_bombs.py", "tests/golang")
_START = """
from pathlib import Path
from tests.mutants.lines import follow_process
follow_process(Path({root!r}), Path({notes!r}))
"""


def project_files() -> list[str]:
    """The files of the project that are kept, or would be."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted(name for name in names if name and (ROOT / name).is_file())


#: What runs so, and all that it starts, ends with it: code that is wrong may leave processes behind.
_ENCLOSED = ("unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc")


def enclosing() -> tuple[str, ...]:
    """What to put before a command; nothing where this machine does not let us."""
    try:
        tried = subprocess.run([*_ENCLOSED, "true"], capture_output=True, check=False)
    except OSError:
        return ()
    return () if tried.returncode else _ENCLOSED


class Copy:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self._folder = folder
        self._enclosing = enclosing()
        digest = hashlib.sha256()
        for name in project_files():
            content = (ROOT / name).read_bytes()
            target = self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod((ROOT / name).stat().st_mode)
            if name.startswith(("composeplat/", "tests/")):
                digest.update(name.encode() + content)
        self.key = digest.hexdigest()
        """It changes whenever a test might run other lines."""
        # A compiled module is looked at again by what is in it: changes come faster than the clock of a file.
        compiling = ["compileall", "-q", "--invalidation-mode", "checked-hash", "composeplat"]
        subprocess.run([sys.executable, "-m", *compiling], cwd=self.root, check=True)

    def make_map(self, path: Path) -> None:
        """Run every test that needs no cluster, and write which lines each of them runs."""
        notes, start = self._folder / "notes", self.root / "sitecustomize.py"
        notes.mkdir(exist_ok=True)
        start.write_text(_START.format(root=str(self.root), notes=str(notes)))
        args = [f"--ignore={name}" for name in _LEFT_OUT]
        try:
            self._pytest(
                "-p", "tests.mutants.mapping", "-m", "not cluster", "--timeout=600", *args,
                limit=3 * 3600, MUTANTS_MAP=str(path), MUTANTS_NOTES=str(notes),
            )  # fmt: skip
        finally:
            start.unlink()

    def is_noticed(self, tests: Sequence[str], longest: float, limit: float) -> bool:
        """Return whether any of the tests fails, or takes too long, or they don't come to an end in time."""
        chosen = self._folder / "chosen"
        chosen.write_text("".join(f"{name}\n" for name in tests))
        files = dict.fromkeys(name.partition("::")[0] for name in tests)
        args = ["-x", f"--timeout={longest:.0f}", "-p", "tests.mutants.chosen", *files]
        return self._pytest(*args, limit=limit, MUTANTS_CHOSEN=str(chosen), PYTHONDONTWRITEBYTECODE="1") != 0

    @contextmanager
    def changed(self, name: str, change: Change) -> Iterator[None]:
        path = self.root / name
        before = path.read_text()
        path.write_text(change.apply(before))
        try:
            yield
        finally:
            path.write_text(before)

    def _pytest(self, *args: str, limit: float, **variables: str) -> int | None:
        """Run pytest; gives its status, and nothing where it had to be ended."""
        environment = {**os.environ, "PYTHONPATH": str(self.root), **variables}
        with (self._folder / "output").open("wb") as output:
            process = subprocess.Popen(
                [*self._enclosing, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args],
                cwd=self.root, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def last_lines(self) -> str:
        return (self._folder / "output").read_text(errors="replace")[-2000:]


def seconds_since(begun: float) -> float:
    return time.monotonic() - begun
