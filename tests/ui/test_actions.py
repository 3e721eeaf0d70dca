"""The actions of the page, with real processes: which may start, and what is known of each."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from composeplat.ui.actions import Action, ActionRefused, Actions, Commands, Name
from tests.ui.served import wait_until

PREVIEW = """
import json, sys
print(json.dumps({"event": "step", "name": "comparing"}), file=sys.stderr)
print(json.dumps({"severity": "warning", "code": "no-limits", "message": "no limits"}), file=sys.stderr)
print("a message <b>for people</b>", file=sys.stderr)
print(json.dumps({"schema": "platform/preview/1", "changes": []}))
"""
FAILING = "import sys; print('it failed', file=sys.stderr); sys.exit(1)"
SLOW = """
import signal, sys, time
try:
    print("started", file=sys.stderr, flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("interrupted", file=sys.stderr)
    sys.exit(130)
"""


STUBBORN = """
import signal, sys, time
def press(*_):
    presses.append(1)
    print("pressed", file=sys.stderr, flush=True)
    if len(presses) == 2: sys.exit(2)
presses = []
signal.signal(signal.SIGINT, press)
print("started", file=sys.stderr, flush=True)
for _ in range(600): time.sleep(0.1)
"""


class Page:
    """The actions of an environment whose commands are scripts."""

    def __init__(self, **scripts: str) -> None:
        self.documents: list[Any] = []
        self.stamp = "one"
        self.started: list[tuple[str, tuple[str, ...]]] = []
        self._scripts = scripts
        self.actions = Actions(
            Commands(arguments=self._arguments, read_stamp=lambda: self.stamp, publish=self.documents.append)
        )

    def _arguments(self, name: str, services: Sequence[str]) -> Sequence[str]:
        self.started.append((name, tuple(services)))
        return [sys.executable, "-c", self._scripts.get(name, "")]

    def run(self, name: Name, *services: str, preview_id: str = "") -> Any:
        """Start an action, and return the last document of it."""
        self.actions.start(name, services, preview_id)
        return self.wait()

    def wait(self) -> Any:
        wait_until(lambda: self.documents and self.documents[-1]["state"] != "running")
        return self.documents[-1]


def test_preview() -> None:
    """Its document, its diagnostics and its messages are published; its progress is a topic of its own."""
    page = Page(preview=PREVIEW)
    assert page.run(Name.PREVIEW) == {
        "action": "preview",
        "services": [],
        "state": "done",
        "exit_status": 0,
        "messages": ["a message <b>for people</b>"],
        "diagnostics": [{"severity": "warning", "code": "no-limits", "message": "no limits"}],
        "preview_id": "one",
        "preview": {"schema": "platform/preview/1", "changes": []},
    }
    assert page.documents[0]["state"] == "running"


def test_deploy_after_a_preview() -> None:
    page = Page(preview=PREVIEW)
    shown = page.run(Name.PREVIEW)["preview_id"]
    assert page.run(Name.DEPLOY, preview_id=shown)["state"] == "done"
    assert [name for name, _ in page.started] == ["preview", "deploy"]


@pytest.mark.parametrize("preview_id", ["", "two"])
def test_deploy_without_its_preview(preview_id: str) -> None:
    page = Page(preview=PREVIEW)
    page.run(Name.PREVIEW)
    with pytest.raises(ActionRefused, match="needs a preview"):
        page.actions.start(Name.DEPLOY, (), preview_id)
    assert [name for name, _ in page.started] == ["preview"]


def test_deploy_of_another_definition() -> None:
    """What was shown is not what would be deployed."""
    page = Page(preview=PREVIEW)
    shown = page.run(Name.PREVIEW)["preview_id"]
    page.stamp = "two"
    with pytest.raises(ActionRefused, match="has changed since the preview"):
        page.actions.start(Name.DEPLOY, (), shown)


def test_each_preview_is_for_one_deploy() -> None:
    """After any other action the environment is another one than the preview shows."""
    page = Page(preview=PREVIEW)
    shown = page.run(Name.PREVIEW)["preview_id"]
    page.run(Name.SLEEP)
    with pytest.raises(ActionRefused, match="needs a preview"):
        page.actions.start(Name.DEPLOY, (), shown)


def test_a_failed_preview_shows_nothing() -> None:
    page = Page(preview=FAILING)
    shown = page.run(Name.PREVIEW)
    assert (shown["state"], shown["exit_status"], shown["preview"]) == ("failed", 1, None)
    assert shown["messages"] == ["it failed"]
    with pytest.raises(ActionRefused, match="needs a preview"):
        page.actions.start(Name.DEPLOY, (), "one")


def test_one_at_a_time() -> None:
    """A second action is refused while one runs; stopping the server interrupts that one, and waits for its end."""
    page = Page(restart=SLOW)
    page.actions.start(Name.RESTART, ("web",), "")
    wait_until(lambda: page.documents[-1]["messages"] == ["started"])
    with pytest.raises(ActionRefused, match="another action"):
        page.actions.start(Name.SLEEP, (), "")
    page.actions.stop()
    assert page.wait()["messages"] == ["started", "interrupted"]
    assert page.documents[-1]["exit_status"] == 130


def test_a_second_press(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C again, while the action ends, interrupts it again: a deploy then kills what it has started."""
    page = Page(wake=STUBBORN)
    page.actions.start(Name.WAKE, (), "")
    wait_until(lambda: page.documents[-1]["messages"] == ["started"])
    presses = iter([KeyboardInterrupt])
    wait = subprocess.Popen.wait

    def wait_or_press(process: Any, timeout: float | None = None) -> int:
        if threading.current_thread() is threading.main_thread() and (press := next(presses, None)):
            wait_until(lambda: "pressed" in page.documents[-1]["messages"])
            raise press
        return wait(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", wait_or_press)
    page.actions.stop()
    assert page.wait()["exit_status"] == 2


def test_none_starts_after_the_end() -> None:
    """Ctrl-C while the definition is read for an action: it would run on, and nobody would see it."""
    started: list[str] = []

    def arguments(name: str, _: Sequence[str]) -> Sequence[str]:
        started.append(name)
        return [sys.executable, "-c", ""]

    def end() -> str:
        actions.stop()
        return "one"

    actions = Actions(Commands(arguments=arguments, read_stamp=end, publish=lambda _: None))
    with pytest.raises(ActionRefused, match="is ending"):
        actions.start(Name.PREVIEW, (), "")
    assert started == []


@pytest.mark.parametrize("name", [Name.SLEEP, Name.WAKE])
def test_actions_of_the_whole_environment(name: Name) -> None:
    page = Page()
    with pytest.raises(ActionRefused, match="for the whole environment"):
        page.actions.start(name, ("web",), "")
    assert page.started == []


def test_many_at_once() -> None:
    """Of requests at the same moment, one starts its action."""
    page = Page(wake=SLOW)
    refused: list[ActionRefused] = []

    def start() -> None:
        try:
            page.actions.start(Name.WAKE, (), "")
        except ActionRefused as error:
            refused.append(error)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    page.actions.stop()
    page.wait()
    assert (len(refused), len(page.started)) == (7, 1)


def test_a_program_that_is_not_there() -> None:
    """The action is not started, and the next one can be."""
    page = Page(preview=PREVIEW)
    broken = Actions(Commands(arguments=lambda *_: ["/none"], read_stamp=str, publish=page.documents.append))
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            broken.start(Name.SLEEP, (), "")


def test_many_lines() -> None:
    """A command that writes without end does not fill the memory: the last lines are kept."""
    action = Action(name=Name.DEPLOY)
    for number in range(1000):
        action = action.with_line(f"line {number}")
    assert action.messages[-1] == "line 999"
    assert len(action.messages) == 200
