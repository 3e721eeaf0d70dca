"""The cluster and the environment that the actions of the page change: those that it shows."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from composeplat.cli.environment_view import view_environment
from composeplat.cli.selection import Choice
from composeplat.cli.ui_live import LiveEnvironment
from composeplat.diagnostics import ComposeplatError
from composeplat.ui.site import Environment
from composeplat.ui.topics import Publish
from tests.cluster.objects import Server, given, refusal

SHOP = "name: shop\nservices:\n  web: {image: example/web}\n"


@dataclass
class Opened:
    """A page of a cluster, beside another cluster of the same kubeconfig."""

    folder: Path
    shown: Server
    other: Server
    environment: Environment

    def choose(self, context: str) -> None:
        """Make a context the current one, as `kubectl config use-context` does."""
        path = self.folder / "kubeconfig"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"current-context": context}))

    def act(self, action: str, services: Sequence[str] = ()) -> list[str]:
        """Run an action, and return its command line from the name of the command on."""
        assert self.environment.arguments is not None
        arguments = list(self.environment.arguments(action, services))
        subprocess.run(arguments, cwd=self.folder, capture_output=True, check=False, timeout=60)
        return arguments[arguments.index(action) :]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / "compose.yaml").write_text(SHOP)
    no_variables = {f"/api/v1/namespaces/{name}/secrets/platform-variables": refusal(404, "no") for name in "ab"}
    servers = [Server(otherwise=given(), answers=no_variables) for _ in range(2)]
    monkeypatch.chdir(folder)
    monkeypatch.setenv("KUBECONFIG", str(folder / "kubeconfig"))
    monkeypatch.setenv("COMPOSEPLAT_DATA", str(tmp_path / "data"))
    with servers[0] as shown, servers[1] as other:
        ports = {"a": shown.port, "b": other.port}
        contexts = [{"name": name, "context": {"cluster": name, "user": "me", "namespace": name}} for name in ports]
        clusters = [{"name": name, "cluster": {"server": f"http://127.0.0.1:{port}"}} for name, port in ports.items()]
        (folder / "kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "a", "contexts": contexts, "clusters": clusters,
            "users": [{"name": "me", "user": {}}],
        }))  # fmt: skip
        view = view_environment(Choice(), ())
        assert view is not None
        environment = LiveEnvironment(Choice(), view).site(read_only=False).find("a", "shop")
        assert environment is not None
        yield Opened(folder, shown, other, environment)


@pytest.mark.parametrize("action", ["sleep", "wake", "restart", "preview", "deploy"])
def test_another_current_context(opened: Opened, action: str) -> None:
    """An action changes the cluster that the page shows, whichever context is current by then."""
    opened.choose("b")
    before = len(opened.shown.asked)

    arguments = opened.act(action)

    assert arguments[arguments.index("--namespace") + 1] == "a"
    assert len(opened.shown.asked) > before
    assert opened.other.asked == []


@pytest.mark.parametrize("action", ["sleep", "wake", "restart"])
def test_another_name_in_the_file(opened: Opened, action: str) -> None:
    """An action is for the environment that the page shows, whichever name the file has by then."""
    (opened.folder / "compose.yaml").write_text(SHOP.replace("shop", "other"))

    arguments = opened.act(action)

    assert arguments[arguments.index("--name") + 1] == "shop"


def test_no_deploy_of_another_name(opened: Opened) -> None:
    """The page says that the file is now of another environment, and neither compares nor deploys it."""
    before = opened.environment.read_stamp()
    (opened.folder / "compose.yaml").write_text(SHOP.replace("shop", "other"))
    with pytest.raises(ComposeplatError, match="the definition is now of the environment 'other'"):
        opened.environment.read_stamp()
    (opened.folder / "compose.yaml").write_text(SHOP)

    assert opened.environment.read_stamp() == before


def test_the_page_of_another_name(opened: Opened) -> None:
    """The page keeps the definition that it had, shows the file as it is now, and says what the matter is."""
    published: list[tuple[str, object]] = []
    ended, changed = threading.Event(), threading.Event()

    def publish(topic: str, document: object) -> None:
        published.append((topic, document))
        if len(published) == 2:
            (opened.folder / "compose.yaml").write_text(SHOP.replace("shop", "other"))
        if len(published) == 4:
            changed.set()

    run(opened.environment, publish, ended, changed)
    (_, before), (_, fine), (_, after), (_, problem) = published

    assert fine == {"message": "", "hint": ""}
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    assert (after["environment"], after["services"]) == ("shop", before["services"])
    assert "name: other" in after["files"][0]["text"]
    assert problem == {
        "message": "the definition is now of the environment 'other'",
        "hint": "start platform ui again for it",
    }


def run(environment: Environment, publish: Publish, ended: threading.Event, changed: threading.Event) -> None:
    """Read the definition until it has been published twice."""
    thread = threading.Thread(target=environment.sources["definition"], args=(publish, ended))
    thread.start()
    changed.wait(10)
    ended.set()
    thread.join()
