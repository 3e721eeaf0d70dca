"""A stack's folder: one operation at a time, a state that can be read, and failures reported in a sentence."""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import fcntl
import getpass
import json
import os
import pwd
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composeplat import progress
from composeplat.cluster.access import Access
from composeplat.diagnostics import ComposeplatError, Exit, MissingPiece
from composeplat.engine.moved_mark import is_begun, mark_begun, mark_moved
from composeplat.engine.operation_log import read_operation
from composeplat.engine.operations import rollback
from composeplat.engine.own_processes import OwnProcess, OwnProcesses
from composeplat.engine.passphrase import PassphraseChange
from composeplat.engine.pulumi_errors import Busy, broke_off, explain, is_refused
from composeplat.engine.pulumi_process import Interrupted, PulumiRunner
from composeplat.engine.pulumi_variables import passed_variables
from composeplat.engine.revisions import Result, Revision
from composeplat.engine.stack import Stack
from composeplat.engine.target import Target
from composeplat.engine.workspace import Workspace
from composeplat.plan.desired import Plan
from composeplat.system.processes import ProcessId
from composeplat.toolchain.cache import Cache
from composeplat.toolchain.tools import DOCKER_BUILD_PROVIDER, KUBERNETES_PROVIDER, PULUMI
from tests.conftest import ROOT
from tests.engine.fakes import fake, full_disk


