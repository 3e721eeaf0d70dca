"""A watch whose parts fail, without a cluster and without the program that watches folders."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from composeplat.cluster.live_list import LiveList
from composeplat.cluster.snapshot import Object
from composeplat.compose.watch_model import WatchAction, WatchExec, WatchRule
from composeplat.dev.container_commands import Piped
from composeplat.dev.container_sync import Container, ContainerFiles, Unreached, write_archive
from composeplat.dev.folder_watch import FolderChange, Found
from composeplat.dev.refused_files import Refused
from composeplat.dev.watch_copy import Copy, WatchedContainers
from composeplat.dev.watch_rules import WatchedFolder
from composeplat.dev.watch_session import PodWork, WatchSession
from composeplat.dev.watch_state import Changes, FilePath, WatchState
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.target import Target
from composeplat.names import SERVICE_LABEL
from tests.cluster.objects import Server, deployment, given, pod, refusal, replica_set, running, until

BUILT, SYNCED = (
    WatchedFolder(service="web", rule=WatchRule(action=action, path="", target="/app"), local="/here")
    for action in (WatchAction.REBUILD, WatchAction.SYNC)
)
PODS = "/api/v1/namespaces/team/pods"


class Builds(PodWork):
    """Work that calls a function while an image is built."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], None] = lambda: None
        self.report: Callable[[Found], None] = lambda _: None
        self.events: list[dict[str, Any]] = []

    def rebuild(self, services: Sequence[str], files: Any) -> bool:
        del services, files
        self.meanwhile()
        return True


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(otherwise=given()) as server:
        yield server


@pytest.fixture
def work() -> Builds:
    return Builds()


@pytest.fixture
def session(server: Server, work: Builds, monkeypatch: pytest.MonkeyPatch) -> WatchSession:
    """A session whose folder has changed once."""

    @contextlib.contextmanager
    def watching(_: Any, __: Any, ___: Any, on_found: Callable[[Found], None]) -> Iterator[None]:
        work.report = on_found
        on_found(FolderChange(0, changed=("a",)))
        yield

    monkeypatch.setattr("composeplat.dev.watch_session.watching_folders", watching)
    monkeypatch.setattr("composeplat.toolchain.setup.Toolchain.need", lambda *_: Program)
    monkeypatch.setattr(ContainerFiles, "make_folders", lambda *_: {})
    return WatchSession(
        folders=[BUILT, SYNCED], cluster_names={"web": "web"}, namespace="team", environment_name="demo",
        target=Target(access=server.access, kubeconfig="", namespace="team"), environment={}, work=work,
        on_event=work.events.append,
    )  # fmt: skip


class Program:
    path = "/nowhere"


def test_watching_ends_during_a_build(session: WatchSession, work: Builds) -> None:
    """A watch whose watcher ends while an image is built ends then: it waited for changes that nobody reported."""

    def fail() -> None:
        work.report(ComposeplatError("the program that watches files has ended"))
        until(lambda: "copier" not in {thread.name for thread in threading.enumerate()})

    work.meanwhile = fail
    with pytest.raises(ComposeplatError, match="has ended"):
        session.run()


def run_beside(session: WatchSession, work: Builds, meanwhile: Callable[[], None]) -> None:
    """Run a session until something has been done beside it."""

    def do() -> None:
        meanwhile()
        work.report(ComposeplatError("enough"))

    work.meanwhile = do
    with pytest.raises(ComposeplatError, match="enough"):
        session.run()


def answer_with_a_pod(server: Server) -> Object:
    web = pod(replica_set(deployment("web")), state=running())
    web["metadata"]["labels"] = {SERVICE_LABEL: "web"}
    server.answers[PODS] = given(web)
    return web


