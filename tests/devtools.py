"""A headless browser that is driven over the Chrome DevTools Protocol: pages are opened, resized and typed into.

It talks to the browser over a pair of pipes, so that no port is open, and lists the requests and errors of all pages.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.browser import PROGRAMS

_TIMEOUT_S = 60
_POLL_INTERVAL_S = 0.02
#: Above those that the browser wants its pipes at, which are 3 and 4.
_FIRST_FD = 10


class BrowserError(Exception):
    """The browser refuses a command, or does not answer in time."""


@dataclass
class Tab:
    to_browser: int
    from_browser: int
    session: str = ""
    requests: list[str] = field(default_factory=list)
    """The address of everything that pages asked for."""
    errors: list[str] = field(default_factory=list)
    """What pages wrote to the console as errors, exceptions and failed requests among them."""
    _begun: str = ""
    """The loader of the page that is shown; one that a press of a key opened may still be on its way."""
    _loaded: str = ""
    _last_id: int = 0
    _received: bytes = b""

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") != self._last_id:
                self._note(answer)
            elif "error" in answer:
                raise BrowserError(f"{method}: {answer['error']['message']}")
            else:
                result: dict[str, Any] = answer["result"]
                return result

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._received:
            if not select.select([self.from_browser], [], [], _TIMEOUT_S)[0]:
                raise BrowserError(f"no answer within {_TIMEOUT_S} s")
            received = os.read(self.from_browser, 65536)
            if not received:
                raise BrowserError("the browser has ended")
            self._received += received
        message, _, self._received = self._received.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Page.frameNavigated" if "parentId" not in params["frame"]:
                self._begun = params["frame"]["loaderId"]
            case "Page.loadEventFired":
                self._loaded = self._begun
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Runtime.exceptionThrown":
                self.errors.append(str(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "assert"):
                self.errors.append(str(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                self.errors.append(str(params["entry"]))

    def open(self, url: str) -> None:
        """Open a page, and wait until all of it is loaded."""
        answer = self.call("Page.navigate", url=url)
        if "errorText" in answer:
            raise BrowserError(f"{url}: {answer['errorText']}")
        # Another place of the same page is there at once.
        while "loaderId" in answer and self._loaded != answer["loaderId"]:
            self._note(self._receive())

    def run(self, script: str) -> Any:
        """Evaluate an expression of JavaScript."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise BrowserError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def wait_for(self, script: str) -> Any:
        """Evaluate an expression until it is true."""
        deadline = time.monotonic() + _TIMEOUT_S
        while not (value := self._run_between_pages(script)):
            if time.monotonic() > deadline:
                raise BrowserError(f"not true within {_TIMEOUT_S} s: {script}")
            time.sleep(_POLL_INTERVAL_S)
        return value

    def _run_between_pages(self, script: str) -> Any:
        try:
            return self.run(script)
        except BrowserError as error:
            if "navigated or closed" in str(error):
                return None
            raise

    def resize(self, width: int, height: int = 800) -> None:
        """Give the page a screen of this size; a narrow one is a phone's."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def press(self, key: str, code: int, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text)


@contextmanager
def open_tab(program: str, folder: Path) -> Iterator[Tab]:
    """Start the browser, with one empty page, and end it afterwards."""
    theirs_in, ours_out = _pipe()
    ours_in, theirs_out = _pipe()
    args = [
        program,
        "--headless",
        "--remote-debugging-pipe",
        f"--user-data-dir={folder}",
        "--no-first-run",
        "--disable-gpu",
        *(["--no-sandbox"] if os.geteuid() == 0 else []),
    ]
    browser = subprocess.Popen(
        ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "-", *args],
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(theirs_in, theirs_out),
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield _first_tab(Tab(ours_out, ours_in))
    finally:
        # It ends when its pipe does, with all of its processes.
        os.close(ours_out)
        browser.wait(_TIMEOUT_S)
        os.close(ours_in)


@contextmanager
def open_tab_or_skip(folder: Path) -> Iterator[Tab]:
    """Start the browser that this machine has; a test is skipped without one."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if not program:
        pytest.skip("needs a browser: make extras")
    with open_tab(program, folder) as tab:
        yield tab


def _pipe() -> tuple[int, int]:
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _FIRST_FD) for end in ends]
    for end in ends:
        os.close(end)
    return moved[0], moved[1]


def _first_tab(tab: Tab) -> Tab:
    target = tab.call("Target.createTarget", url="about:blank")["targetId"]
    tab.session = tab.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Network", "Runtime", "Log"):
        tab.call(f"{domain}.enable")
    return tab