class Oldest(BaseHTTPRequestHandler):
    """Answers as an API server that is asked for its oldest namespace."""

    def do_GET(self) -> None:
        body = json.dumps({"metadata": {"name": "kube-system", "uid": "uid-1"}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a cluster, as far as its identity goes."""
    server = HTTPServer(("127.0.0.1", 0), Oldest)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def make_workspace(folder: Path, port: int, **environment: str) -> Workspace:
    """The workspace of environment ``shop`` in namespace ``team``, with its data in a folder."""
    access = Access(host="127.0.0.1", port=port, plain=True)
    return Workspace(
        environment_name="shop",
        namespace="team",
        target=Target(access=access, kubeconfig="/k"),
        environment={"COMPOSEPLAT_DATA": str(folder / "data"), "HOME": str(folder), **environment},
    )


@pytest.fixture
def workspace(tmp_path: Path, port: int) -> Workspace:
    return make_workspace(tmp_path, port)


@pytest.fixture
def elsewhere(tmp_path: Path, port: int) -> Workspace:
    """A workspace whose state is in no file of this machine."""
    return make_workspace(tmp_path, port, PULUMI_BACKEND_URL="s3://bucket")


def answering(workspace: Workspace, answers: Mapping[str, tuple[int, str]] | None = None) -> Path:
    """Let a program answer that notes what it is asked, and keeps the file it is given; gives the notes' place."""
    body = f"""
    answers = {dict(answers or {})!r}
    given = open(args[args.index("--file") + 1]).read() if "--file" in args else ""
    with open("asked", "a") as stream:
        stream.write(json.dumps({{"args": args[: args.index("--non-interactive")], "given": given}}) + "\\n")
    status, text = answers.get(" ".join(args[:2]), (0, ""))
    print(text, file=sys.stderr if status else sys.stdout)
    sys.exit(status)
    """
    workspace.runner = PulumiRunner(
        program=fake(workspace.folder / "pulumi", body), folder=workspace.folder, variables={}
    )
    return workspace.folder / "asked"


def asked(notes: Path) -> list[str]:
    return [" ".join(json.loads(line)["args"]) for line in notes.read_text().splitlines()] if notes.exists() else []


SECRETS = {"secrets_providers": {"type": "passphrase", "state": {"salt": "v1:abc="}}}


def write_state(workspace: Workspace, *resources: str, **more: Any) -> Path:
    """Write a state as Pulumi does; gives its place."""
    path = workspace.state_file
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    latest = {
        **SECRETS,
        "resources": [{"urn": urn} for urn in resources],
        **more,
    }
    path.write_text(json.dumps({"version": 3, "checkpoint": {"stack": "organization/shop/team", "latest": latest}}))
    return path


def urns(workspace: Workspace) -> list[str]:
    return [resource["urn"] for resource in (workspace.read_state() or {})["resources"]]


def copies(workspace: Workspace) -> list[str]:
    return [path.read_text() for path in sorted((workspace.folder / "states").glob("*"))]


# where it is ----------------------------------------------------------------------------------------------------------


def test_a_cluster_has_its_own_state(workspace: Workspace, tmp_path: Path) -> None:
    """The state is kept by what the cluster was born with, not by its address."""
    state = tmp_path / "data" / "state" / "uid-1" / ".pulumi" / "stacks" / "shop" / "team.json"

    assert state == workspace.state_file
    assert workspace.folder.is_relative_to(tmp_path / "data" / "stacks")
    assert workspace.folder.is_dir()


def test_a_state_elsewhere(elsewhere: Workspace) -> None:
    """A state that is not on this machine is no file."""
    assert elsewhere.state_file is None


def test_a_cluster_that_does_not_answer(tmp_path: Path) -> None:
    """Without a cluster there is no workspace, and a sentence says so."""
    with pytest.raises(MissingPiece, match=r"the API server at http://127\.0\.0\.1:9 can't be reached") as caught:
        make_workspace(tmp_path, 9)

    assert caught.value.hint == "check that the cluster runs, and that --context is right"


# programs and variables -----------------------------------------------------------------------------------------------


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, str]:
    """Variables that lead to programs which are there already."""
    environment = {"PATH": f"{tmp_path}/bin:{os.defpath}", "COMPOSEPLAT_CACHE": str(tmp_path / "cache")}
    fake(tmp_path / "bin" / "pulumi", f"print('v{PULUMI.version}')")
    for tool in (KUBERNETES_PROVIDER, DOCKER_BUILD_PROVIDER):
        fake(Cache(tmp_path / "cache").program_path(tool), "")
    return environment


@pytest.mark.parametrize(
    ("builds", "plugins"),
    [
        pytest.param(False, ["resource-kubernetes-v4.25.0"], id="nothing-to-build"),
        pytest.param(True, ["resource-docker-build-v0.0.22", "resource-kubernetes-v4.25.0"], id="builds"),
    ],
)
def test_prepare(tmp_path: Path, port: int, programs: dict[str, str], plugins: list[str], *, builds: bool) -> None:
    """Preparing puts the providers that will be needed in their place, and writes the project's settings."""
    workspace = make_workspace(tmp_path, port, **programs)

    workspace.prepare(builds=builds)

    assert tmp_path / "bin" / "pulumi" == workspace.runner.program
    assert sorted(path.name for path in (workspace.data_folder.pulumi / "plugins").iterdir()) == plugins
    assert json.loads((workspace.folder / "Pulumi.yaml").read_text()) == {
        "name": "shop",
        "runtime": "python",
        "description": "Made by platform deploy.",
    }


def test_ctrl_c_while_another_setup_is_waited_for(tmp_path: Path, port: int, programs: dict[str, str]) -> None:
    """The first Ctrl-C ends a run that waits for its programs: nothing has to end in order yet."""
    workspace = make_workspace(tmp_path, port, **programs)
    cache = Cache(tmp_path / "cache")
    cache.program_path(KUBERNETES_PROVIDER).unlink()
    release = cache.folder / "locks" / KUBERNETES_PROVIDER.name
    release.parent.mkdir()

    def press(event: progress.Event) -> None:
        assert event == progress.Note("waiting for another setup, which installs pulumi-resource-kubernetes 4.25.0")
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

    with release.open("w") as held, progress.use_handler(press), workspace.interrupts:
        fcntl.flock(held, fcntl.LOCK_EX)
        # A press without an effect lets the wait end with it, so that the test ends.
        end = threading.Timer(5, fcntl.flock, (held, fcntl.LOCK_UN))
        end.start()
        with pytest.raises(Interrupted, match=r"^interrupted$"):
            workspace.prepare(builds=False)
        end.cancel()


def test_variables(tmp_path: Path, port: int, programs: dict[str, str]) -> None:
    """Pulumi is given what the user set, but for what would change how the provider works, and what it needs of us."""
    theirs = {"HTTPS_PROXY": "http://proxy", "PULUMI_K8S_CLIENT_QPS": "1", "PULUMI_HOME": "/theirs", "KUBECONFIG": "/x"}
    workspace = make_workspace(tmp_path, port, **programs, **theirs)
    workspace.builder = {"COMPOSEPLAT_BUILDER": "mine"}

    workspace.prepare(builds=False)

    data = tmp_path / "data"
    assert workspace.runner.variables == {
        "BUILDX_GIT_INFO": "false",
        "COMPOSEPLAT_BUILDER": "mine",
        "COMPOSEPLAT_CACHE": str(tmp_path / "cache"),
        "COMPOSEPLAT_DATA": str(data),
        "HOME": str(tmp_path),
        "HTTPS_PROXY": "http://proxy",
        "KUBECONFIG": "/k",
        "PATH": f"{tmp_path}/bin:{programs['PATH']}",
        "PULUMI_AUTOMATION_API": "true",
        "PULUMI_BACKEND_URL": f"file://{data}/state/uid-1",
        "PULUMI_CONFIG_PASSPHRASE_FILE": f"{data}/passphrase",
        "PULUMI_DEBUG_COMMANDS": "true",
        "PULUMI_HOME": f"{data}/pulumi",
        "PULUMI_IGNORE_AMBIENT_PLUGINS": "true",
        "PULUMI_K8S_CLIENT_BURST": "400",
        "PULUMI_K8S_CLIENT_QPS": "200",
        "PULUMI_K8S_ENABLE_PATCH_FORCE": "true",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }


def test_variables_that_are_paths(
    tmp_path: Path, port: int, programs: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path is from where the command is run: Pulumi is run elsewhere."""
    monkeypatch.chdir(tmp_path)
    theirs = {"PULUMI_CONFIG_PASSPHRASE_FILE": "../phrase", "DOCKER_CONFIG": "docker"}
    workspace = make_workspace(tmp_path, port, **programs, **theirs)

    workspace.prepare(builds=False)

    assert workspace.runner.variables["PULUMI_CONFIG_PASSPHRASE_FILE"] == str(tmp_path.parent / "phrase")
    assert workspace.runner.variables["DOCKER_CONFIG"] == str(tmp_path / "docker")


def test_relative_paths_of_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those of the user's folder too; a word that is no file, such as libpq's ``system``, stays."""
    (tmp_path / "ca.pem").touch()
    monkeypatch.chdir(tmp_path)
    theirs = {"SSL_CERT_FILE": "ca.pem", "AWS_CA_BUNDLE": "./ca.pem", "PGSSLROOTCERT": "system", "PGSSLKEY": ""}
    found = str(tmp_path / "ca.pem")

    assert passed_variables(theirs) == {**theirs, "SSL_CERT_FILE": found, "AWS_CA_BUNDLE": found}


def test_flags_of_pulumi_in_variables() -> None:
    """Each command of Pulumi takes them: with one of these, all secrets would be plain where the state is exported."""
    flags = {"PULUMI_OPTION_SHOW_SECRETS": "true", "PULUMI_OPTION_TARGET": "**", "PULUMI_OPTION_CWD": "/elsewhere"}

    assert passed_variables({**flags, "PULUMI_ACCESS_TOKEN": "t"}) == {"PULUMI_ACCESS_TOKEN": "t"}


# the lock -------------------------------------------------------------------------------------------------------------


def test_a_second_holder_is_refused(tmp_path: Path, port: int, workspace: Workspace) -> None:
    """While one operation is under way, another ends at once and says which process is at what since when."""
    other = make_workspace(tmp_path, port)

    with workspace.lock("deploy"), pytest.raises(Busy) as caught, other.lock("preview"):
        pass

    message = re.sub(r"\d\d:\d\d:\d\d$", "12:00:00", str(caught.value))
    assert message == (
        "environment 'shop' in namespace 'team' is busy:"
        f" process {os.getpid()} has been running 'deploy' since 12:00:00"
    )
    assert (caught.value.hint, caught.value.exit_code) == (
        "wait until it has finished, then run this again",
        Exit.FAILED,
    )


@pytest.mark.parametrize("text", ["", "{", "{}"])
def test_a_holder_that_is_unknown(workspace: Workspace, text: str) -> None:
    """A holder that has not noted itself yet is one all the same."""
    path = workspace.folder / "lock"
    path.write_text(text)
    with path.open() as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with pytest.raises(Busy, match=r"'team' is busy: another process holds the lock$"), workspace.lock("deploy"):
            pass


def test_the_lock_is_let_go_of(workspace: Workspace) -> None:
    """After an operation, be it one that failed, the next one can have the lock."""

    def fail() -> None:
        with workspace.lock("deploy"):
            raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        fail()

    with workspace.lock("preview"):
        held = json.loads((workspace.folder / "lock").read_text())
    assert (held["what"], held["pid"]) == ("preview", os.getpid())


HOLD = """
import sys, time
from pathlib import Path
from tests.engine.test_workspace import make_workspace

with make_workspace(Path(sys.argv[1]), int(sys.argv[2])).lock("deploy"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_killed_holder_releases_the_lock(tmp_path: Path, port: int, workspace: Workspace) -> None:
    """Another process that is killed in the middle of an operation leaves no lock behind."""
    command = [sys.executable, "-c", HOLD, str(tmp_path), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Busy, match=f"process {holder.pid} has been running 'deploy'"), workspace.lock("preview"):
            pass
        holder.kill()

    with workspace.lock("preview"):
        assert not workspace.was_cut_off


def test_other_stacks_are_not_held(tmp_path: Path, port: int, workspace: Workspace) -> None:
    """Two environments, or one in two namespaces, are operated on side by side."""
    other = make_workspace(tmp_path, port)
    there = Workspace(environment_name="shop", namespace="other", target=other.target, environment=other.environment)

    with workspace.lock("deploy"), there.lock("deploy"):
        assert workspace.folder != there.folder


def test_an_operation_removes_the_record(workspace: Workspace) -> None:
    """The record of the last run is gone as soon as an operation begins that may change something."""
    workspace.record_file.write_text("{}")
    with workspace.hold_lock("preview"), pytest.raises(Busy), workspace.lock("deploy"):
        pass
    assert workspace.record_file.exists()
    with workspace.lock("preview"):
        assert workspace.record_file.exists()
    with workspace.lock("deploy"):
        assert not workspace.record_file.exists()
    assert not workspace.record_file.exists()


def test_a_run_that_was_cut_off(workspace: Workspace) -> None:
    """Where a killed run left its note, the next operation knows that, and the note goes."""
    (workspace.folder / "running.json").write_text(json.dumps({"pid": 2**22 + 1, "started": "1", "at": 0}))

    with workspace.lock("deploy"):
        assert workspace.was_cut_off

    assert not (workspace.folder / "running.json").exists()


def test_the_lock_of_a_change_has_a_log(workspace: Workspace) -> None:
    """What is only looked at, or is another's turn, leaves the log of the last change as it is."""
    with workspace.lock("deploy"), pytest.raises(Busy), workspace.lock("sleep"):
        pass
    with workspace.lock("preview"), pytest.raises(Busy), workspace.hold_lock("deploy"):
        pass

    found = read_operation(workspace.folder)
    assert found is not None
    assert (found["operation"], found["state"]) == ("deploy", "done")


def test_an_interrupted_change_is_logged_as_such(workspace: Workspace) -> None:
    with workspace.lock("refresh"):
        workspace.interrupts.count = 1

    found = read_operation(workspace.folder)
    assert found is not None
    assert found["state"] == "interrupted"


# copies of the state --------------------------------------------------------------------------------------------------


def lock_once(workspace: Workspace) -> None:
    with workspace.lock("deploy"):
        pass


def test_a_copy_is_kept(workspace: Workspace) -> None:
    """Before an operation the state is copied, for its owner alone; one that is as before is not copied again."""
    state = write_state(workspace, "a")

    lock_once(workspace)
    lock_once(workspace)

    (copy,) = (workspace.folder / "states").iterdir()
    assert copy.read_text() == state.read_text()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert not workspace.was_cut_off


def test_as_many_copies_as_help(workspace: Workspace) -> None:
    """Of the copies the last ten are kept."""
    texts = []
    for number in range(13):
        texts.append(write_state(workspace, str(number)).read_text())
        lock_once(workspace)

    assert texts[3:] == copies(workspace)


@pytest.mark.parametrize("times", [[3 * 10**18, 10**18, 10**18], [5 * 10**11, 10**18, 2 * 10**18]])
def test_a_clock_that_is_set(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, times: list[int]) -> None:
    """The last copy is that of the last operation, whatever the clock said before."""
    for number, now in enumerate(times):
        monkeypatch.setattr("composeplat.engine.workspace.time.time_ns", lambda now=now: now)
        state = write_state(workspace, str(number))
        lock_once(workspace)
    state.write_bytes(b"")

    lock_once(workspace)

    assert urns(workspace) == ["2"]


def test_no_state(workspace: Workspace) -> None:
    """Where there is no state yet, there is nothing to copy."""
    lock_once(workspace)

    assert not (workspace.folder / "states").exists()


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b'{"version": 3, "checkpoint": {"stack": "or', id="truncated"),
        pytest.param(b"\0" * 100, id="zeros"),
        pytest.param(b"\xff\xfe", id="no-text"),
        pytest.param(b"{}", id="no-checkpoint"),
        pytest.param(b"[]", id="a-list"),
        pytest.param(b"null", id="null"),
    ],
)
def test_a_state_that_can_not_be_read(workspace: Workspace, broken: bytes) -> None:
    """A state that a crash spoiled is put aside, and the last sound copy is in its place, with a note of its time."""
    write_state(workspace, "a")
    lock_once(workspace)
    state = write_state(workspace, "b")
    lock_once(workspace)
    copy = max((workspace.folder / "states").iterdir())
    os.utime(copy, (1_000_000_000, 1_000_000_000))
    state.write_bytes(broken)
    events: list[progress.Event] = []

    with progress.use_handler(events.append):
        lock_once(workspace)

    written = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(1_000_000_000))
    successor = f"this machine's last copy, of {written}, replaces it, and may lack what others did since"
    assert events == [
        progress.Note(f"the state in '{state}' can't be read, and is 'team.json.broken' now: {successor}")
    ]
    assert urns(workspace) == ["b"]
    assert workspace.was_cut_off
    assert state.with_name("team.json.broken").read_bytes() == broken


