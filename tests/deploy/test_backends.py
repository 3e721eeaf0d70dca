"""States in backends that several people share: buckets (MinIO, Google, Azure), PostgreSQL, and files on a share.

Nothing is lost, and nothing made twice: with two machines at once, after a lock that was left, and when the backend
goes away while objects are applied.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from composeplat.system.processes import session_members
from tests.cloud_servers import azure, google
from tests.conftest import for_endurance
from tests.deploy.conftest import Environment, Ran, until
from tests.deploy.test_trouble import HEAD, STUCK, Begun, begin, identities
from tests.state_servers import PASSWORD, Minio, Postgres, StateServer, minio, postgres

__all__ = ["azure", "google", "minio", "postgres"]

#: Of a backend that is gone, a run ends within this time.
MAX_SECONDS_WITHOUT_BACKEND = 90
HIDDEN = "hidden-value-of-the-app"
OF_TEAM = "the passphrase of the team"
APP = (
    f"{HEAD}  app: {{<<: *app, environment: {{DB_PASSWORD: {HIDDEN}}}, volumes: ['data:/data']}}\n"
    "  web: {<<: *app, scale: 0}\nvolumes: {data: {}}\n"
)
SLOW = HEAD + "  app-0: {<<: *app, volumes: ['data:/data']}\n" + "".join(
    f"  app-{n}: {{<<: *app, depends_on: [app-{n - 1}]}}\n" for n in range(1, 5)
) + "volumes: {data: {}}\n"  # fmt: skip


@pytest.fixture
def server(request: pytest.FixtureRequest) -> StateServer:
    found: StateServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """The variables that everyone has who uses a backend."""
    if request.param == "files":
        (tmp_path / "share").mkdir()
        return {"PULUMI_BACKEND_URL": f"file://{tmp_path / 'share'}", "PULUMI_CONFIG_PASSPHRASE": OF_TEAM}
    return variables_of(request.getfixturevalue(request.param))


def variables_of(server: StateServer) -> dict[str, str]:
    return {"PULUMI_BACKEND_URL": server.url, "PULUMI_CONFIG_PASSPHRASE": OF_TEAM, **server.variables}


@contextlib.contextmanager
def on_another_machine(environment: Environment, tmp_path: Path) -> Iterator[None]:
    """Run commands with the data folder of another machine."""
    ours = environment.variables["COMPOSEPLAT_DATA"]
    environment.variables["COMPOSEPLAT_DATA"] = str(tmp_path / "other-machine")
    yield
    environment.variables["COMPOSEPLAT_DATA"] = ours


def kill_all(begun: Begun, environment: Environment) -> None:
    """Kill a command and the Pulumi that it runs, as a machine that loses its power."""
    (note,) = Path(environment.variables["COMPOSEPLAT_DATA"]).glob(
        f"stacks/*/{environment.name}/{environment.namespace}/running.json"
    )
    pids = [begun.process.pid, *session_members(json.loads(note.read_text())["pid"])]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    begun.process.wait()


def claim_id(environment: Environment) -> Any:
    (claim,) = environment.objects("v1", "PersistentVolumeClaim")
    return claim["metadata"]["uid"]


def output_of(ran: Ran) -> str:
    """All that a run has written, its log included."""
    log = Path(ran.log).read_text() if ran.log else ""
    return ran.stdout + ran.stderr + log


@pytest.mark.parametrize("server", ["postgres", *for_endurance("minio", "google", "azure")], indirect=True)
def test_from_the_first_deploy_to_the_end(environment: Environment, server: StateServer) -> None:
    """Deploy, preview, change and destroy work with the backend, and neither it nor any message has a secret."""
    shared = variables_of(server)
    environment.variables.update(shared)
    runs = [
        environment.deploy(APP, "--debug").expect(),
        environment.platform("preview", "--expect-no-changes", "--debug").expect(),
    ]
    before = identities(environment)
    environment.write(APP.replace("scale: 0", "scale: 1"))
    runs += [environment.platform("deploy").expect(), environment.platform("state", "show").expect()]
    runs.append(environment.platform("eject", "-o", str(environment.folder.parent / "ejected")).expect())
    logs = Path(environment.variables["COMPOSEPLAT_DATA"]) / "logs"
    text = "".join(map(output_of, runs)) + "".join(path.read_text() for path in logs.iterdir())

    assert set(before) <= set(identities(environment))
    assert not [name for name in (HIDDEN, PASSWORD, OF_TEAM) if name in text]
    assert not [name for name in (HIDDEN, OF_TEAM) if name.encode() in server.stored()]
    environment.platform("destroy").expect()
    assert environment.names() == {"PersistentVolumeClaim/data"}


@pytest.mark.parametrize("shared", ["minio", *for_endurance("files", "postgres", "google", "azure")], indirect=True)
def test_the_history_and_a_rollback(environment: Environment, shared: dict[str, str], tmp_path: Path) -> None:
    """Another machine sees both deployments, and rolls the last one back with the values that it never had."""
    environment.variables.update(shared)
    environment.deploy(HEAD + "  app: {<<: *app, environment: {DB_PASSWORD: one}}\n").expect()
    environment.deploy(HEAD + "  app: {<<: *app, environment: {DB_PASSWORD: two}}\n").expect()

    with on_another_machine(environment, tmp_path):
        revisions = environment.platform("history", "--json").expect().json["revisions"]
        environment.platform("rollback", "--yes").expect()

    assert [(row["revision"], row["can_roll_back"]) for row in revisions] == [(2, True), (1, True)]
    secret = environment.get("v1", "Secret", "app-env")
    assert secret
    assert base64.b64decode(secret["data"]["DB_PASSWORD"]) == b"one"


@pytest.mark.parametrize("shared", ["postgres", *for_endurance("files", "minio", "google", "azure")], indirect=True)
def test_two_machines_at_once(environment: Environment, shared: dict[str, str], tmp_path: Path) -> None:
    """While one machine deploys, another one is refused, with the owner; then it continues from there."""
    environment.variables.update(shared)
    environment.write(STUCK)
    running = begin(environment, "deploy")
    running.until("slow: 0/1 ready")
    with on_another_machine(environment, tmp_path):
        refused = environment.platform("refresh").expect(1)
        running.process.send_signal(signal.SIGINT)
        running.end(60).expect(130)
        environment.deploy(APP).expect()
        environment.platform("preview", "--expect-no-changes").expect()
    environment.platform("preview", "--expect-no-changes").expect()

    assert re.search(r"error: the stack is locked by root@\S+, process \d+, since 20\S+\n", refused.stderr)
    assert "if it is gone for good: platform state unlock\n" in refused.stderr


@pytest.mark.parametrize("shared", ["files", *for_endurance("minio", "postgres", "google", "azure")], indirect=True)
def test_a_lock_that_is_left(environment: Environment, shared: dict[str, str], tmp_path: Path) -> None:
    """The lock of a run that was killed names its owner on other machines; on its own, the next deploy removes it."""
    environment.variables.update(shared)
    kill_in_the_middle(environment)
    claim = claim_id(environment)
    with on_another_machine(environment, tmp_path):
        refused = environment.platform("refresh").expect(1)
    environment.deploy(APP).expect()

    assert "error: the stack is locked by root@" in refused.stderr
    assert claim_id(environment) == claim


def test_unlocked_by_another_machine(environment: Environment, postgres: Postgres, tmp_path: Path) -> None:
    """Where the machine that was killed is gone, another one removes the lock, and continues; nothing is replaced."""
    environment.variables.update(variables_of(postgres))
    kill_in_the_middle(environment)
    claim = claim_id(environment)
    with on_another_machine(environment, tmp_path):
        unlocked = environment.platform("state", "unlock", "--yes").expect()
        environment.deploy(APP).expect()

    assert "the stack is locked by root@" in unlocked.stderr
    assert "removed the lock of " in unlocked.stderr
    assert claim_id(environment) == claim


def kill_in_the_middle(environment: Environment) -> None:
    """Kill a deploy, with Pulumi, while a service waits for another one."""
    environment.write(STUCK + "  keeper: {<<: *app, volumes: ['data:/data']}\nvolumes: {data: {}}\n")
    running = begin(environment, "deploy")
    running.until("slow: 0/1 ready")
    until(lambda: environment.objects("v1", "PersistentVolumeClaim"))
    kill_all(running, environment)


@pytest.mark.parametrize("server", ["postgres", *for_endurance("minio", "google", "azure")], indirect=True)
def test_the_backend_goes_away(environment: Environment, server: StateServer) -> None:
    """A backend that dies while objects are applied ends the run with a message; the next deploy continues."""
    environment.variables.update(variables_of(server))
    environment.write(SLOW)
    running = begin(environment, "deploy")
    until(lambda: environment.objects("v1", "PersistentVolumeClaim"))
    claim = claim_id(environment)
    server.kill()
    try:
        ended = running.end(MAX_SECONDS_WITHOUT_BACKEND)
    finally:
        server.start()
    before = identities(environment)
    environment.platform("deploy").expect()

    assert ended.status in (1, 4)
    assert "error: the state backend " in ended.stderr
    assert "  hint: check that it runs" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert PASSWORD not in ended.stderr
    assert claim_id(environment) == claim
    assert set(before) <= set(identities(environment))
    environment.platform("preview", "--expect-no-changes").expect()


@pytest.mark.parametrize("server", ["minio", *for_endurance("postgres", "google", "azure")], indirect=True)
def test_the_backend_restarts(environment: Environment, server: StateServer) -> None:
    """A backend that is back within seconds is not noticed by the deploy."""
    environment.variables.update(variables_of(server))
    environment.write(SLOW)
    running = begin(environment, "deploy")
    until(lambda: environment.objects("v1", "PersistentVolumeClaim"))
    server.kill()
    server.start()
    running.end(MAX_SECONDS_WITHOUT_BACKEND).expect()
    environment.platform("preview", "--expect-no-changes").expect()


@pytest.mark.endurance
def test_the_backend_is_halted(environment: Environment, minio: Minio) -> None:
    """A backend that answers nothing any more ends the run after half a minute; the next deploy continues."""
    environment.variables.update(variables_of(minio))
    environment.write(SLOW)
    running = begin(environment, "deploy")
    until(lambda: environment.objects("v1", "PersistentVolumeClaim"))
    minio.halt()
    try:
        ended = running.end(MAX_SECONDS_WITHOUT_BACKEND)
    finally:
        minio.go_on()
    environment.platform("deploy").expect()

    assert ended.status == 4
    assert f"error: the state backend {minio.url} has not answered for 30 s\n" in ended.stderr
    environment.platform("preview", "--expect-no-changes").expect()


def test_a_moved_state_deploys(environment: Environment, minio: Minio) -> None:
    """After a move, a deploy there changes nothing, and one without the new backend is refused."""
    environment.deploy(APP).expect()
    before = identities(environment)
    shared = variables_of(minio)
    environment.platform("state", "move", "own", minio.url, "--yes", **shared).expect()
    refused = environment.platform("deploy").expect(1)
    environment.platform("preview", "--expect-no-changes", **shared).expect()
    environment.platform("deploy", **shared).expect()

    assert f"was moved to {minio.url}\n  hint: set PULUMI_BACKEND_URL to that backend" in refused.stderr
    assert identities(environment) == before


@pytest.mark.endurance
def test_a_new_passphrase_deploys(environment: Environment, tmp_path: Path, minio: Minio) -> None:
    """After a change of the passphrase, deploys change nothing: with our own, and on another machine of a team."""
    environment.deploy(APP).expect()
    before = identities(environment)
    environment.platform("state", "passphrase").expect()
    environment.platform("preview", "--expect-no-changes").expect()

    shared = variables_of(minio)
    environment.platform("state", "move", "own", minio.url, "--yes", **shared).expect()
    with on_another_machine(environment, tmp_path):
        environment.platform("preview", "--expect-no-changes", **shared).expect()
    new = {**shared, "PULUMI_CONFIG_PASSPHRASE": "another one"}
    (tmp_path / "new").write_text("another one")
    environment.platform("state", "passphrase", "--new-passphrase-file", str(tmp_path / "new"), **shared).expect()
    with on_another_machine(environment, tmp_path):
        wrong = environment.platform("deploy", **shared).expect(4)
        environment.platform("deploy", **new).expect()
        environment.platform("preview", "--expect-no-changes", **new).expect()

    assert "error: the state is encrypted with another passphrase\n" in wrong.stderr
    assert identities(environment) == before
