"""``platform state`` with real backends, and without a cluster: files, MinIO and PostgreSQL."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from composeplat.engine.backend import backend_at, find_data_folder
from composeplat.engine.moved_mark import read_moved
from composeplat.engine.operations import state as operation
from composeplat.engine.operations.state import Move
from composeplat.engine.passphrase import Passphrase, find_passphrase
from composeplat.engine.pulumi_errors import Busy
from composeplat.engine.stack_lock import hold_stack_lock
from composeplat.engine.state_store import StateStore
from composeplat.system.folders import cache_folder
from tests.conftest import VARIABLES, Outcome, Project, run
from tests.deploy.test_planted_secrets import command_lines
from tests.schemas import checked
from tests.state_servers import PASSWORD, USER, Minio, Postgres, StateServer, lock_of_another, minio, postgres
from tests.terminal import Terminal

__all__ = ["minio", "postgres"]
pytestmark = pytest.mark.timeout(300)

HIDDEN = "a-value-that-nobody-may-read"
NAME, NAMESPACE = "shop", "team"


def resources(value: str = HIDDEN) -> list[dict[str, Any]]:
    """The resources of a stack, one of which has a secret."""
    prefix = f"urn:pulumi:{NAMESPACE}::{NAME}::"
    root = {"urn": f"{prefix}pulumi:pulumi:Stack::{NAME}-{NAMESPACE}", "custom": False, "type": "pulumi:pulumi:Stack"}
    hidden = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "plaintext": json.dumps(value)}
    kind = "composeplat:index:ComposeStack"
    child = {"urn": f"{prefix}{kind}::{NAME}", "custom": False, "type": kind, "parent": root["urn"]}
    return [root, {**child, "inputs": {"password": hidden}}]


@dataclass
class Machine:
    """A data folder, and the variables with which ``platform state`` runs there."""

    folder: Path
    data: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        places = {"COMPOSEPLAT_DATA": str(self.data), "HOME": str(self.data.parent), "PLATFORM_NAMESPACE": NAMESPACE}
        return {**places, "COMPOSEPLAT_CACHE": str(cache_folder(os.environ)), **self.variables}

    def state(self, *args: str, **more: str) -> Outcome:
        variables: dict[str, Any] = {**self.environment, **more}
        return run("state", *args, folder=self.folder, **{"timeout": 120, **variables})

    def start(self, *args: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", "from composeplat.cli.app import main; main()", "state", *args],
            cwd=self.folder, env={**VARIABLES, **self.environment}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip

    def store(self, url: str, **more: str) -> StateStore:
        environment = {**VARIABLES, **self.environment, **more}
        data_folder = find_data_folder(environment)
        data_folder.prepare()
        return StateStore(
            backend=backend_at(url, environment, data_folder),
            data_folder=data_folder, environment_name=NAME, namespace=NAMESPACE, environment=environment,
        )  # fmt: skip

    def fill(self, url: str, value: str = HIDDEN, **more: str) -> None:
        """Write a state as a deploy would leave it."""
        store = self.store(url, **more)
        passphrase = find_passphrase(store.environment, store.data_folder, store.folder)
        store.create(passphrase)
        store.write({"resources": resources(value)}, passphrase, store.new_salt(passphrase))

    def plain(self, url: str, passphrase: str = "", **more: str) -> Any:
        """The resources of a state with their secrets; none if there is no state."""
        store = self.store(url, **more)
        found = find_passphrase(store.environment, store.data_folder, store.folder)
        deployment = store.read(Passphrase(passphrase) if passphrase else found)
        return None if deployment is None else deployment.get("resources")


@pytest.fixture
def machine(project: Project, tmp_path: Path) -> Machine:
    folder = project(f"name: {NAME}\nservices:\n  web:\n    image: nginx\n").path
    return Machine(folder, tmp_path / "data")


@pytest.fixture
def files(tmp_path: Path) -> str:
    """The URL of a folder."""
    folder = tmp_path / "share"
    folder.mkdir()
    return f"file://{folder}"


def until(done: Callable[[], Outcome], *, seconds: float = 60) -> Outcome:
    """Repeat a command until it succeeds: a part of Pulumi may outlive a killed command for a moment."""
    deadline = time.monotonic() + seconds
    while True:
        outcome = done()
        if outcome.status == 0 or time.monotonic() > deadline:
            return outcome.assert_success()
        assert "locked by" in outcome.stderr or "is busy" in outcome.stderr, outcome.stderr


# showing --------------------------------------------------------------------------------------------------------------


def test_show(machine: Machine, files: str) -> None:
    """The backend, the number of resources and the source of the passphrase are shown, also as JSON."""
    machine.fill(files)
    shown = machine.state("show", PULUMI_BACKEND_URL=files).assert_success()
    data = checked(json.loads(machine.state("show", "--json", PULUMI_BACKEND_URL=files).assert_success().stdout))

    assert shown.stdout == (
        f"environment  {NAME}\nnamespace    {NAMESPACE}\nbackend      {files}\nresources    2\n"
        "passphrase   the generated file in the data folder\n"
    )
    assert data == {
        "schema": "platform/state/1", "environment": NAME, "namespace": NAMESPACE, "action": "show", "backend": files,
        "resources": 2, "passphrase": "the generated file in the data folder",
    }  # fmt: skip


def test_no_state(machine: Machine, files: str) -> None:
    """An environment without a state is no error to show, and one to move or to change."""
    shown = machine.state("show", PULUMI_BACKEND_URL=files).assert_success()

    assert "resources    no state\n" in shown.stdout
    assert shown.stderr == ""
    for command in ("passphrase", "unlock"):
        refused = machine.state(command, PULUMI_BACKEND_URL=files)
        assert refused.status == 1
        assert refused.stderr == (
            f"error: environment '{NAME}' in namespace '{NAMESPACE}' has no state in {files}\n  hint: platform deploy\n"
        )


def test_a_state_that_was_moved_away(machine: Machine, files: str, tmp_path: Path) -> None:
    """Where it was, each command names the place where it is: the variable is easily forgotten."""
    (tmp_path / "team").mkdir()
    target = f"file://{tmp_path / 'team'}"
    machine.fill(files)
    machine.state("move", files, target, "--yes").assert_success()
    moved = f"the state of environment '{NAME}' in namespace '{NAMESPACE}' was moved to {target}"
    shown = machine.state("show", PULUMI_BACKEND_URL=files).assert_success()

    assert shown.stderr == f"{moved}: set PULUMI_BACKEND_URL to that backend\n"
    for command in ("passphrase", "unlock"):
        refused = machine.state(command, PULUMI_BACKEND_URL=files)
        assert (refused.status, refused.stderr) == (
            1, f"error: {moved}\n  hint: set PULUMI_BACKEND_URL to that backend\n",
        )  # fmt: skip


# moving ---------------------------------------------------------------------------------------------------------------


def test_move_to_a_bucket_and_to_a_database(machine: Machine, files: str, minio: Minio, postgres: Postgres) -> None:
    """A state moves from files to S3, to PostgreSQL and back; each time, nothing stays behind."""
    machine.variables = {**minio.variables, "TEAM_STATE": postgres.url}
    machine.fill(files)
    ours = machine.plain(files)

    team = {"PULUMI_CONFIG_PASSPHRASE": "the team's"}
    to_bucket = machine.state("move", files, minio.url, "--yes", **team)
    assert to_bucket.assert_success().stderr.startswith(
        f"moves the state of {NAME} in namespace {NAMESPACE}, 2 resources\n  from {files}\n  to   {minio.url}\n"
        "  with another passphrase: PULUMI_CONFIG_PASSPHRASE\n"
    )
    assert machine.plain(files) is None
    assert machine.plain(minio.url, "the team's") == ours
    assert HIDDEN.encode() not in minio.stored()

    to_database = machine.state("move", minio.url, "env:TEAM_STATE", "--yes", "--json", **team).assert_success()
    assert checked(json.loads(to_database.stdout))["backend"] == postgres.url.replace(PASSWORD, "****")
    assert machine.plain(minio.url, "the team's") is None
    assert machine.plain(postgres.url, "the team's") == ours
    assert HIDDEN.encode() not in postgres.stored()
    assert PASSWORD not in to_database.stdout + to_database.stderr

    machine.state("move", "env:TEAM_STATE", files, "--yes", **team).assert_success()
    assert machine.plain(files, "the team's") == ours
    assert machine.plain(postgres.url, "the team's") is None


@pytest.mark.parametrize(
    "step", ["creating the stack in the target", "writing the state", "comparing both states", "removing the state"]
)
def test_killed_while_it_moves(machine: Machine, files: str, minio: Minio, step: str) -> None:
    """A move that is killed at any step loses nothing, and the same command continues it."""
    machine.variables = dict(minio.variables)
    target = minio.url_of(f"{minio.bucket}/{step.split(maxsplit=1)[0]}")
    machine.fill(files)
    ours = machine.plain(files)

    process = machine.start("move", files, target, "--yes")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(step):
            break
    process.kill()
    process.communicate()
    assert ours in (machine.plain(files), machine.plain(target))
    until(lambda: machine.state("move", files, target, "--yes"))

    assert machine.plain(target) == ours
    assert machine.plain(files) is None


def test_killed_after_the_removal(
    machine: Machine, files: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A move that is killed between the removal of the source and its note is noted by the next run."""
    (tmp_path / "new").mkdir()
    target = f"file://{tmp_path / 'new'}"
    machine.fill(files)
    source = machine.store(files)
    passphrase = find_passphrase(source.environment, source.data_folder, source.folder)
    move = Move(source=source, target=machine.store(target), passphrases=[passphrase], passphrase=passphrase)
    with move.locked(), monkeypatch.context() as patch:
        move.read()
        patch.setattr(operation, "mark_moved", lambda *_: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            move.run()
    assert read_moved(source.folder) == ""

    again = machine.state("move", files, target, "--yes").assert_success()

    assert f"the state of {NAME} in namespace {NAMESPACE} is in {target} already" in again.stderr
    assert read_moved(source.folder) == target
    assert machine.plain(target) == resources()


def test_move_of_a_state_that_is_used(machine: Machine, files: str, tmp_path: Path) -> None:
    """While a run holds a lock, here or on another machine, nothing is moved."""
    (tmp_path / "new").mkdir()
    target = f"file://{tmp_path / 'new'}"
    machine.fill(files)
    with hold_stack_lock(machine.store(files).folder, NAME, NAMESPACE, "deploy"):
        here = machine.state("move", files, target, "--yes")
    leave_lock(files)
    elsewhere = machine.state("move", files, target, "--yes")

    assert f"error: environment '{NAME}' in namespace '{NAMESPACE}' is busy: process {os.getpid()}" in here.stderr
    assert "error: the stack is locked by ann@desk, process 4711" in elsewhere.stderr
    assert (here.status, elsewhere.status) == (1, 1)
    assert (machine.plain(files), machine.plain(target)) == (resources(), None)


def test_a_state_that_changes_while_it_moves(machine: Machine, files: str, tmp_path: Path) -> None:
    """A state that another machine has changed meanwhile stays, and the next move takes the change along."""
    (tmp_path / "new").mkdir()
    target = f"file://{tmp_path / 'new'}"
    machine.fill(files)
    source = machine.store(files)
    passphrase = find_passphrase(source.environment, source.data_folder, source.folder)
    move = Move(source=source, target=machine.store(target), passphrases=[passphrase], passphrase=passphrase)
    with move.locked():
        move.read()
        source.write({"resources": resources("changed")}, passphrase, source.new_salt(passphrase))
        with pytest.raises(Busy, match="has changed meanwhile, so it stays"):
            move.run()

    assert machine.plain(files) == resources("changed")
    machine.state("move", files, target, "--yes").assert_success()
    assert (machine.plain(files), machine.plain(target)) == (None, resources("changed"))


def test_another_passphrase_of_the_source(machine: Machine, files: str, tmp_path: Path) -> None:
    """The passphrase of the source comes from a file, where it is not set here; nothing of it is left in plain."""
    (tmp_path / "new").mkdir()
    target = f"file://{tmp_path / 'new'}"
    theirs = {"PULUMI_CONFIG_PASSPHRASE": "their-passphrase"}
    machine.fill(files, **theirs)
    (tmp_path / "theirs").write_text("their-passphrase")
    process = machine.start("move", files, target, "--yes", "--from-passphrase-file", str(tmp_path / "theirs"))
    seen = set()
    while process.poll() is None:
        lines = command_lines()
        seen |= {text for text in (HIDDEN, "their-passphrase") if text in lines}
        time.sleep(0.02)
    _, stderr = process.communicate()
    (tmp_path / "theirs").unlink()
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())

    assert process.returncode == 0, stderr
    assert machine.plain(target) == resources()
    assert seen == set()
    assert [text for text in (HIDDEN, "their-passphrase") if text.encode() in kept or text in stderr] == []