def test_a_broken_state_on_a_file_system_without_links(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is put aside as a copy, on FAT for example."""

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    state = write_state(workspace, "a")
    lock_once(workspace)
    state.write_text("{")
    monkeypatch.setattr("os.link", refuse)

    lock_once(workspace)

    assert urns(workspace) == ["a"]
    assert state.with_name("team.json.broken").read_text() == "{"


def test_a_state_that_breaks_during_an_operation(workspace: Workspace) -> None:
    """It is an error with its place, behind that of Pulumi; the next operation begins with the last copy."""
    state = write_state(workspace, "a")
    lock_once(workspace)
    state.write_text('{"version": 3, "check')

    with pytest.raises(ComposeplatError, match=f"the state in '{state}' is broken"):
        workspace.read_state()

    lock_once(workspace)
    assert urns(workspace) == ["a"]


@pytest.fixture
def rolling(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """A stack with one revision, whose objects need not be decrypted."""
    sections = ("services", "volumes", "networks", "files", "endpoints", "edges", "required")
    revision = Revision(number=1, command="deploy", result=Result.DONE, who="ann", has_values=True)
    facts: dict[str, Any] = {"inputs": {}, "plan": {section: {} for section in sections}}
    monkeypatch.setattr(rollback, "Api", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(rollback, "read_history", lambda *_: [revision])
    monkeypatch.setattr(rollback, "read_facts", lambda *_: facts)
    monkeypatch.setattr(rollback, "reveal_inputs", lambda *_: {})
    monkeypatch.setattr(Workspace, "prepare", lambda *_, **__: answering(workspace))
    return Stack(
        environment_name="shop",
        namespace="team",
        target=workspace.target,
        variables=workspace.environment,
        _workspace=workspace,
    )


def test_a_rollback_after_a_broken_state(workspace: Workspace, rolling: Stack) -> None:
    """It begins with the last copy, as a deploy does."""
    state = write_state(workspace)
    lock_once(workspace)
    state.write_text("{")

    target = rollback.find_target(rolling, Plan(environment="shop", namespace="team"), 1)

    assert target.revision.number == 1
    assert workspace.read_state() == {**SECRETS, "resources": []}


def test_a_rollback_after_an_interrupted_change_of_the_passphrase(workspace: Workspace, rolling: Stack) -> None:
    """The secrets of the revision are revealed with the passphrase that the state has."""
    write_state(workspace)
    change = PassphraseChange(workspace.folder)
    change.begin("new", "v1:abc=", is_ours=True)

    rollback.find_target(rolling, Plan(environment="shop", namespace="team"), 1)

    assert workspace.runner.variables["PULUMI_CONFIG_PASSPHRASE_FILE"] == str(change.file)
    assert not change.is_pending


def test_a_state_that_may_not_be_read(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that an error of the disk or a missing right keeps from being read may be sound: it stays."""
    write_state(workspace, "a")
    lock_once(workspace)
    state = write_state(workspace, "b")

    def refuse(path: Path, **more: Any) -> str:
        if path == state:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return path.read_bytes().decode(**more)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", refuse)
        with pytest.raises(ComposeplatError) as caught:
            lock_once(workspace)

    assert f"{caught.value}" == f"can't read the state in '{state}': permission denied"
    assert urns(workspace) == ["b"]
    assert not state.with_name("team.json.broken").exists()


@pytest.mark.parametrize(
    ("metadata", "stays"),
    [("", False), ('{"user.cac', False), ('{"md5": "eA=="}', True)],
    ids=["empty", "cut", "sound"],
)
def test_metadata_that_can_not_be_read(workspace: Workspace, metadata: str, *, stays: bool) -> None:
    """A metadata file that a kill cut off is removed: Pulumi would fail with "failed to load checkpoint: EOF"."""
    state = write_state(workspace, "a")
    files = [state.with_name("team.json.attrs"), state.parents[2] / "meta.yaml.attrs"]
    for path in files:
        path.write_text(metadata)

    lock_once(workspace)

    assert [path.exists() for path in files] == [stays, stays]
    assert urns(workspace) == ["a"]
    assert not workspace.was_cut_off


def test_a_broken_state_without_a_copy(workspace: Workspace) -> None:
    """Where there is no copy, a spoiled state is put aside, and the stack is one that was never made."""
    state = write_state(workspace)
    state.write_text("{")

    lock_once(workspace)

    assert workspace.read_state() is None
    assert workspace.was_cut_off
    assert state.with_name("team.json.broken").read_text() == "{"


@pytest.mark.parametrize(
    ("free_blocks", "blocks", "what", "is_refused"),
    [
        pytest.param(64, 1000, "deploy", True, id="too-little"),
        pytest.param(63 + 2 * 6, 1000, "deploy", True, id="one-block-too-little"),
        pytest.param(64 + 2 * 6, 1000, "deploy", False, id="enough"),
        pytest.param(0, 0, "deploy", False, id="a-file-system-that-counts-none"),
        pytest.param(0, 1000, "preview", False, id="a-preview-writes-no-state"),
    ],
)
def test_a_disk_that_is_nearly_full(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, free_blocks: int, blocks: int, what: str, *, is_refused: bool
) -> None:
    """Pulumi replaced the state by half a file where the disk filled up: nothing is begun where it may not fit."""
    write_state(workspace).write_text('{"checkpoint": {}}'.ljust(8192))
    disk = SimpleNamespace(f_bavail=free_blocks, f_blocks=blocks, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda _: disk)
    message = r"^the state can't be written: the disk is full$"

    with (
        pytest.raises(ComposeplatError, match=message) if is_refused else contextlib.nullcontext(),
        workspace.lock(what),
    ):
        pass


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a disk of 128 KiB: the least that is left free for a state is twice that."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k,mode=700", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="making a small disk needs root: run the tests as root")
@pytest.mark.parametrize(("small", "is_refused"), [("state", True), ("data", False)])
def test_the_disk_of_the_state(tmp_path: Path, port: int, small: str, *, is_refused: bool) -> None:
    """The disk that counts is that of the state, whether it is on the data folder's or not."""
    message = r"^the state can't be written: the disk is full$"

    with small_disk(tmp_path / small):
        workspace = make_workspace(tmp_path, port, PULUMI_BACKEND_URL=f"file://{tmp_path}/state/nested")
        with (
            pytest.raises(ComposeplatError, match=message) if is_refused else contextlib.nullcontext(),
            workspace.lock("deploy"),
        ):
            pass


