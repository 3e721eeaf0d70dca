"""The process that keeps the cluster's parts running: what it does with their logs, without a cluster."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from composeplat.local.cluster import LocalCluster
from composeplat.local.cluster_kind import local_cluster
from composeplat.local.layout import Layout
from composeplat.local.parts import make_parts
from composeplat.local.states import read_states
from composeplat.system.processes import ProcessId
from tests.local.test_parts import LAYOUT, PROGRAMS
from tests.own_cluster import NEEDS_ROOT

MIB = 1024**2


def test_logs_are_kept_small(tmp_path: Path) -> None:
    """A part writes on where its log ended; one of more than 8 MiB is put aside first, in place of the one before."""
    for name, size in (("small", 8 * MIB), ("large", 8 * MIB + 1), ("large.log.1", 1)):
        with (tmp_path / (name if name.endswith(".1") else f"{name}.log")).open("wb") as stream:
            stream.truncate(size)
    parts = [{"name": name, "args": ["sh", "-c", "echo said; exec sleep 60"]} for name in ("new", "small", "large")]
    states = tmp_path / "states"
    plan = {"parts": parts, "logs": str(tmp_path), "states": str(states), "environment": {"PATH": "/usr/bin:/bin"}}

    with supervisor_of(plan, tmp_path):
        logs = [tmp_path / f"{name}.log" for name in ("new", "small", "large")]
        wait_until(lambda: all(log.exists() and title(log) for log in logs))

    sizes = {path.name: path.stat().st_size for path in tmp_path.glob("*.log*")}
    assert sizes == {
        "new.log": 5, "small.log": 8 * MIB + 5, "large.log": 5, "large.log.1": 8 * MIB + 1,
    }  # fmt: skip


def test_a_part_waits_for_its_file(tmp_path: Path) -> None:
    """A part that starts after a file is not required, and starts once the file is there."""
    mark, states = tmp_path / "ready", tmp_path / "states"
    late = {"name": "late", "args": ["sleep", "60"], "starts_after": str(mark)}
    parts = [{"name": "first", "args": ["sleep", "60"]}, late]
    plan = {"parts": parts, "logs": str(tmp_path), "states": str(states), "environment": {"PATH": "/usr/bin:/bin"}}

    with supervisor_of(plan, tmp_path):
        wait_until(lambda: read_states(states).get("first", {}).get("ready"))
        before = read_states(states)["late"]
        mark.touch()
        wait_until(lambda: read_states(states)["late"]["ready"])

    assert (before["running"], before["required"], before["starts"]) == (False, False, 0)
    assert read_states(states)["first"]["required"]


def test_states_that_can_t_be_written(tmp_path: Path) -> None:
    """States that can't be written, as on a full disk, are written later: meanwhile the parts run on."""
    no_folder, ran = tmp_path / "full", tmp_path / "ran"
    no_folder.touch()
    states = no_folder / "states"
    part = {"name": "first", "args": ["touch", str(ran)]}
    environment = {"PATH": "/usr/bin:/bin"}
    plan = {"parts": [part], "environment": environment, "logs": str(tmp_path), "states": str(states)}

    with supervisor_of(plan, tmp_path):
        wait_until(ran.exists)
        no_folder.unlink()
        wait_until(states.exists)
    assert read_states(states)["first"]["starts"] > 0


def test_a_log_that_can_t_be_written(tmp_path: Path) -> None:
    """A part without a log, as on a full disk, waits for its next try, and does not end the others."""
    states = tmp_path / "states"
    part = {"name": "first", "args": ["true"]}
    plan = {"parts": [part], "environment": {}, "logs": str(tmp_path / "missing"), "states": str(states)}

    with supervisor_of(plan, tmp_path):
        wait_until(states.exists)
        found = read_states(states)["first"]
    assert (found["running"], found["starts"]) == (False, 0)


UNSHARED = ("unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--")


@pytest.mark.parametrize(
    "before", [pytest.param((), id="same-processes"), pytest.param(UNSHARED, id="own-processes", marks=NEEDS_ROOT)]
)
def test_it_notes_itself(before: tuple[str, ...], tmp_path: Path) -> None:
    """The note has its number on the machine, so that a cluster is found whose start was killed."""
    note, processes = tmp_path / "supervisor.json", os.open("/proc", os.O_RDONLY)
    own = ProcessId.from_pid(os.getpid()).to_data()
    plan = {"parts": [], "logs": str(tmp_path), "states": str(tmp_path / "states"), "environment": {}}
    plan["note"] = {"path": str(note), "processes_fd": processes, "process": own}
    (tmp_path / "plan").write_text(json.dumps(plan))
    args = [*before, sys.executable, "-m", "composeplat.local.supervisor", str(tmp_path / "plan")]
    with subprocess.Popen(args, pass_fds=[processes]) as process:
        os.close(processes)
        try:
            wait_until(note.exists)
            found = ProcessId.from_data(json.loads(note.read_text()))
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            expected = ProcessId.from_pid(int(children[0]) if before else process.pid)
        finally:
            # This ends the child too.
            process.kill()

    assert found == expected
    assert expected.started is not None


def test_modules_of_the_current_folder_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start in a checkout with files named like modules runs none of them: it runs as root."""
    ran, project = tmp_path / "ran", tmp_path / "project"
    for name in ("composeplat/__init__.py", "json.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"open({str(ran)!r}, 'w').close()\nraise SystemExit(1)\n")
    layout = Layout(folder=tmp_path / "cluster", run=tmp_path / "run")
    for folder in (layout.logs, layout.run):
        folder.mkdir(parents=True)
    plan = {"parts": [], "environment": {}, "logs": str(layout.logs), "states": str(layout.states)}
    monkeypatch.chdir(project)

    start = LocalCluster(layout, os.environ)._supervise  # noqa: SLF001 -- a whole start needs minutes
    process = start([], plan, os.environ["PATH"], [])
    wait_until(lambda: layout.states.exists() or process.poll() is not None)
    process.terminate()
    process.wait()

    assert (layout.states.exists(), ran.exists()) == (True, False)


def test_each_module_is_run_alike(tmp_path: Path) -> None:
    """No part and no command looks for its modules in the current folder."""
    parts = make_parts(LAYOUT, PROGRAMS)
    make_plan = local_cluster({"COMPOSEPLAT_CLUSTER": str(tmp_path)}, simulated=1)._plan  # noqa: SLF001
    simulated = make_plan(PROGRAMS, 0)["parts"]
    commands = [*(part.args for part in parts), *(part["args"] for part in simulated)]
    modules = [command for command in commands if "-m" in command]

    assert [command[:3] for command in modules] == [("/t/python", "-P", "-m")] * 4


@contextlib.contextmanager
def supervisor_of(plan: dict[str, Any], folder: Path) -> Iterator[None]:
    (folder / "plan").write_text(json.dumps(plan))
    with subprocess.Popen([sys.executable, "-m", "composeplat.local.supervisor", str(folder / "plan")]) as supervisor:
        try:
            yield
        finally:
            supervisor.terminate()


def wait_until(is_done: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not is_done():
        time.sleep(0.05)


def title(log: Path) -> bool:
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - 5))
        return stream.read() == b"said\n"