def test_a_state_that_a_service_encrypts(machine: Machine, files: str) -> None:
    """A state without a passphrase is neither moved nor encrypted: Pulumi has commands for it."""
    machine.fill(files)
    (path,) = Path(files.removeprefix("file://")).glob(f".pulumi/stacks/{NAME}/{NAMESPACE}.json")
    state = json.loads(path.read_text())
    state["checkpoint"]["latest"]["secrets_providers"]["type"] = "cloud"
    path.write_text(json.dumps(state))
    moved = machine.state("move", files, "file:///tmp", "--yes")
    changed = machine.state("passphrase", PULUMI_BACKEND_URL=files)

    assert f"error: the state in {files} is encrypted by 'cloud', not with a passphrase\n" in moved.stderr
    assert "hint: move it with Pulumi: pulumi stack migrate\n" in moved.stderr
    assert f"error: the state in {files} is not encrypted with a passphrase\n" in changed.stderr
    assert (moved.status, changed.status) == (1, 1)


def test_move_over_another_state(machine: Machine, files: str, tmp_path: Path) -> None:
    """A target that has another state of the environment is refused, and both stay as they are."""
    (tmp_path / "other").mkdir()
    target = f"file://{tmp_path / 'other'}"
    machine.fill(files)
    machine.fill(target, "of another")
    refused = machine.state("move", files, target, "--yes")

    assert refused.status == 1
    assert f"has a state in {target} already, another one" in refused.stderr
    assert (machine.plain(files), machine.plain(target)) == (resources(), resources("of another"))