def test_a_disk_of_unknown_size(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state whose disk does not answer is reported with its path, as one that can't be written."""

    def refuse(path: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    monkeypatch.setattr(os, "statvfs", refuse)
    message = rf"^can't write '{workspace.backend.folder}': input/output error$"

    with pytest.raises(ComposeplatError, match=message), workspace.lock("deploy"):
        pytest.fail("it was begun")


def test_no_room_for_a_copy(workspace: Workspace) -> None:
    """Where the state can't be copied nothing is begun, and the state stays as it is."""
    state = write_state(workspace, "a")
    (workspace.folder / "states").touch()

    with pytest.raises(ComposeplatError, match=r"^can't write '.*/states': file exists$"), workspace.lock("deploy"):
        pytest.fail("it was begun")

    assert urns(workspace) == ["a"]
    assert state.exists()


def test_no_space_for_a_restored_file(workspace: Workspace) -> None:
    """Where the copy can't be put back, the spoiled state stays: none would be taken for that of a new stack."""
    state = write_state(workspace, "a")
    lock_once(workspace)
    state.write_text("{")

    with (
        full_disk(),
        pytest.raises(ComposeplatError, match=r"^can't write '.*team\.json\..*': no space left on device$"),
        workspace.lock("deploy"),
    ):
        pytest.fail("it was begun")
    lock_once(workspace)

    assert urns(workspace) == ["a"]


def test_a_state_elsewhere_is_left_alone(elsewhere: Workspace) -> None:
    """What is not on this machine is not copied."""
    lock_once(elsewhere)

    assert sorted(path.name for path in elsewhere.folder.iterdir()) == ["lock", "operation.jsonl"]


# reading and making ---------------------------------------------------------------------------------------------------


def test_read_state(workspace: Workspace) -> None:
    """The state is read from its file, without asking Pulumi."""
    notes = answering(workspace)
    write_state(workspace, "a")

    assert urns(workspace) == ["a"]
    assert asked(notes) == []


def test_a_state_that_was_never_made(workspace: Workspace) -> None:
    """Where there is no file of it, there is no state."""
    assert workspace.read_state() is None


def test_a_state_is_read_once(workspace: Workspace) -> None:
    """The state is read again only after something ran that may have changed it: here, a lock was waited for."""
    write_state(workspace, "a")
    assert urns(workspace) == ["a"]

    write_state(workspace, "b")
    assert urns(workspace) == ["a"]
    lock_once(workspace)
    assert urns(workspace) == ["b"]


def test_read_an_empty_state(workspace: Workspace) -> None:
    """A stack that was made and never deployed has an empty state, which is not none."""
    write_state(workspace).write_text(
        '{"version": 3, "checkpoint": {"stack": "organization/shop/team", "latest": null}}'
    )

    assert workspace.read_state() == {}


def test_read_a_state_elsewhere(elsewhere: Workspace) -> None:
    """Where the state is not on this machine, Pulumi is asked for it."""
    notes = answering(elsewhere, {"stack export": (0, '{"version": 3, "deployment": {"resources": []}}')})

    assert elsewhere.read_state() == {"resources": []}
    assert asked(notes) == ["stack export --stack team"]


@pytest.mark.parametrize("packed", ["by-a-variable", "by-an-earlier-run"])
def test_read_a_packed_state(tmp_path: Path, port: int, packed: str) -> None:
    """A state that Pulumi packs is not taken for one that was never made: Pulumi is asked for it."""
    variables = {"PULUMI_DIY_BACKEND_GZIP": "true"} if packed == "by-a-variable" else {}
    workspace = make_workspace(tmp_path, port, PULUMI_BACKEND_URL=f"file://{tmp_path}/share", **variables)
    if packed == "by-an-earlier-run":
        path = tmp_path / "share" / ".pulumi" / "stacks" / "shop" / "team.json.gz"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"packed")
    notes = answering(workspace, {"stack export": (0, '{"version": 3, "deployment": {"resources": []}}')})

    lock_once(workspace)

    assert workspace.read_state() == {"resources": []}
    assert set(asked(notes)) == {"stack export --stack team"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("error: no stack named 'team' found", id="files"),
        pytest.param("error: [404] Not Found: Stack 'o/shop/team' not found", id="service"),
    ],
)
def test_no_stack_elsewhere(elsewhere: Workspace, text: str) -> None:
    """A stack that Pulumi does not know has no state."""
    answering(elsewhere, {"stack export": (6, text)})

    assert elsewhere.read_state() is None


