"""An operation is followed from another process, by the log in its stack's folder: while it runs, and how it ended."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from composeplat.engine.operation_log import OperationFollower, read_operation
from tests.deploy.conftest import SLEEP, Environment, until
from tests.deploy.test_up import up_args

Document = dict[str, Any]
SECRET = "hunter2-of-the-file"  # noqa: S105
FILE = f"""\
x-app: &app {{image: 'busybox:1.37', command: "{SLEEP}", stop_grace_period: 0}}
services:
  db: {{<<: *app, environment: {{TAG: "${{TAG:-1}}"}}}}
  web: {{<<: *app, depends_on: [db]}}
"""
FAILING = f"""{FILE}
  broken:
    image: 'busybox:1.37'
    command: sh -c 'exit 3'
  absent: {{image: "registry.invalid/absent:${{DB_PASSWORD}}"}}
"""


def stack_folder(environment: Environment) -> Path:
    """The folder of the stack, as soon as there is one."""
    stacks = Path(environment.variables["COMPOSEPLAT_DATA"]) / "stacks"
    (found,) = until(lambda: list(stacks.glob(f"*/{environment.name}/{environment.namespace}")))
    assert isinstance(found, Path)
    return found


def read(environment: Environment) -> Document:
    found = read_operation(stack_folder(environment))
    assert found is not None
    return found


def follow(environment: Environment, *, seconds: float = 120) -> list[Document]:
    """Follow an operation to its end, five times a second, as a page does; return the documents that were new."""
    follower = OperationFollower(stack_folder(environment))
    found: list[Document] = []
    ends = time.monotonic() + seconds
    while time.monotonic() < ends and not (found and found[-1]["state"] != "running"):
        if follower.update() and follower.document is not None:
            found.append(follower.document)
        time.sleep(0.2)
    return found


def all_files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("operation*"))


def test_a_deploy_is_followed_from_its_begin_to_its_end(environment: Environment) -> None:
    environment.write(FILE)
    process = environment.start("deploy")

    documents = follow(environment)
    process.communicate(timeout=60)

    first, last = documents[0], documents[-1]
    assert process.returncode == 0
    assert (first["operation"], first["state"], first["pid"]) == ("deploy", "running", process.pid)
    assert len(documents) > 3, "it is seen while it runs"
    phases = {row["phase"] for document in documents for row in document["services"].values()}
    assert {"applying", "waiting", "ready"} <= phases
    assert last["state"] == "done"
    assert {name: row["phase"] for name, row in last["services"].items()} == {"db": "ready", "web": "ready"}
    assert f"created namespace {environment.namespace}" in last["notes"]
    assert first["started"] == last["started"] < last["ended"]

    _test_what_leaves_it_alone(environment)
    _test_sleep_and_wake(environment)


def _test_what_leaves_it_alone(environment: Environment) -> None:
    """Neither commands that show something, nor a deploy that has nothing to do."""
    environment.platform("deploy").expect()
    last = read(environment)
    for args in (("preview",), ("status",), ("history",), ("deploy",), ("refresh", "--preview")):
        environment.platform(*args).expect()
        assert read(environment) == last, args


def _test_sleep_and_wake(environment: Environment) -> None:
    environment.platform("sleep").expect()
    assert (read(environment)["operation"], read(environment)["state"]) == ("sleep", "done")
    environment.platform("wake").expect()
    woken = read(environment)
    assert (woken["operation"], woken["state"]) == ("wake", "done")
    assert {row["phase"] for row in woken["services"].values()} == {"ready"}
    environment.platform("destroy", "--yes").expect()
    assert (read(environment)["operation"], read(environment)["state"]) == ("destroy", "done")


def test_a_failure_is_explained_without_secrets(environment: Environment) -> None:
    environment.write(FAILING)
    environment.platform("deploy", "--timeout", "60", DB_PASSWORD=SECRET).expect(1)

    found = read(environment)
    assert found["state"] == "failed"
    assert {name for name, row in found["services"].items() if row["phase"] == "failed"} == {"broken", "absent"}
    causes = [note for note in found["notes"] if note.startswith(("broken: ", "absent: "))]
    assert len(causes) == 2
    assert found["services"]["broken"]["message"] in causes[0] + causes[1]
    assert "[secret]" in found["services"]["absent"]["message"]
    assert SECRET.encode() not in all_files(stack_folder(environment))
    assert {path.stat().st_mode & 0o777 for path in stack_folder(environment).glob("operation*")} == {0o600}


def test_a_killed_and_an_interrupted_deploy(environment: Environment) -> None:
    environment.write(f"{FILE}  slow: {{<<: *app, healthcheck: {{test: [CMD, 'false'], start_period: 600s}}}}\n")

    for number, state in ((signal.SIGKILL, "interrupted"), (signal.SIGINT, "interrupted")):
        process = environment.start("deploy", "--timeout", "200")
        _until_waiting(environment, process)
        process.send_signal(number)
        process.communicate(timeout=100)
        documents = follow(environment, seconds=10)
        assert documents[-1]["state"] == state
        assert bool(documents[-1]["ended"]) == (number is signal.SIGINT)

    environment.deploy(FILE).expect()
    assert read(environment)["state"] == "done"


def _until_waiting(environment: Environment, process: subprocess.Popen[str]) -> None:
    def is_waiting() -> bool:
        found = read(environment)
        slow = found["services"].get("slow", {})
        return bool(found["pid"] == process.pid and slow.get("phase") == "waiting")

    _until(lambda: read_operation(stack_folder(environment)) is not None)
    _until(is_waiting)
    assert read(environment)["state"] == "running"


def _until(condition: Callable[[], bool]) -> None:
    until(condition, seconds=100)


@pytest.mark.endurance
def test_a_development_session_deploys_first(environment: Environment) -> None:
    """Its deploy has ended while the session continues, and giving the service back is no operation of its own."""
    environment.write(f"{FILE}  dev: {{<<: *app, volumes: ['./src:/app']}}\n")
    environment.write("print('one')\n", "src/app.py")
    with subprocess.Popen(
        up_args(environment, "dev", "--", "sh", "-c", "echo runs; sleep 5"),
        cwd=environment.folder, env=environment.variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        stdin=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        deployed = follow(environment)[-1]
        assert (deployed["operation"], deployed["state"], deployed["pid"]) == ("deploy", "done", process.pid)
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        assert process.poll() is None
        assert read(environment) == deployed
        _, messages = process.communicate(timeout=100)
        assert process.returncode == 0, messages
    environment.platform("down", "dev").expect()
    assert read(environment) == deployed
