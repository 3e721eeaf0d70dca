"""What `platform up` says, and what it takes for ports."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import typer

from composeplat import progress
from composeplat.cli.session_events import SessionReporter, session_message
from composeplat.cli.up import read_ports
from composeplat.dev.sync_rules import SyncPath


@pytest.mark.parametrize(
    ("event", "message"),
    [
        pytest.param({"event": "connected", "pod": "p", "reconnected": False}, "", id="connected"),
        pytest.param({"event": "connected", "pod": "p", "reconnected": True}, "connected again, to p", id="again"),
        pytest.param(
            {"event": "connected", "pod": "p", "reconnected": True, "session": "new"},
            "connected again, to p; its program was restarted",
            id="anew",
        ),
        pytest.param(
            {"event": "disconnected", "reason": "w"}, "lost the connection (w); trying again, Ctrl-C ends it", id="lost"
        ),
        pytest.param({"event": "forwarding", "listen": "l", "port": 80}, "l is forwarded to port 80", id="forwarding"),
        pytest.param(
            {"event": "port-taken", "requested": "l", "listen": "o"},
            "l is in use on this machine; o is used instead",
            id="taken",
        ),
        pytest.param(
            {"event": "synced", "first": True, "to_container": 3, "to_local": 1, "seconds": 0.51},
            "synced: 3 to the container, 1 from it, 0.5 s",
            id="first-sync",
        ),
        pytest.param({"event": "synced", "first": False, "to_container": 3}, "", id="later-sync"),
        pytest.param(
            {"event": "conflict", "path": "a", "kept_as": "b"},
            "changed on both sides: a; the container's is kept as b",
            id="conflict",
        ),
        pytest.param(
            {"event": "conflict", "path": "", "kept_as": "*.conflict-*", "more": 7},
            "changed on both sides: 7 more files; the container's are kept as *.conflict-*",
            id="more-conflicts",
        ),
        pytest.param(
            {"event": "conflict", "path": "", "kept_as": "", "more": 7},
            "a file on one side and a folder on the other, left alone: 7 more paths",
            id="more-skipped",
        ),
        pytest.param(
            {"event": "conflict", "path": "a", "kept_as": ""},
            "a file on one side and a folder on the other, left alone: a",
            id="conflict-of-kinds",
        ),
        pytest.param(
            {"event": "replaced", "files": 3, "kept_as": "/d"},
            "3 files of the container, which were not from this folder, differed and were replaced by this machine's;"
            " they are kept in /d",
            id="replaced",
        ),
        pytest.param(
            {"event": "problem", "folder": 0, "side": "local", "path": "a", "reason": "r"},
            "can't sync a (local): r",
            id="problem",
        ),
        pytest.param(
            {"event": "problem", "folder": -1, "side": "container", "path": "", "reason": "no port 80"},
            "no port 80",
            id="problem-of-a-port",
        ),
        pytest.param(
            {"event": "syncing", "folder": 0, "files": 300, "bytes": 5 << 30, "done": 12, "sent": 3 << 29},
            "syncing: 12 of 300 files, 1.5 GiB sent",
            id="syncing",
        ),
        pytest.param(
            {"event": "transferring", "path": "a", "to": "container", "bytes": 3 << 29, "done": 1 << 29},
            "a: 33 % of 1.5 GiB sent",
            id="sending",
        ),
        pytest.param(
            {"event": "transferring", "path": "a", "to": "local", "bytes": 3 << 29, "done": 3 << 29},
            "a: 100 % of 1.5 GiB received",
            id="receiving",
        ),
        pytest.param(
            {"event": "transferred", "path": "a", "to": "container", "bytes": 3 << 29, "seconds": 65},
            "a: 1.5 GiB sent in 1 min 5 s",
            id="sent",
        ),
        pytest.param(
            {"event": "transferred", "path": "a", "to": "local", "bytes": 3 << 29, "seconds": 2.5},
            "a: 1.5 GiB received in 2.5 s",
            id="received",
        ),
        pytest.param({"event": "transferring", "path": "a", "to": "local", "bytes": 0, "done": 0}, "", id="no-size"),
        pytest.param({"event": "resolved", "folder": 0}, "", id="unspoken"),
        pytest.param({"event": "disconnected"}, "", id="incomplete"),
        pytest.param({}, "", id="nothing"),
    ],
)
def test_messages(event: dict[str, Any], message: str) -> None:
    """An event is reported in a sentence, and one that is no news is not reported."""
    assert session_message(event) == message


@pytest.mark.parametrize(
    ("event", "message"),
    [
        pytest.param({"folder": 0, "path": "src/a"}, "can't sync here/src/a (local): r", id="of-a-folder"),
        pytest.param({"folder": 0, "path": ""}, "can't sync here (local): r", id="the-folder"),
        pytest.param({"folder": 1, "path": ""}, "can't sync conf (local): r", id="the-file"),
        pytest.param({"folder": 2, "path": "a"}, "can't sync a (local): r", id="unknown"),
    ],
)
def test_the_path_of_a_problem(
    event: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is that on this machine: there may be several folders, and a file that is synced by itself has none."""
    monkeypatch.chdir(tmp_path)
    shown: list[progress.SessionEvent] = []
    monkeypatch.setattr(progress, "emit", shown.append)
    paths = (
        SyncPath(local=f"{tmp_path}/here", remote="/app"),
        SyncPath(local=f"{tmp_path}/conf", remote="/etc/conf", is_file=True),
    )
    problem = {"event": "problem", "side": "local", "reason": "r", **event}
    SessionReporter(paths).emit(problem)

    assert [(event.data, event.message) for event in shown] == [(problem, message)]