def test_a_state_elsewhere_that_can_not_be_read(elsewhere: Workspace) -> None:
    """What is in the way of reading is reported, and not taken for a state that is not there."""
    answering(elsewhere, {"stack export": (255, "error: read tcp: connection reset by peer")})

    with pytest.raises(ComposeplatError, match=r"^Pulumi failed: read tcp: connection reset by peer$"):
        elsewhere.read_state()


def test_make_stack(workspace: Workspace) -> None:
    """A stack that is not there is made, without the settings of one that was; by Pulumi where it has other states."""
    notes = answering(workspace)
    (workspace.folder / "Pulumi.team.yaml").write_text("encryptionsalt: old\n")
    make_folder_without_layout(workspace)

    workspace.make_stack()

    assert asked(notes) == ["stack init --stack team"]
    assert not (workspace.folder / "Pulumi.team.yaml").exists()


def make_folder_without_layout(workspace: Workspace) -> None:
    assert workspace.state_file is not None
    workspace.state_file.parents[2].mkdir(parents=True)


@pytest.mark.parametrize("is_first", [True, False])
def test_make_a_stack_without_pulumi(workspace: Workspace, *, is_first: bool) -> None:
    """The state of a new stack is written without Pulumi, in our own folder alone."""
    notes = answering(workspace)
    (workspace.folder / "Pulumi.team.yaml").write_text("encryptionsalt: old\n")
    path = workspace.state_file
    assert path is not None
    if not is_first:
        make_folder_without_layout(workspace)
        (path.parents[2] / "meta.yaml").write_text("version: 1\n")

    assert workspace.read_state() is None
    workspace.make_stack()

    # A run that is killed before Pulumi has written the settings leaves no others.
    workspace.make_stack()

    assert asked(notes) == []
    assert workspace.read_state() == {}
    assert path.stat().st_mode & 0o777 == 0o600
    assert not (workspace.folder / "Pulumi.team.yaml").exists()


@pytest.mark.parametrize("settings", ["encryptionsalt: v1:old\n", "encryptions"], ids=["whole", "cut-off"])
def test_a_passphrase_after_a_first_preview(workspace: Workspace, settings: str) -> None:
    """A preview of a new stack has left a salt in the settings; a first deploy may have another passphrase."""
    answering(workspace)
    workspace.make_stack()
    (workspace.folder / "Pulumi.team.yaml").write_text(settings)

    workspace.make_stack()

    assert not (workspace.folder / "Pulumi.team.yaml").exists()


def test_make_a_stack_that_is_there(workspace: Workspace) -> None:
    """For a stack that is there the settings are written again where they are missing, with the salt of its secrets."""
    notes = answering(workspace)
    write_state(workspace)

    workspace.make_stack()

    assert asked(notes) == []
    assert (workspace.folder / "Pulumi.team.yaml").read_text() == "encryptionsalt: v1:abc=\n"
    assert workspace.secret_settings() == {"encryptionsalt": "v1:abc="}


def test_make_a_stack_with_secrets_elsewhere(workspace: Workspace) -> None:
    """A stack whose secrets have no salt gets empty settings."""
    answering(workspace)
    write_state(workspace, secrets_providers={"type": "service", "state": {"url": "https://api.pulumi.com"}})

    workspace.make_stack()

    assert (workspace.folder / "Pulumi.team.yaml").read_text() == "{}\n"
    assert workspace.secret_settings() == {}


@pytest.mark.parametrize("settings", ["", "{}\n", "encryptionsalt: v1:abc=\n"], ids=["none", "empty", "passphrase"])
def test_make_a_stack_with_a_key_service(workspace: Workspace, settings: str) -> None:
    """Pulumi is led to the key service of the state: it would encrypt it with a passphrase of this machine."""
    answering(workspace)
    key = {"url": "awskms://alias/team?region=eu-west-1", "encryptedkey": "AQID="}
    write_state(workspace, secrets_providers={"type": "cloud", "state": key})
    path = workspace.folder / "Pulumi.team.yaml"
    if settings:
        path.write_text(settings)

    workspace.make_stack()

    text = "secretsprovider: awskms://alias/team?region=eu-west-1\nencryptedkey: AQID=\n"
    assert path.read_text() == text
    assert workspace.secret_settings() == {"secretsprovider": key["url"], "encryptedkey": "AQID="}
    path.write_text(f"{text}config: {{}}\n")
    workspace.make_stack()
    assert path.read_text() == f"{text}config: {{}}\n"


@pytest.mark.parametrize(
    ("salt", "text"),
    [
        pytest.param("v1:abc=", "encryptionsalt: v1:abc=\nconfig: {}\n", id="same"),
        pytest.param("v1:other=", "encryptionsalt: v1:abc=\n", id="changed-on-another-machine"),
    ],
)
def test_existing_settings(workspace: Workspace, salt: str, text: str) -> None:
    """Settings that are there are kept, unless the state has another salt."""
    answering(workspace)
    write_state(workspace)
    settings = workspace.folder / "Pulumi.team.yaml"
    settings.write_text(f"encryptionsalt: {salt}\nconfig: {{}}\n")

    workspace.make_stack()

    assert settings.read_text() == text


def test_a_stack_that_was_made_meanwhile(elsewhere: Workspace) -> None:
    """Where someone else was faster, the stack is there, and that is well."""
    no_stack = (6, "error: no stack named 'team' found")
    answers = {"stack export": no_stack, "stack init": (1, "error: stack 'organization/shop/team' already exists")}
    notes = answering(elsewhere, answers)

    elsewhere.make_stack()

    assert asked(notes) == ["stack export --stack team", "stack init --stack team"]


def test_a_stack_that_can_not_be_made(workspace: Workspace) -> None:
    """What is in the way of making a stack is reported in a sentence."""
    answering(workspace, {"stack init": (1, "error: write /state: no space left on device")})
    make_folder_without_layout(workspace)

    with pytest.raises(ComposeplatError, match=r"^the state can't be written: the disk is full$"):
        workspace.make_stack()


# what was cut off -----------------------------------------------------------------------------------------------------

