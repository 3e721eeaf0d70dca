"""The command with a cluster that has next to nothing, and with the engine's operations replaced."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from composeplat import progress
from composeplat.engine.outcomes import DeployOptions, Outcome as Came
from composeplat.engine.stack import Stack
from tests.cluster.objects import Answer, Server, given, refusal
from tests.conftest import Outcome
from tests.in_process import run_here
from tests.schemas import checked


@pytest.fixture
def hide() -> Iterator[Callable[[list[str]], None]]:
    """Name confidential values, which are forgotten after the test."""
    with progress.forget_values():
        yield progress.hide


TEXT = """\
services:
  web:
    image: example/web
    ports: ["8080:80"]
    environment: {PASSWORD: $PASSWORD}
  db: {image: example/db, volumes: ["kept:/data"]}
  own: {build: ./own}
volumes: {kept: }
"""
SHELL = {"PASSWORD": "hunter2"}


@dataclass
class Seam:
    """The command in a folder, with a cluster, and the engine's operations replaced."""

    folder: Path
    server: Server
    patch: pytest.MonkeyPatch
    asked: list[tuple[str, Stack, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def gives(self, operation: str, outcome: Came | BaseException) -> None:
        """What an operation comes to, written ``module.function``."""

        def act(stack: Stack, *args: Any, **more: Any) -> Came:
            self.asked.append((operation, stack, args, more))
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        self.patch.setattr(f"composeplat.engine.operations.{operation}", act)

    def platform(self, *args: str, **shell: str) -> Outcome:
        return run_here(
            *args, folder=self.folder, KUBECONFIG=str(self.folder / "kubeconfig"),
            COMPOSEPLAT_DATA=str(self.folder / "data"), **SHELL, **shell,
        )  # fmt: skip

    @property
    def options(self) -> DeployOptions:
        (_, _, args, _), = self.asked  # fmt: skip
        options: DeployOptions = args[1]
        return options


@pytest.fixture
def seam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Seam]:
    folder = tmp_path / "demo"
    (folder / "own").mkdir(parents=True)
    (folder / "own" / "Dockerfile").write_text("FROM scratch\n")
    (folder / "compose.yaml").write_text(TEXT)
    answers = {
        "/api/v1/namespaces/team/secrets/platform-variables": refusal(404, "no"),
        "/api/v1/namespaces/kube-system": Answer(b'{"metadata": {"uid": "one"}}'),
    }
    with Server(otherwise=given(), answers=answers) as server:
        (folder / "kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "a", "user": "me", "namespace": "team"}}],
            "clusters": [{"name": "a", "cluster": {"server": f"http://127.0.0.1:{server.port}"}}],
            "users": [{"name": "me", "user": {}}],
        }))  # fmt: skip
        yield Seam(folder, server, monkeypatch)


def data(outcome: Outcome) -> Any:
    """What was printed for programs, as its schema has it."""
    return checked(json.loads(outcome.stdout))