def test_a_change_while_the_cluster_does_not_answer(
    session: WatchSession, work: Builds, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is copied once the cluster answers: it never was. The failure is reported once: it was, twice a second."""
    web = answer_with_a_pod(server)
    # While pods can't be watched, they are listed each time.
    monkeypatch.setattr("composeplat.cluster.live_list._POLL_INTERVAL_S", 0)
    monkeypatch.setattr(LiveList, "wait", lambda _: time.sleep(0.05))
    copied: list[FilePath] = []

    def into(copy: Copy, _: object) -> set[Container]:
        copied.extend(copy.changes.present)
        return set()

    monkeypatch.setattr(Copy, "into", into)

    def lose_the_cluster() -> None:
        work.report(FolderChange(1, changed=("first",)))
        until(lambda: copied == [(1, "first")])
        server.answers[PODS] = refusal(500, "no cluster")
        until(lambda: problems(work))
        work.report(FolderChange(1, changed=("second",)))
        asked = len(server.asked)
        until(lambda: len(server.asked) > asked + 4)
        server.answers[PODS] = given(web)
        until(lambda: (1, "second") in copied)

    run_beside(session, work, lose_the_cluster)

    assert copied == [(1, "first"), (1, "second")]
    assert problems(work) == ["no cluster"]


def test_changes_during_a_copy_are_one_copy(
    session: WatchSession, work: Builds, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many scans see a checkout: each was a copy of its own. What is gone before it is read is no copy of nothing."""
    answer_with_a_pod(server)
    session.folders[1] = replace(SYNCED, local=str(tmp_path))  # type: ignore[index]  # a list here
    monkeypatch.setattr(LiveList, "wait", lambda _: time.sleep(0.05))
    for name in ("first", "second", "third"):
        (tmp_path / name).write_text(name)
    is_copying, is_saved = threading.Event(), threading.Event()

    def unpack(*_: object) -> Refused:
        is_copying.set()
        is_saved.wait(20)
        return {}

    monkeypatch.setattr(ContainerFiles, "unpack", unpack)
    monkeypatch.setattr(ContainerFiles, "delete", lambda *_: {})

    def save() -> None:
        work.report(FolderChange(1, changed=("gone",)))
        work.report(FolderChange(1, changed=("first",)))
        is_copying.wait(20)
        for name in ("second", "third"):
            work.report(FolderChange(1, changed=(name,)))
        work.report(FolderChange(1, deleted=("old/", "old/a")))
        is_saved.set()
        until(lambda: len(copies(work)) == 2)
        work.report(FolderChange(1, changed=("gone",), deleted=("empty/",)))

    run_beside(session, work, save)

    assert copies(work) == [(1, 0), (2, 1)]


def test_a_change_while_a_container_is_not_reached(
    session: WatchSession, work: Builds, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is copied at the next occasion: it was not, unless the same file was saved again."""
    web = answer_with_a_pod(server)
    files = {"lost": "1", "later": "2"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    session.folders[1] = replace(SYNCED, local=str(tmp_path))  # type: ignore[index]  # a list here
    copied: list[list[str]] = []
    failures = [Unreached("no route")]

    def unpack(_: ContainerFiles, archive: Path, __: Path) -> Refused:
        with tarfile.open(archive) as tar:
            copied.append(tar.getnames())
        if failures:
            raise failures.pop()
        return {}

    monkeypatch.setattr(ContainerFiles, "unpack", unpack)

    def save() -> None:
        work.report(FolderChange(1, changed=("lost",)))
        until(lambda: problems(work))
        work.report(FolderChange(1, changed=("later",)))
        until(lambda: {"app/lost", "app/later"} <= {name for names in copied[1:] for name in names})

    run_beside(session, work, save)

    assert problems(work) == [f"{web['metadata']['name']}: no route"]
    assert not any(event["new_pods"] for event in work.events if event["event"] == "copied")


def test_a_file_that_can_not_be_read_for_a_moment(
    session: WatchSession, work: Builds, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files that were saved with it are copied with the next save: only those that were saved again were."""
    answer_with_a_pod(server)
    for name in ("beside", "broken", "later"):
        (tmp_path / name).write_text(name)
    session.folders[1] = replace(SYNCED, local=str(tmp_path))  # type: ignore[index]  # a list here
    copied: set[str] = set()
    failures = [OSError("unexpected end of data"), OSError("unexpected end of data")]

    def write(*args: Any) -> int:
        if failures:
            raise failures.pop()
        return write_archive(*args)

    def unpack(_: ContainerFiles, archive: Path, __: Path) -> Refused:
        with tarfile.open(archive) as tar:
            copied.update(tar.getnames())
        return {}

    monkeypatch.setattr("composeplat.dev.watch_copy.write_archive", write)
    monkeypatch.setattr(ContainerFiles, "unpack", unpack)
    monkeypatch.setattr(ContainerFiles, "delete", lambda *_: {})

    def save() -> None:
        work.report(FolderChange(1, changed=("beside", "broken")))
        until(lambda: len(problems(work)) == 1)
        work.report(FolderChange(1, changed=("broken",)))
        until(lambda: len(problems(work)) == 2)
        work.report(FolderChange(1, changed=("later",)))
        until(lambda: copied == {"app/beside", "app/broken", "app/later"})

    run_beside(session, work, save)


def test_files_that_a_container_refuses(
    session: WatchSession, work: Builds, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are tried again by themselves, and reported once; once they are taken, nothing is tried any more.

    The container lacked them until they were saved again, and so it did the files after the first in the archive.
    """
    answer_with_a_pod(server)
    for name in ("a", "b", "old"):
        (tmp_path / name).write_text(name)
    session.folders[1] = replace(SYNCED, local=str(tmp_path))  # type: ignore[index]  # a list here
    monkeypatch.setattr("composeplat.dev.watch_state._FIRST_PAUSE_S", 0.1)
    monkeypatch.setattr("composeplat.dev.watch_state._MAX_PAUSE_S", 0.1)
    monkeypatch.setattr("composeplat.dev.watch_state._PAUSE_FOR_SECOND", 0)
    tried: list[list[str]] = []
    refused = {"/app/b": "Permission denied"}

    def unpack(_: ContainerFiles, archive: Path, __: Path) -> Refused:
        with tarfile.open(archive) as tar:
            tried.append(tar.getnames())
        return {path: reason for path, reason in refused.items() if path.lstrip("/") in tried[-1]}

    monkeypatch.setattr(ContainerFiles, "unpack", unpack)
    monkeypatch.setattr(ContainerFiles, "delete", lambda _, paths, __: dict.fromkeys(paths, "busy") if refused else {})

    def save() -> None:
        work.report(FolderChange(1, changed=("a", "b"), deleted=("old",)))
        until(lambda: len(tried) > 3)
        refused.clear()
        until(lambda: copies(work) == [(1, 0), (1, 1)])
        tried.append(["taken"])
        time.sleep(0.5)

    run_beside(session, work, save)

    assert tried[0] == ["app/a", "app/b"]
    assert {tuple(names) for names in tried[1:-1]} == {("app/b",)}
    assert tried[-1] == ["taken"]
    name = f"{copied_into(work)}: "
    assert problems(work) == [
        f"{name}can't write '/app/b', and tries again later: Permission denied; {OWN}",
        f"{name}can't delete '/app/old', and tries again later: busy; {BUSY}",
    ]


@pytest.mark.parametrize(
    "failure",
    [
        Unreached('pods "web-1" not found'),
        ComposeplatError("tar ended with status 137"),
        (137, ""),
        (1, "error: no pod"),
    ],
    ids=["no-pod", "killed", "command-killed", "no-pod-for-the-command"],
)
def test_a_container_that_ends_during_a_copy(
    session: WatchSession, work: Builds, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    failure: Exception | tuple[int, str],
) -> None:  # fmt: skip
    """That is no problem, as the next one gets all changes: there was a message that its pod is not found."""
    answer_with_a_pod(server)
    (tmp_path / "a").write_text("a")
    rule = replace(SYNCED.rule, action=WatchAction.SYNC_EXEC, command=WatchExec(command=("reload",)))
    session.folders[1] = replace(SYNCED, rule=rule, local=str(tmp_path))  # type: ignore[index]  # a list here
    is_over = threading.Event()

    def end(*_: object) -> tuple[int, str]:
        # The watch brings this a moment later.
        threading.Timer(0.1, lambda: monkeypatch.setattr(LiveList, "latest", [])).start()
        is_over.set()
        if isinstance(failure, Exception):
            raise failure
        return failure

    monkeypatch.setattr(ContainerFiles, "unpack", lambda *_: end() and {} if isinstance(failure, Exception) else {})
    monkeypatch.setattr(ContainerFiles, "run", end)

    def save() -> None:
        work.report(FolderChange(1, changed=("a",)))
        assert is_over.wait(20)
        time.sleep(0.5)

    run_beside(session, work, save)

    assert problems(work) == []
    assert "executed" not in {event["event"] for event in work.events}


def test_the_end_of_a_watch_does_not_wait_for_a_command(
    session: WatchSession, work: Builds, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Ctrl-C ends what is running in a container, without a message: it waited, up to two minutes."""
    answer_with_a_pod(server)
    (tmp_path / "a").write_text("a")
    session.folders[1] = replace(SYNCED, local=str(tmp_path))  # type: ignore[index]  # a list here
    started: list[subprocess.Popen[bytes]] = []
    before = set(threading.enumerate())

    @contextlib.contextmanager
    def opened(*_: object) -> Iterator[Piped]:
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(["sleep", "600"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
        ):
            assert process.stdin is not None
            assert process.stdout is not None
            started.append(process)
            yield Piped(process, process.stdin, process.stdout, errors)

    monkeypatch.setattr("composeplat.dev.container_sync.open_command", opened)

    def press() -> None:
        work.report(FolderChange(1, changed=("a",)))
        until(lambda: started)
        raise KeyboardInterrupt

    work.meanwhile = press
    with pytest.raises(KeyboardInterrupt):
        session.run()

    assert [process.poll() for process in started] == [-signal.SIGKILL]
    assert not {"copier", "pods"} & {thread.name for thread in set(threading.enumerate()) - before}
    assert problems(work) == []


OWN = "let the user of the container own the files: COPY --chown"
BUSY = "a mounted file can't be replaced: write action: sync+restart"


def test_a_container_that_can_not_be_reached_for_a_moment(
    session: WatchSession, work: Builds, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets what it lacks without another save: it did with the next one, if its pod did not change."""
    answer_with_a_pod(server)
    (tmp_path / "a").write_text("a")
    session.folders[1] = replace(SYNCED, local=str(tmp_path))  # type: ignore[index]  # a list here
    monkeypatch.setattr("composeplat.dev.watch_state._FIRST_PAUSE_S", 0.1)
    monkeypatch.setattr(LiveList, "wait", lambda _: time.sleep(60))
    failures = [Unreached("no route"), Unreached("no route")]

    def unpack(*_: object) -> Refused:
        if failures:
            raise failures.pop()
        return {}

    monkeypatch.setattr(ContainerFiles, "unpack", unpack)

    def save() -> None:
        work.report(FolderChange(1, changed=("a",)))
        until(lambda: copies(work) == [(1, 0)])

    run_beside(session, work, save)

    assert problems(work) == [f"{copied_into(work)}: no route"]


@pytest.mark.parametrize(
    ("status", "complaint", "is_unreached"),
    [
        pytest.param(1, "error: dial tcp 10.0.0.1:443: i/o timeout", True, id="no-connection"),
        pytest.param(-9, "", False, id="not-in-time"),
        pytest.param(137, "", False, id="killed"),
        pytest.param(127, "", False, id="no-program"),
        pytest.param(2, "tar: short read", False, id="no-file-in-the-archive"),
    ],
)
def test_why_a_copy_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, status: int, complaint: str, *, is_unreached: bool
) -> None:
    """What is not about single files fails the copy as a whole."""
    monkeypatch.setattr(ContainerFiles, "_run", lambda *_: (status, complaint))
    archive = tmp_path / "changes.tar"
    tarfile.open(archive, "w").close()
    with pytest.raises(ComposeplatError) as raised:
        ContainerFiles(Mock(), Mock(), {}).unpack(archive, tmp_path / "part")

    assert isinstance(raised.value, Unreached) is is_unreached


def test_a_file_that_is_a_folder_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After two checkouts, a new container still has the folder of its image: the file in its place is not missed."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "a").write_text("1")
    monkeypatch.setattr(ContainerFiles, "delete", lambda *_: {"/app/config": "Is a directory"})
    monkeypatch.setattr(ContainerFiles, "make_folders", lambda *_: {})
    monkeypatch.setattr(ContainerFiles, "unpack", lambda *_: {})
    work = Builds()
    reach = WatchedContainers(
        cluster_names={"web": "web"},
        namespace="team",
        target=Mock(),
        environment={},
        state=WatchState([replace(SYNCED, local=str(tmp_path))]),
        on_event=work.events.append,
    )
    changes = Changes({(0, "config/"): False, (0, "config"): False, (0, "config/a"): True})
    Copy(reach, "web", changes, is_new=True).into([Container("web-1", "c1")])

    assert (problems(work), copies(work)) == ([], [(1, 1)])


def copied_into(work: Builds) -> str:
    return str(next(event["pods"][0] for event in work.events if event["event"] == "copied"))


def problems(work: Builds) -> list[str]:
    return [event["reason"] for event in work.events if event["event"] == "watch-problem"]


def copies(work: Builds) -> list[tuple[int, int]]:
    return [(event["files"], event["deleted"]) for event in work.events if event["event"] == "copied"]