PENDING = [{"resource": {"urn": "b"}, "type": "creating"}]


@pytest.mark.parametrize("more", [{}, {"pending_operations": None}, {"pending_operations": []}])
def test_nothing_pending(workspace: Workspace, more: dict[str, Any]) -> None:
    """A state without operations that were cut off stays as it is."""
    notes = answering(workspace)
    write_state(workspace, "a", **more)

    workspace.drop_pending()

    assert asked(notes) == []


def test_drop_pending(workspace: Workspace) -> None:
    """Operations that were cut off are taken out of the state, and nothing else; no copy of it stays."""
    notes = answering(workspace)
    write_state(workspace, "a", pending_operations=PENDING)

    workspace.drop_pending()

    (output,) = [json.loads(line) for line in notes.read_text().splitlines()]
    assert output["args"] == ["stack", "import", "--stack", "team", "--file", str(workspace.folder / "mended.json")]
    assert json.loads(output["given"]) == {
        "version": 3,
        "deployment": {**SECRETS, "resources": [{"urn": "a"}], "pending_operations": []},
    }
    assert not (workspace.folder / "mended.json").exists()


def test_operations_that_were_pending_on_another_machine(workspace: Workspace) -> None:
    """What a run on another machine has written since its pending operations were read stays in the state."""
    notes = answering(workspace)
    write_state(workspace, "a", pending_operations=PENDING)
    assert urns(workspace) == ["a"]
    write_state(workspace, "a", "b")

    workspace.drop_pending()

    assert asked(notes) == []
    assert urns(workspace) == ["a", "b"]


def test_pending_operations_that_can_not_be_dropped(workspace: Workspace) -> None:
    """Where that fails it is reported, and no copy of the state stays either."""
    answering(workspace, {"stack import": (1, "error: incorrect passphrase")})
    write_state(workspace, "a", pending_operations=PENDING)

    with pytest.raises(MissingPiece, match="the state is encrypted with another passphrase"):
        workspace.drop_pending()

    assert not (workspace.folder / "mended.json").exists()


def test_repair_order(workspace: Workspace) -> None:
    """Pulumi repairs a state whose resources are out of order, and no other."""
    notes = answering(workspace)
    write_state(workspace, resources=[{"urn": "a", "dependencies": ["b"]}, {"urn": "b"}])

    assert workspace.repair_order()
    write_state(workspace, resources=[{"urn": "b"}, {"urn": "a", "dependencies": ["b"]}])
    assert not workspace.repair_order()
    assert asked(notes) == ["state repair --stack team --yes"]


def test_an_order_that_can_not_be_repaired(workspace: Workspace) -> None:
    """Pulumi's reason is in the message."""
    answering(workspace, {"state repair": (1, "error: incorrect passphrase")})
    write_state(workspace, resources=[{"urn": "a", "dependencies": ["b"]}])

    with pytest.raises(MissingPiece, match="the state is encrypted with another passphrase"):
        workspace.repair_order()


HERE = f"{getpass.getuser()}@{socket.gethostname()}"
LOCKED_AT = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC).timestamp()


def locked(*holders: str, query: str = "") -> str:
    """What Pulumi says of a stack that others hold."""
    output = [
        f"  file:///state{query}/.pulumi/locks/organization/shop/team/{number}.json: created by {holder}"
        " at 2026-11-21T12:00:00Z"
        for number, holder in enumerate(holders)
    ]
    start = f"error: the stack is currently locked by {len(holders)} lock(s). Either wait for the other process(es)"
    return "\n".join([f"{start} to end or delete the lock file with `pulumi cancel`.", *output])


@pytest.fixture(scope="module")
def dead() -> ProcessId:
    """A process of this machine that has ended."""
    with subprocess.Popen([sys.executable, "-IS", "-c", "input()"], stdin=subprocess.PIPE) as process:
        found = ProcessId.from_pid(process.pid)
        process.communicate(b"\n")
    return found


def started(workspace: Workspace, process: ProcessId, at: float = LOCKED_AT) -> str:
    """Note a process as one that was started on the stack, just before the locks here; gives what Pulumi calls it."""
    OwnProcesses(workspace.folder).add(OwnProcess(process, at))
    return f"{HERE} (pid {process.pid})"


def test_unlock(workspace: Workspace, dead: ProcessId) -> None:
    """A lock whose holders are processes that were started here and have ended is broken."""
    notes = answering(workspace)
    holder = started(workspace, dead, at=LOCKED_AT - 5)

    assert workspace.unlock(locked(holder, holder))
    assert asked(notes) == ["cancel --yes --stack team"]


