"""A watch whose parts fail, without a cluster and without the program that watches folders."""

from __future__ import annotations

import contextlib
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

    def rebuild(self, services: Sequence[str], files: Any) -> bool:
        del services, files
        self.meanwhile()
        return True


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(otherwise=given()) as server:
        yield server


@pytest.fixture
def session(server: Server, monkeypatch: pytest.MonkeyPatch) -> WatchSession:
    """A session whose folder has changed once."""

    @contextlib.contextmanager
    def watching(_: Any, __: Any, ___: Any, on_found: Callable[[Found], None]) -> Iterator[None]:
        on_found(FolderChange(0, changed=("a",)))
        yield

    monkeypatch.setattr("composeplat.dev.watch_session.watching_folders", watching)
    monkeypatch.setattr("composeplat.toolchain.setup.Toolchain.need", lambda *_: Program)
    return WatchSession(
        folders=[FOLDER], cluster_names={"web": "web"}, namespace="team", environment_name="demo",
        target=Target(access=server.access, kubeconfig="", namespace="team"), environment={}, work=Builds(),
        on_event=lambda _: None,
    )  # fmt: skip


class Program:
    path = "/nowhere"


@pytest.mark.timeout(60)
def test_watching_ends_during_a_build(session: WatchSession) -> None:
    """A watch whose watcher ends while an image is built ends then: it waited for changes that nobody reported."""
    ended = ComposeplatError("the program that watches files has ended")

    def fail() -> None:
        session._found.put(ended)
        until(session._is_due.is_set)

    session.work.meanwhile = fail  # type: ignore[attr-defined]
    with pytest.raises(ComposeplatError, match="has ended"):
        session.run()