def test_move_nowhere(machine: Machine, files: str, tmp_path: Path) -> None:
    """A backend twice, a login in an argument, no folder, and a question that nobody can answer change nothing."""
    machine.fill(files)
    (tmp_path / "empty").mkdir()
    same = machine.state("move", files, files, "--yes")
    login = machine.state("move", files, f"postgres://me:{PASSWORD}@127.0.0.1/x", "--yes")
    silent = machine.state("move", files, f"file://{tmp_path / 'empty'}")
    missing = machine.state("move", files, f"file://{tmp_path / 'missing'}")
    in_variable = machine.state("move", files, "env:TEAM", TEAM=f"file://{tmp_path / 'missing'}")
    unknown = machine.state("move", files, "nonsense")

    assert same.stderr == "error: both backends are the same: there is nothing to move\n"
    assert login.stderr == (
        "error: 'postgres://me:****@127.0.0.1/x' has a login, and a command line can be seen by others\n"
        "  hint: put the URL into a variable, and give its name: env:NAME\n"
    )
    assert silent.stderr.endswith(
        "error: nothing was changed: there is no terminal to confirm that on\n  hint: give --yes too\n"
    )
    assert missing.stderr == (
        f"error: the folder of the state does not exist: {tmp_path / 'missing'}\n"
        f"  hint: create it, or correct 'file://{tmp_path / 'missing'}'\n"
    )
    assert in_variable.stderr.endswith("  hint: create it, or correct TEAM\n")
    assert unknown.stderr == (
        f"error: the backend 'nonsense' is of an unknown kind; kinds are: {KINDS}\n"
        "  hint: give own, a URL, or env: and the name of a variable\n"
    )
    outcomes = (same, login, silent, missing, in_variable, unknown)
    assert [outcome.status for outcome in outcomes] == [1, 2, 1, 4, 4, 4]
    assert machine.plain(files) == resources()