def test_the_names_of_a_user(workspace: Workspace, dead: ProcessId, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pulumi has the system's name of a user, also where variables have another one, as after ``su``."""
    answering(workspace)
    holder = started(workspace, dead)
    monkeypatch.setenv("LOGNAME", "ann")

    assert workspace.unlock(locked(holder))


def test_a_user_without_a_name(workspace: Workspace, dead: ProcessId, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user that the system does not know, as in a container, gets no traceback where a lock is met."""

    def refuse(*_: object) -> str:
        raise KeyError

    answering(workspace)
    holder = started(workspace, dead)
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", refuse)

    assert not workspace.unlock(locked(holder))


def test_a_lock_of_the_same_user_host_and_number(workspace: Workspace, dead: ProcessId) -> None:
    """A lock that nothing was noted of is another's, though its user, host name and a dead number are ours too.

    Cloned machines and containers share host names: live locks of theirs used to be broken.
    """
    notes = answering(workspace)

    assert not workspace.unlock(locked(f"{HERE} (pid {dead.pid})"))
    assert asked(notes) == []


@pytest.mark.parametrize("place", ["machine", "boot", "pid_namespace"])
def test_a_lock_that_was_noted_elsewhere(elsewhere: Workspace, dead: ProcessId, place: str) -> None:
    """In a shared backend a lock is not broken by a note that came along with a copy of the machine or its data."""
    notes = answering(elsewhere)
    holder = started(elsewhere, replace(dead, **{place: "other"}))  # type: ignore[arg-type]

    assert not elsewhere.unlock(locked(holder))
    assert asked(notes) == []


def test_a_lock_of_before_a_reboot(workspace: Workspace, elsewhere: Workspace, dead: ProcessId) -> None:
    """A reboot ends all processes; that is believed where nobody else can have the state."""
    answering(workspace)
    answering(elsewhere)
    before = replace(dead, boot="before")

    assert workspace.unlock(locked(started(workspace, before)))
    assert not elsewhere.unlock(locked(started(elsewhere, before)))


@pytest.mark.parametrize("at", [LOCKED_AT - 3600, LOCKED_AT + 60])
def test_a_lock_of_another_time(workspace: Workspace, dead: ProcessId, at: float) -> None:
    """A process that was started long before the lock was made, or after it, did not make it: numbers come again."""
    notes = answering(workspace)

    assert not workspace.unlock(locked(started(workspace, dead, at)))
    assert asked(notes) == []


def test_holders_that_may_live(workspace: Workspace, dead: ProcessId) -> None:
    """A lock stays where a holder lives, or may live, as on another machine or as another user."""
    notes = answering(workspace)
    holder = started(workspace, dead)
    running_pid = started(workspace, ProcessId.from_pid(os.getpid()))
    user, host = HERE.split("@")
    others = [running_pid, f"{user}@x{host} (pid {dead.pid})", f"x{user}@{host} (pid {dead.pid})"]

    assert [workspace.unlock(locked(holder, other)) for other in others] == [False] * 3
    assert asked(notes) == []


def test_no_holder(workspace: Workspace) -> None:
    """A lock that names nobody, as that of a service, is not broken."""
    notes = answering(workspace)

    assert not workspace.unlock("error: [409] Conflict: Another update is currently in progress.")
    assert asked(notes) == []


@pytest.mark.parametrize("other", ["a user@host (pid 1)", f"{HERE} (pid 1) at noon; created by x"])
def test_a_holder_that_can_not_be_made_out(workspace: Workspace, dead: ProcessId, other: str) -> None:
    """Where not every holder is known, the lock stays."""
    notes = answering(workspace)

    assert not workspace.unlock(locked(started(workspace, dead), other))
    assert asked(notes) == []


def test_our_own_lock_under_a_number_reused(workspace: Workspace) -> None:
    """The lock of a run of ours that was cut off is broken, also where another process has its number by now."""
    notes = answering(workspace)
    cut_off = OwnProcess(replace(ProcessId.from_pid(os.getpid()), started="1"), LOCKED_AT)
    (workspace.folder / "running.json").write_text(json.dumps(cut_off.to_data()))

    with workspace.lock("deploy"):
        broken = workspace.unlock(locked(f"{HERE} (pid {os.getpid()})"))
        others = workspace.unlock(locked(f"{HERE} (pid {os.getpid()})", f"{HERE} (pid 1)"))

    assert (broken, others) == (True, False)
    assert asked(notes) == ["cancel --yes --stack team"]


def test_a_lock_that_can_not_be_broken(workspace: Workspace, dead: ProcessId) -> None:
    """Where Pulumi does not let go of the lock, it is not said to be broken."""
    answering(workspace, {"cancel --yes": (1, "error: permission denied")})

    assert not workspace.unlock(locked(started(workspace, dead)))


def test_pending_operations_under_a_dead_lock(workspace: Workspace, dead: ProcessId) -> None:
    """A lock that is in the way of taking them out is broken where its holder is dead, and it is tried once more."""
    notes = answering(workspace, {"stack import": (1, locked(started(workspace, dead)))})

    write_state(workspace, "a", pending_operations=PENDING)

    with pytest.raises(Busy):
        workspace.drop_pending()

    assert [args.split(" --")[0] for args in asked(notes)] == ["stack import", "cancel", "stack import"]


# changes by `platform state` ------------------------------------------------------------------------------------------


def test_a_moved_state(workspace: Workspace) -> None:
    """Where the state was moved from, no new one is begun; a state that is there again is used."""
    answering(workspace)
    mark_moved(workspace.folder, "s3://bucket")
    with pytest.raises(ComposeplatError) as caught, workspace.lock("deploy"):
        pass
    assert str(caught.value) == "the state of environment 'shop' in namespace 'team' was moved to s3://bucket"
    assert caught.value.hint == (
        f"set PULUMI_BACKEND_URL to that backend; to begin a new state here, delete {workspace.folder / 'moved.json'}"
    )

    write_state(workspace)
    with workspace.lock("deploy"):
        pass


@pytest.mark.parametrize(("what", "is_kept"), [("preview", True), ("deploy", False)])
def test_a_state_that_a_move_wrote(workspace: Workspace, what: str, *, is_kept: bool) -> None:
    """Once an operation has changed the state there, an interrupted move writes it no more."""
    answering(workspace)
    mark_begun(workspace.folder, "s3://old")

    with workspace.lock(what):
        assert is_begun(workspace.folder, "s3://old") == is_kept
    assert not is_begun(workspace.folder, "s3://other")


def test_the_note_of_a_move_has_no_password(tmp_path: Path) -> None:
    """A password that is in a variable alone comes into no file; one that has changed since is no other source."""
    mark_begun(tmp_path, "postgres://me:hunter22@db/state")

    assert [path.name for path in tmp_path.iterdir() if "hunter22" in path.read_text()] == []
    assert is_begun(tmp_path, "postgres://me:hunter23@db/state")
    assert not is_begun(tmp_path, "postgres://me:hunter22@db/other")


@pytest.mark.parametrize(("salt", "kept"), [("v1:abc=", "new"), ("v1:other=", "old")])
def test_an_interrupted_change_of_the_passphrase(workspace: Workspace, salt: str, kept: str) -> None:
    """The next operation uses the passphrase that the state has: the new one if the state was written."""
    answering(workspace)
    write_state(workspace)
    change = PassphraseChange(workspace.folder)
    change.file.write_text("old")
    change.begin("new", salt, is_ours=True)

    with workspace.lock("deploy"):
        assert workspace.runner.variables["PULUMI_CONFIG_PASSPHRASE_FILE"] == str(change.file)

    assert change.file.read_text() == kept
    assert not change.is_pending


# sentences ------------------------------------------------------------------------------------------------------------

PASSPHRASE = (
    MissingPiece,
    "the state is encrypted with another passphrase",
    "set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE to the one it was made with",
)
WAIT = "wait until that has ended; if it is gone for good: "
LOCKS = "/state/.pulumi/locks/organization/shop/team"
#: How Pulumi shows of a request that was not answered.
MADE = 'resource "urn:x" was not successfully created by the Kubernetes API server: '
NO_ANSWERS = [
    pytest.param(
        MADE + "Timeout: request did not complete within requested timeout - context deadline exceeded", id="504"
    ),
    pytest.param(MADE + 'Patch "https://10.0.0.1/api/v1/namespaces/a/secrets/b?force=true": unexpected EOF', id="eof"),
    pytest.param('Get "https://10.0.0.1:6443/api?timeout=32s": net/http: TLS handshake timeout', id="no-handshake"),
    pytest.param(
        'Post "https://host/k8s/apis/apps/v1/deployments": dial tcp 10.0.0.1:443: connect: connection refused',
        id="gone",
    ),
    pytest.param(
        "configured Kubernetes cluster is unreachable: unable to load schema information from the API server:"
        " unexpected error when reading response body. Please retry. Original error: read tcp 1.2.3.4:1->1.2.3.5:2:"
        " read: connection reset by peer",
        id="reset",
    ),
    pytest.param(MADE + "the server is currently unable to handle the request", id="unable"),
    pytest.param(MADE + "etcdserver: request timed out", id="no-storage"),
    pytest.param(
        MADE + 'Operation cannot be fulfilled on resourcequotas "team": the object has been modified; please apply'
        " your changes to the latest version and try again",
        id="quota-conflict",
    ),
    pytest.param(MADE + "Internal error occurred: failed to allocate a serviceIP: range is full", id="has-just-begun"),
]
LOGIN = (
    MissingPiece,
    "the state backend requires a login",
    "pulumi login, or set PULUMI_ACCESS_TOKEN",
)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param(
            "error: getting stack configuration: get stack secrets manager: incorrect passphrase\n",
            PASSPHRASE,
            id="another-passphrase",
        ),
        pytest.param(
            "error: getting stack configuration: get stack secrets manager: passphrase must be set with"
            " PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE environment variables\n",
            PASSPHRASE,
            id="no-passphrase",
        ),
        pytest.param(
            locked("me@host (pid 1234)"),
            (
                Busy,
                "the stack is locked by me@host, process 1234, since 2026-11-21T12:00:00Z",
                f"{WAIT}platform state unlock",
            ),
            id="locked",
        ),
        pytest.param(
            locked("me@host (pid 1234)", "you@host (pid 5678)"),
            (
                Busy,
                "the stack is locked by me@host, process 1234, since 2026-11-21T12:00:00Z",
                f"{WAIT}platform state unlock",
            ),
            id="locked-twice",
        ),
        pytest.param(
            locked("me@host (pid 1234)").replace("file:///", "s3://bucket/"),
            (
                Busy,
                "the stack is locked by me@host, process 1234, since 2026-11-21T12:00:00Z",
                f"{WAIT}platform state unlock",
            ),
            id="locked-elsewhere",
        ),
        pytest.param(
            "error: [409] Conflict: ConcurrentUpdate: Another update is in progress.",
            (Busy, "the stack is locked", f"{WAIT}pulumi cancel"),
            id="locked-at-a-service",
        ),
        pytest.param(
            "error: getting stack configuration: get stack secrets manager: unable to read"
            " PULUMI_CONFIG_PASSPHRASE_FILE: open /x: no such file or directory\n",
            (MissingPiece, "the passphrase of the state can't be read: open /x: no such file or directory", ""),
            id="no-passphrase-file",
        ),
        pytest.param(
            'error: Get "https://a/api?timeout=32s": EOF\n',
            (
                MissingPiece,
                'the cluster stopped answering: Get "https://a/api?timeout=32s": EOF',
                "check that it answers, then run this again",
            ),
            id="no-answer",
        ),
        pytest.param(
            "error: write /state/.pulumi/stacks/shop/team.json: no space left on device\n",
            (ComposeplatError, "the state can't be written: the disk is full", "free some space, then run this again"),
            id="full-disk",
        ),
        pytest.param(
            "error: PULUMI_ACCESS_TOKEN must be set for login during non-interactive CLI sessions\n", LOGIN, id="token"
        ),
        pytest.param("error: [401] Unauthorized: No credentials provided.", LOGIN, id="unauthorized"),
        *(
            pytest.param(text, (ComposeplatError, f"Pulumi failed: {text}", ""), id=f"not-the-state-{number}")
            for number, text in enumerate(
                (
                    "failed to fetch oauth token: 401 Unauthorized",
                    "dial unix /var/run/docker.sock: connect: permission denied",
                    "fork/exec /home/ann/pulumi-resource-kubernetes: permission denied",
                    "open /home/ann/.kube/config: permission denied",
                )
            )
        ),
        pytest.param(
            "error: open /state/.pulumi/meta.yaml: permission denied\n",
            (ComposeplatError, "the state can't be written: open /state/.pulumi/meta.yaml: permission denied", ""),
            id="not-allowed",
        ),
        pytest.param(
            "error: 2 errors occurred:\n\t1) open /state/x: read-only file system\n\t2) Unknown\n",
            (
                ComposeplatError,
                "the state can't be written: 2 errors occurred: 1) open /state/x: read-only file system 2) Unknown",
                "",
            ),
            id="read-only",
        ),
        pytest.param(
            'error: unable to open state directory\n\n  error: stat "/x":\n  no such file\n',
            (ComposeplatError, 'Pulumi failed: unable to open state directory stat "/x": no such file', ""),
            id="anything-else",
        ),
        pytest.param(
            "error: host content can't be copied: permission denied\n"
            "error: an unhandled error occurred: host content can't be copied: permission denied\n",
            (ComposeplatError, "host content can't be copied: permission denied", ""),
            id="a-sentence-of-our-program",
        ),
        pytest.param("", (ComposeplatError, "Pulumi failed: ", ""), id="nothing"),
    ],
)
def test_explain(output: str, expected: tuple[type, str, str]) -> None:
    """What Pulumi could not do is reported in one sentence, with a fix where there is one."""
    error = explain(output)

    assert expected == (type(error), str(error), error.hint)


CREDENTIALS = "the server has asked for the client to provide credentials"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ('resource "urn:a" was not successfully created by the Kubernetes API server: Unauthorized', True),
        ("Preview failed: failed to fetch the schema: Unauthorized", True),
        ("unable to load schema information from the API server: " + CREDENTIALS, True),
        ("failed to authorize: failed to fetch oauth token: 401 Unauthorized", False),
        ("[401] Unauthorized: No credentials provided or are invalid.", False),
        ('by the Kubernetes API server: secrets is forbidden: User "me" cannot create resource', False),
    ],
)
def test_is_refused(output: str, *, expected: bool) -> None:
    """A credential that had ended is reported from what the user may not do, and from other servers' refusals."""
    assert expected is is_refused(f"error: update failed\n  * {output}\n")
    assert expected is ("does not accept the credentials" in str(explain(output)))


@pytest.mark.parametrize("output", NO_ANSWERS)
def test_broke_off(output: str) -> None:
    """A request that was not answered is reported from one that was refused: it may be made again."""
    assert broke_off(f"error: update failed\n  * {output}\n")


@pytest.mark.parametrize(
    "output",
    [
        pytest.param('admission webhook "a.b" denied the request: no', id="refused"),
        pytest.param(
            "configured Kubernetes cluster is unreachable: unable to load Kubernetes client configuration from"
            " kubeconfig file. Make sure you have:",
            id="no-kubeconfig",
        ),
        pytest.param('Deployment.apps "a" is invalid: spec.replicas: must be positive', id="invalid"),
        pytest.param('Patch "https://10.0.0.1/api/v1/namespaces/a/secrets/b": context canceled', id="interrupted"),
        pytest.param(
            'Get "https://10.0.0.1/api": tls: failed to verify certificate: x509: certificate signed by unknown',
            id="tls",
        ),
        pytest.param(
            "configured Kubernetes cluster is unreachable: unable to load schema information from the API server:"
            " the server has asked for the client to provide credentials: Unauthorized",
            id="credentials",
        ),
        pytest.param(
            'failed to push: Put "https://registry/v2/a/manifests/1": dial tcp: connection refused', id="push"
        ),
        pytest.param("incorrect passphrase", id="passphrase"),
    ],
)
def test_did_not_break_off(output: str) -> None:
    """What would be the same the next time, and what is about no cluster, is not tried again."""
    assert not broke_off(f"error: update failed\n  * {output}\n")


def test_explain_at_length() -> None:
    """Of much output the end is reported, which says why."""
    assert str(explain("x" * 1000 + "the reason")) == "Pulumi failed: " + "x" * 590 + "the reason"


def test_explain_control_characters() -> None:
    """What Pulumi writes can't steer a terminal."""
    assert str(explain("error: a\x1b[2Jb")) == "Pulumi failed: a\\x1b[2Jb"
