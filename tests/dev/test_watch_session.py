"""A watch whose parts fail, without a cluster and without the program that watches folders."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from composeplat.compose.watch_model import WatchAction, WatchRule
from composeplat.dev.folder_watch import FolderChange, Found
from composeplat.dev.watch_rules import WatchedFolder
from composeplat.dev.watch_session import PodWork, WatchSession
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.target import Target
from tests.cluster.objects import Server, given, until

FOLDER = WatchedFolder(service="web", rule=WatchRule(action=WatchAction.REBUILD, path="", target=""), local="/here")


class Builds(PodWork):
    """Work that calls a function while an image is built."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], None] = lambda: None
        self.report: Callable[[Found], None] = lambda _: None

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
    return WatchSession(
        folders=[FOLDER], cluster_names={"web": "web"}, namespace="team", environment_name="demo",
        target=Target(access=server.access, kubeconfig="", namespace="team"), environment={}, work=work,
        on_event=lambda _: None,
    )  # fmt: skip


class Program:
    path = "/nowhere"


@pytest.mark.timeout(60)
def test_watching_ends_during_a_build(session: WatchSession, work: Builds) -> None:
    """A watch whose watcher ends while an image is built ends then: it waited for changes that nobody reported."""

    def fail() -> None:
        work.report(ComposeplatError("the program that watches files has ended"))
        until(lambda: "copier" not in {thread.name for thread in threading.enumerate()})

    work.meanwhile = fail
    with pytest.raises(ComposeplatError, match="has ended"):
        session.run()