def test_keep(machine: Machine, files: str, tmp_path: Path) -> None:
    """With --keep, the source keeps its state."""
    target = f"file://{tmp_path / 'copy'}"
    (tmp_path / "copy").mkdir()
    machine.fill(files)
    machine.state("move", files, target, "--keep", "--yes").assert_success()

    assert machine.plain(files) == machine.plain(target) == resources()


# the passphrase -------------------------------------------------------------------------------------------------------


def test_secrets_in_a_locale_without_utf_8(machine: Machine, files: str) -> None:
    """A secret beyond ASCII is the same after its passphrase has changed, whatever the terminal can show."""
    machine.variables = {"PULUMI_BACKEND_URL": files}
    machine.fill(files, "smörgåsbord")

    machine.state("passphrase", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0").assert_success()

    _, resource = machine.plain(files)
    assert json.loads(resource["inputs"]["password"]["plaintext"]) == "smörgåsbord"


def test_a_new_generated_passphrase(machine: Machine, files: str) -> None:
    """Our own passphrase is replaced by another generated one, for this environment alone, and the state opens."""
    machine.fill(files)
    before = (machine.data / "passphrase").read_text()
    folder = machine.store(files).folder
    copies = folder / "states"
    for left in (copies, folder / "earlier-x1"):
        left.mkdir()
        (left / "1.json").write_text("{}")
    (folder / "mended.json").write_text("{}")
    machine.state("passphrase", PULUMI_BACKEND_URL=files).assert_success()
    (own,) = machine.data.glob("stacks/*/*/*/passphrase")

    assert list(copies.iterdir()) == []
    assert not {"earlier-x1", "mended.json"} & {path.name for path in folder.iterdir()}
    assert own.stat().st_mode & 0o777 == 0o600
    assert own.read_text() != before == (machine.data / "passphrase").read_text()
    assert machine.plain(files) == resources()


@pytest.mark.parametrize("server", ["minio", "postgres"])
def test_a_new_passphrase_of_a_team(
    machine: Machine, server: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """A team's passphrase is read from a file; the old one opens the state no more, and the same command says so."""
    backend: Minio | Postgres = request.getfixturevalue(server)
    machine.variables = {**backend.variables, "PULUMI_CONFIG_PASSPHRASE": "the old one"}
    machine.fill(backend.url)
    (tmp_path / "new").write_text("the new one\n")
    args = ("passphrase", "--new-passphrase-file", str(tmp_path / "new"))
    changed = machine.state(*args, PULUMI_BACKEND_URL=backend.url).assert_success()
    again = machine.state(*args, PULUMI_BACKEND_URL=backend.url).assert_success()

    assert f"the state of {NAME} in namespace {NAMESPACE} has a new passphrase\n" in changed.stderr
    assert f"the state of {NAME} in namespace {NAMESPACE} has this passphrase already\n" in again.stderr
    assert machine.plain(backend.url, "the new one") == resources()
    machine.store(backend.url).remove()


@pytest.mark.parametrize("moment", ["noted", "written"])
def test_killed_while_the_passphrase_changes(machine: Machine, files: str, moment: str) -> None:
    """A change that is killed before or after the state is written leaves a state that opens; the next run says how."""
    machine.fill(files)
    store = machine.store(files)
    new = Passphrase("the new one")
    salt = store.new_salt(new)
    store.change.begin(new.text, salt, is_ours=True)
    if moment == "written":
        store.write({"resources": resources()}, new, salt)
    done = machine.state("passphrase", PULUMI_BACKEND_URL=files).assert_success()

    assert (
        "an interrupted change of the state's passphrase "
        + ("was complete" if moment == "written" else "had no effect")
    ) in done.stderr
    assert machine.plain(files) == resources()


def test_all_environments_of_a_backend(machine: Machine, files: str) -> None:
    """With --all, each environment of the backend gets the new passphrase."""
    machine.variables = {"PULUMI_BACKEND_URL": files, "PULUMI_CONFIG_PASSPHRASE": "old"}
    machine.fill(files)
    other = machine.store(files).of("blog", "live")
    other.create(Passphrase("old"))
    new = {"PLATFORM_NEW_PASSPHRASE": "new"}
    done = machine.state("passphrase", "--all", "--yes", "--json", **new)
    done.assert_success()

    assert checked(json.loads(done.stdout))["environments"] == [
        {"environment": "blog", "namespace": "live", "outcome": "changed"},
        {"environment": NAME, "namespace": NAMESPACE, "outcome": "changed"},
    ]
    assert machine.plain(files, "new") == resources()


def test_stacks_of_other_programs(machine: Machine, files: str) -> None:
    """With --all, a stack that another Pulumi program made keeps its passphrase: its project would not open it."""
    machine.variables = {"PULUMI_BACKEND_URL": files, "PULUMI_CONFIG_PASSPHRASE": "old"}
    machine.fill(files)
    other = machine.store(files).of("infra", "live")
    other.create(Passphrase("old"))
    row = {"urn": "urn:pulumi:live::infra::aws:s3:Bucket::x", "custom": False, "type": "aws:s3:Bucket"}
    other.write({"resources": [row]}, Passphrase("old"), other.new_salt(Passphrase("old")))
    new = {"PLATFORM_NEW_PASSPHRASE": "new"}
    done = machine.state("passphrase", "--all", "--yes", "--json", **new).assert_success()

    assert [found["environment"] for found in json.loads(done.stdout)["environments"]] == [NAME]
    assert "stack live of project infra is of another program, and stays\n" in done.stderr
    assert (other.read(Passphrase("old")) or {})["resources"] == [row]


def test_typed_without_echo(machine: Machine, files: str) -> None:
    """On a terminal the new passphrase is asked for twice, and is not shown."""
    machine.variables = {"PULUMI_CONFIG_PASSPHRASE": "old one", "PULUMI_BACKEND_URL": files}
    machine.fill(files)
    typed = "typed-passphrase"
    command = [sys.executable, "-c", "from composeplat.cli.app import main; main()", "state", "passphrase"]
    terminal = Terminal(command, folder=machine.folder, env={**VARIABLES, **machine.environment})
    terminal.until("New passphrase: ")
    terminal.type(typed)
    shown = terminal.until("Repeat for confirmation: ")
    terminal.type(typed)
    shown += terminal.rest()

    assert terminal.status() == 0
    assert "has a new passphrase" in shown
    assert typed not in shown
    assert machine.plain(files, typed) == resources()


def test_ctrl_d_at_the_new_passphrase(machine: Machine, files: str) -> None:
    """Ctrl-D refuses with a message, and the state keeps its passphrase."""
    machine.variables = {"PULUMI_CONFIG_PASSPHRASE": "old one", "PULUMI_BACKEND_URL": files}
    machine.fill(files)
    command = [sys.executable, "-c", "from composeplat.cli.app import main; main()", "state", "passphrase"]
    terminal = Terminal(command, folder=machine.folder, env={**VARIABLES, **machine.environment, "NO_COLOR": "1"})
    terminal.until("New passphrase: ")
    terminal.end_input()

    assert terminal.rest().splitlines()[1] == "error: no passphrase was given: nothing was changed"
    assert terminal.status() == 1
    assert machine.plain(files, "old one") == resources()


# locks ----------------------------------------------------------------------------------------------------------------


def leave_lock(given: str | StateServer) -> None:
    """Leave the lock of a process of another machine."""
    key, content = lock_of_another(f"{NAME}/{NAMESPACE}")
    if isinstance(given, StateServer):
        given.put(key, content)
    else:
        path = Path(given.removeprefix("file://")) / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@pytest.mark.parametrize("kind", ["files", "minio", "postgres"])
def test_a_lock_that_was_left(machine: Machine, kind: str, request: pytest.FixtureRequest) -> None:
    """A lock of another machine is shown with its holder and removed after a question; a second time there is none."""
    given = request.getfixturevalue(kind)
    url = given if isinstance(given, str) else given.url
    machine.variables = {**({} if isinstance(given, str) else given.variables), "PULUMI_BACKEND_URL": url}
    machine.fill(url)
    leave_lock(given)
    refused = machine.state("unlock")
    changed = machine.state("passphrase")
    removed = machine.state("unlock", "--yes").assert_success()
    again = machine.state("unlock", "--yes").assert_success()

    assert refused.status == 1
    assert changed.status == 1
    assert "error: the stack is locked by ann@desk, process 4711, since 2026-11-21T10:00:00Z\n" in changed.stderr
    assert "hint: wait until that has ended; if it is gone for good: platform state unlock\n" in changed.stderr
    assert "locked by ann@desk, process 4711" in removed.stderr
    assert f"removed the lock of {NAME} in namespace {NAMESPACE}\n" in removed.stderr
    assert again.stderr == f"{NAME} in namespace {NAMESPACE} is not locked\n"
    machine.store(url).remove()


def test_the_lock_of_an_empty_state(machine: Machine, files: str) -> None:
    """The lock that a first deploy left before it wrote anything is removed too, although it can't be shown."""
    machine.variables = {"PULUMI_BACKEND_URL": files}
    store = machine.store(files)
    store.create(find_passphrase(store.environment, store.data_folder, store.folder))
    leave_lock(files)
    removed = machine.state("unlock", "--yes").assert_success()

    assert "the state is empty, and Pulumi can't show whether it is locked\n" in removed.stderr
    assert not list(Path(files.removeprefix("file://")).rglob("locks/**/*.json"))


# messages -------------------------------------------------------------------------------------------------------------

NOWHERE = "127.0.0.1:9"
_LOGIN = "correct the user and the password in PULUMI_BACKEND_URL, or set PGPASSWORD"
_KEYS = "correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or log in again with the tool of the cloud"
AGAIN = "then run this again: what was done is recorded, or found by its labels"
KINDS = "file://, s3://, gs://, azblob://, postgres://, http://, https://"
WRONG_SIGNATURE = "The request signature we calculated does not match the signature you provided"
_REFUSED = f"dial tcp {NOWHERE}: connect: connection refused"
_NO_SERVER = (
    f"the state backend can't be reached: {_REFUSED}",
    f"check that it runs, and PULUMI_BACKEND_URL; {AGAIN}",
)
UNUSABLE: Mapping[str, tuple[str, str, str]] = {
    "no-database": (
        "{postgres}/nothing?sslmode=disable",
        'the state backend can\'t be used: database "nothing" does not exist',
        "create it: createdb; or correct PULUMI_BACKEND_URL",
    ),
    "wrong-password": (
        "{wrong}", f'the state backend refused the login: password authentication failed for user "{USER}"', _LOGIN,
    ),
    "no-tls": (
        "{postgres}/state",
        "the state backend can't be used: SSL is not enabled on the server",
        "enable it there, or, on a network that you trust, add ?sslmode=disable to PULUMI_BACKEND_URL",
    ),
    "no-server": (f"postgres://{USER}:{PASSWORD}@{NOWHERE}/state", *_NO_SERVER),
    "wrong-key": (
        "{minio}",
        "the state backend refused the login: The Access Key Id you provided does not exist in our records",
        _KEYS,
    ),
    "wrong-secret": (
        "{minio}",
        f"the state backend refused the login: {WRONG_SIGNATURE}",
        _KEYS,
    ),
    "no-bucket": ("{bucket}", "the bucket of the state does not exist", "create it, or correct PULUMI_BACKEND_URL"),
    "no-endpoint": (f"s3://state?region=us-east-1&endpoint=http://{NOWHERE}&use_path_style=true", *_NO_SERVER),
    "no-service": (
        f"http://{NOWHERE}",
        f"Pulumi's service at http://{NOWHERE}, which keeps the state, can't be reached: {_REFUSED}",
        "check the network and PULUMI_BACKEND_URL; without it and PULUMI_ACCESS_TOKEN the state is kept in files here",
    ),
    "unknown-kind": (
        f"postgresql://{USER}:{PASSWORD}@{NOWHERE}/state",
        f"the backend 'postgresql://{USER}:****@{NOWHERE}/state' is of an unknown kind; kinds are: {KINDS}",
        "did you mean 'postgres'? set PULUMI_BACKEND_URL, or log in with 'pulumi login URL'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", UNUSABLE)
def test_backend_that_can_not_be_used(machine: Machine, minio: Minio, postgres: Postgres, case: str) -> None:
    """What is wrong with a backend is one message with a hint, and no message has the password of its URL."""
    url, message, hint = UNUSABLE[case]
    wrong = {
        "wrong-key": {"AWS_ACCESS_KEY_ID": "nobody"},
        "wrong-secret": {"AWS_SECRET_ACCESS_KEY": "not-the-key"},
        "no-service": {"PULUMI_ACCESS_TOKEN": "not-the-key"},
    }
    places = {"minio": minio.url, "bucket": minio.url_of("missing"), "wrong": postgres.url_of("state", "not-the-key")}
    url = url.format(postgres=postgres.url.partition("/state?")[0], **places)
    machine.variables = {**minio.variables, "PULUMI_BACKEND_URL": url, **wrong.get(case, {})}
    shown = machine.state("show", "--debug")

    assert shown.status == 4
    assert f"error: {message}\n  hint: {hint}\n" in shown.stderr
    assert PASSWORD not in shown.stderr
    assert "not-the-key" not in shown.stderr


def test_wrong_passphrase(machine: Machine, files: str) -> None:
    """A state with another passphrase is not moved, and the message says how that is given."""
    right = {"PULUMI_CONFIG_PASSPHRASE": "the right one"}
    machine.fill(files, **right)
    moved = machine.state("move", files, "file:///tmp", "--yes")

    assert moved.status == 4
    assert moved.stderr.startswith(
        f"error: the state of environment '{NAME}' in namespace '{NAMESPACE}' in {files} has another passphrase\n"
        "  hint: set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE to the one it was made with"
    )


def test_a_database_that_is_read_only(machine: Machine, postgres: Postgres) -> None:
    """What the backend refuses to write is an error, and the state stays as it was."""
    machine.variables = {"PULUMI_BACKEND_URL": postgres.url}
    machine.fill(postgres.url)
    postgres.execute(f"alter database {postgres.database} set default_transaction_read_only = on")
    changed = machine.state("passphrase")
    postgres.execute(
        "set default_transaction_read_only = off;"
        f" alter database {postgres.database} set default_transaction_read_only = off"
    )

    assert changed.status == 4
    assert "error: the state can't be written: cannot execute " in changed.stderr
    assert machine.plain(postgres.url) == resources()
    machine.store(postgres.url).remove()


def check_a_halted_server(machine: Machine, kind: type[StateServer]) -> None:
    with kind() as server:
        machine.variables = {**server.variables, "PULUMI_BACKEND_URL": server.url}
        machine.fill(server.url)
        server.halt()
        began = time.monotonic()
        shown = machine.state("show")
        seconds = time.monotonic() - began
        server.go_on()

    assert shown.status == 4
    assert f"error: the state backend {server.url} has not answered for 30 s\n" in shown.stderr
    assert 30 < seconds < 60


def test_a_server_that_is_halted(machine: Machine) -> None:
    """A backend that accepts connections and answers nothing ends a command after half a minute."""
    check_a_halted_server(machine, Minio)