def test_a_current_folder_that_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout may delete it during a session: no event was read after that, and the sync waited for their reader."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    shown: list[progress.SessionEvent] = []
    monkeypatch.setattr(progress, "emit", shown.append)
    reporter = SessionReporter((SyncPath(local=f"{tmp_path}/app", remote="/app"),))
    for path in ("src/a", ""):
        reporter.emit({"event": "problem", "folder": 0, "side": "local", "reason": "r", "path": path})

    assert [event.message for event in shown] == [
        f"can't sync {tmp_path}/app/src/a (local): r",
        f"can't sync {tmp_path}/app (local): r",
    ]


def shown_times(monkeypatch: pytest.MonkeyPatch, event: dict[str, Any], seconds: int) -> list[float]:
    """When people see the messages of an event that comes four times a second; programs get each of them."""
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    shown: list[progress.SessionEvent] = []
    monkeypatch.setattr(progress, "emit", shown.append)
    reporter = SessionReporter()
    times = []
    for number in range(seconds * 4 + 1):
        now = 1000 + number / 4
        reporter.emit(event)
        if shown[-1].message:
            times.append(number / 4)

    assert [event.data for event in shown] == [event] * (seconds * 4 + 1)
    return times


def test_a_first_sync_is_seen_after_two_seconds_and_not_often_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line each quarter of a second would hide all others."""
    syncing = {"event": "syncing", "folder": 0, "files": 3, "bytes": 5, "done": 1, "sent": 4}

    assert shown_times(monkeypatch, syncing, 60) == [2, 5, 11, 23, 47]


def test_a_large_file_is_not_seen_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported only once it takes long."""
    part = {"event": "transferring", "folder": 0, "path": "a", "to": "local", "bytes": 5, "done": 1}

    assert shown_times(monkeypatch, part, 110) == [0, 3, 9, 21, 45, 75, 105]


def test_each_large_file_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that comes again after its end."""
    shown: list[progress.SessionEvent] = []
    monkeypatch.setattr(progress, "emit", shown.append)
    reporter = SessionReporter()
    for path, kind in (("a", "transferring"), ("b", "transferring"), ("a", "transferred"), ("a", "transferring")):
        reporter.emit(
            {"event": kind, "folder": 0, "path": path, "to": "local", "bytes": 4096, "done": 1024, "seconds": 1}
        )

    assert [event.message for event in shown] == [
        "a: 25 % of 4.0 KiB received",
        "b: 25 % of 4.0 KiB received",
        "a: 4.0 KiB received in 1.0 s",
        "a: 25 % of 4.0 KiB received",
    ]


@pytest.mark.parametrize(
    ("text", "ports"), [pytest.param("8080:80", (8080, 80), id="two"), pytest.param("9229", (9229, 9229), id="one")]
)
def test_ports(text: str, ports: tuple[int, int]) -> None:
    """One number is for both sides."""
    assert read_ports(text, "--forward") == ports


@pytest.mark.parametrize("text", ["", "x", "80:", ":80", "0", "65536", "-1", "8:9:10", "²"])
def test_bad_ports(text: str) -> None:
    """What is no port is refused with the option's name."""
    with pytest.raises(typer.BadParameter, match="must be ports such as 8080 or 8080:80"):
        read_ports(text, "--forward")
