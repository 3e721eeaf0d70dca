"""A real browser without a window: what a page shows once its scripts have run.

It has a profile of its own that is thrown away, and trusts the authorities of its upstreams and one more, as a user who
adds it would have it: a certificate that does not hold ends in an error, not in a page.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

#: By the names of Debian's packages, which `make extras` installs.
PROGRAMS = ("chromium-headless-shell", "chromium")
_TIMEOUT = 60
#: Milliseconds of a page's own time, which does not pass while it waits for the network.
_PAGE_TIME = 5000


class NotShownError(Exception):
    """The browser shows no page, for a reason in its own words."""


def find_browser() -> str:
    """Give the program; nothing where it, or what makes it trust an authority, is not there."""
    program = next((path for path in map(shutil.which, PROGRAMS) if path), "")
    return program if shutil.which("certutil") else ""


@dataclass(slots=True)
class Page:
    title: str = ""
    texts: list[str] = field(default_factory=list)
    """What is in its body, an element at a time."""


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self._tag = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 -- as called
        self._tag = tag

    def handle_data(self, data: str) -> None:
        text = data.strip()
        if self._tag == "title":
            self.page.title += text
        elif text and self._tag not in ("script", "style"):
            self.page.texts.append(text)

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 -- as called
        self._tag = ""


class Browser:
    def __init__(self, program: str, folder: Path, authority: Path | None = None, hosts: str = "") -> None:
        """Trust an authority, by its certificate; hosts, as ``*.example.com``, are then this machine."""
        self.folder = folder
        self.args = [
            program, "--headless", "--dump-dom", f"--virtual-time-budget={_PAGE_TIME}",
            f"--user-data-dir={folder / 'profile'}", "--no-first-run", "--disable-gpu", "--log-level=2",
        ]  # fmt: skip
        if os.geteuid() == 0:
            self.args.append("--no-sandbox")
        if hosts:
            self.args.append(f"--host-resolver-rules=MAP {hosts} 127.0.0.1")
        trusted = folder / ".pki" / "nssdb"
        trusted.mkdir(parents=True)
        self._certutil(trusted, "-N", "--empty-password")
        if authority is not None:
            self._certutil(trusted, "-A", "-n", "authority", "-t", "C,,", "-i", str(authority))

    def _certutil(self, database: Path, *args: str) -> None:
        subprocess.run(["certutil", "-d", f"sql:{database}", *args], check=True)

    def open(self, url: str) -> Page:
        done = subprocess.run(
            [*self.args, url], env={"PATH": os.environ["PATH"], "HOME": str(self.folder)}, capture_output=True,
            stdin=subprocess.DEVNULL, text=True, timeout=_TIMEOUT, check=False,
        )  # fmt: skip
        if done.returncode or not done.stdout.strip():
            raise NotShownError(done.stderr)
        reader = _Reader()
        reader.feed(done.stdout)
        return reader.page
