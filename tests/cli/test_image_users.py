"""Commands look up the users that a definition names, in the images' registry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from composeplat.cli import image_users
from tests.conftest import Outcome, Project
from tests.in_process import run_here
from tests.registry.test_image_users import BASE
from tests.registry_server import Registry, serving

WARNING = "names a user that only the image knows"


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    monkeypatch.setattr(image_users, "_failed_until", {})
    with serving(Registry()) as made:
        made.push("app", user="node", layers=[BASE])
        made.push("other", layers=[BASE])
        yield made


@pytest.fixture
def run(registry: Registry, project: Project, tmp_path: Path) -> Any:
    def run_with(user: str, *args: str, image: str = "other", **shell: str) -> Outcome:
        text = f"services: {{web: {{image: '{registry.host}/{image}', user: '{user}'}}}}"
        shell = {"COMPOSEPLAT_CACHE": str(tmp_path / "cache"), **shell}
        return run_here(*args, folder=project({"compose.yaml": text}).path, **shell)

    return run_with


def context(outcome: Outcome) -> dict[str, Any]:
    (deployment,) = [item for item in yaml.safe_load_all(outcome.stdout) if item["kind"] == "Deployment"]
    found: dict[str, Any] = deployment["spec"]["template"]["spec"]["containers"][0].get("securityContext", {})
    return {key: value for key, value in found.items() if key.startswith("runAs")}


def test_a_name(run: Any, registry: Registry) -> None:
    """It becomes the numbers of the image, without a warning; the cache has them for the next command."""
    outcome = run("node", "render").assert_success()
    assert context(outcome) == {"runAsUser": 1000, "runAsGroup": 1001}
    assert outcome.stderr == ""

    asked = len(registry.asked)
    assert run("node", "config").stderr == ""
    assert len(registry.asked) == asked


def test_the_user_of_the_image(run: Any) -> None:
    """Where it is named, the pod needs no number, unless the namespace refuses names."""
    outcome = run("node", "render", image="app")
    assert context(outcome) == {}
    assert outcome.stderr == ""

    restricted = run("node", "render", image="app", PLATFORM_POD_SECURITY="restricted")
    assert context(restricted)["runAsUser"] == 1000


def test_init_with_a_name(registry: Registry, project: Project, tmp_path: Path) -> None:
    """A user that is looked up keeps full mode off no more than a number does, whether its image is pulled or built."""
    web = f"{{image: '{registry.host}/other', user: node, tty: true}}"
    text = f"services: {{web: {web}, built: {{build: ., user: app, tty: true}}}}"
    folder = project({"compose.yaml": text, "Dockerfile": "FROM scratch\n"}).path
    outcome = run_here("init", "--yes", folder=folder, COMPOSEPLAT_CACHE=str(tmp_path / "cache")).assert_success()

    assert "full: true" in (folder / "compose.platform.yaml").read_text()
    assert outcome.stderr == "wrote compose.platform.yaml\n"


def test_a_name_that_the_image_lacks(run: Any) -> None:
    """The warning says so."""
    outcome = run("postgres", "render")

    assert context(outcome) == {}
    assert "services.web.user names a user that its image does not have, and has no effect" in outcome.stderr


def test_a_registry_that_does_not_answer(run: Any, registry: Registry) -> None:
    """The warning says what is left of the key, and the registry is asked once in a command."""
    registry.gate = lambda *_: (503, {}, b"")
    outcome = run("node:5", "render")

    assert context(outcome) == {"runAsGroup": 5}
    assert f"{WARNING}; the group's number is used" in outcome.stderr
    assert len(registry.asked) == 1
    assert WARNING in run("node:5", "render").stderr
    assert len(registry.asked) == 1


def test_where_no_registry_may_be_asked(run: Any, registry: Registry) -> None:
    """With PLATFORM_IMAGE_PORTS=false, and with --offline, nothing is asked."""
    assert WARNING in run("node", "render", PLATFORM_IMAGE_PORTS="false").stderr
    assert WARNING in run("node", "check", "--offline").stdout
    assert registry.asked == []


def test_names_of_groups(registry: Registry, project: Project, tmp_path: Path) -> None:
    """They become the numbers of the image, also where no user is named; another has no effect, and is named."""
    service = f"{{image: '{registry.host}/other', group_add: [7, staff, wheel, '50']}}"
    folder = project({"compose.yaml": f"services: {{web: {service}}}"}).path
    shell = {"COMPOSEPLAT_CACHE": str(tmp_path / "cache"), "PLATFORM_FULL": "true"}
    outcome = run_here("render", folder=folder, **shell).assert_success()

    (deployment,) = [item for item in yaml.safe_load_all(outcome.stdout) if item["kind"] == "Deployment"]
    assert deployment["spec"]["template"]["spec"]["securityContext"]["supplementalGroups"] == [7, 50]
    assert "services.web.group_add[2] names a group that only the image knows, and has no effect" in outcome.stderr
    assert outcome.stderr.count("group_add[") == 1


@pytest.mark.parametrize(
    ("command", "registries", "warns"), [("config", "true", False), ("render", "true", True), ("config", "false", True)]
)
def test_an_image_that_the_file_builds(project: Project, command: str, registries: str, *, warns: bool) -> None:
    """A deploy looks the name up once it is built, so only commands without a deploy warn of it."""
    folder = project({"compose.yaml": "services: {web: {build: ., user: node}}", "Dockerfile": "FROM scratch\n"}).path
    shell = {"PLATFORM_REGISTRY": "registry.example.com", "PLATFORM_IMAGE_PORTS": registries}

    assert (WARNING in run_here(command, folder=folder, **shell).assert_success().stderr) == warns
