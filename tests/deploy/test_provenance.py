"""Which project an environment was made from: folders of one name don't delete each other's services."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.compose.test_repository import repository
from tests.deploy.conftest import PLATFORM, SLEEP, Environment, Ran
from tests.deploy.test_access import restrict

APP = f"{{image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0}}"
URL = "https://me:secret@git.example.com/acme/shop.git"


@pytest.fixture
def environment(environment: Environment) -> Environment:
    """The environment that folders named `app` make."""
    environment.name = "app"
    return environment


def folder(environment: Environment, path: str, service: str = "web", *, volume: bool = False) -> Path:
    made = environment.folder / path
    made.mkdir(parents=True)
    app = APP.replace("stop", "volumes: ['data:/data'], stop") if volume else APP
    (made / "compose.yaml").write_text(f"services: {{{service}: {app}}}\n" + "volumes: {data: {}}\n" * volume)
    return made


def platform(environment: Environment, place: Path, *args: str, **more: str) -> Ran:
    """Run a command in a folder, without a word of the environment's name."""
    began = time.monotonic()
    done = subprocess.run(
        [str(PLATFORM), *args, "--namespace", environment.namespace], cwd=place, capture_output=True, text=True,
        env={**environment.variables, **more}, check=False, timeout=250, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr, time.monotonic() - began)


def record(environment: Environment, name: str = "app") -> str:
    """What the record of an environment says; nothing where there is none."""
    found = environment.get("v1", "ConfigMap", f"platform-project.{name}")
    return str(found["metadata"]["annotations"]["dev.platform.com/project-description"]) if found else ""


def test_two_folders_of_one_name(environment: Environment) -> None:
    """The second project is refused, by every command that changes something, until it says that it is meant.

    It used to delete the first one's services without a question.
    """
    first, second = folder(environment, "a/app"), folder(environment, "b/app", "other")
    platform(environment, first, "deploy").expect()
    before = environment.started_at("web")

    for args in (
        ["deploy"],
        ["preview"],
        ["destroy"],
        ["sleep"],
        ["wake"],
        ["refresh"],
        ["up", "other"],
        ["down", "other"],
        ["state", "passphrase"],
        ["state", "move", "own", "file:///tmp"],
        ["state", "unlock"],
    ):
        refused = platform(environment, second, *args)
        assert refused.status == 1, refused.stderr
        assert "environment 'app' in namespace" in refused.stderr, args
        assert "was made from another project, a/app on " in refused.stderr, args
        assert "this one is b/app on " in refused.stderr, args
        assert "--name" in refused.stderr, args
        assert "--take-over" in refused.stderr, args
    for args in (["status"], ["logs"], ["endpoints"], ["state", "show"]):
        seen = platform(environment, second, *args)
        assert "environment 'app' was made from another project, a/app on " in seen.stderr, args
    # Arguments after the service belong to the command.
    ran = platform(environment, second, "exec", "--namespace", environment.namespace, "other", "true").expect(1)
    assert "was made from another project, a/app on " in ran.stderr
    assert "platform exec --name app other" in ran.stderr
    assert "another project" not in platform(environment, first, "status").expect().stderr
    assert environment.names() == {"Deployment/web", "Service/web"}
    assert environment.started_at("web") == before
    assert record(environment).startswith("a/app on ")
    platform(environment, first, "preview", "--expect-no-changes").expect()

    platform(environment, second, "preview", "--take-over").expect()
    taken = platform(environment, second, "deploy", "--take-over").expect()
    assert "app was made from a/app on " in taken.stderr
    assert environment.names() == {"Deployment/other", "Service/other"}
    platform(environment, first, "deploy").expect(1)

    platform(environment, first, "destroy", "--name", "app").expect()
    assert environment.names() == set()
    assert record(environment) == ""


def test_the_record_stays_with_volumes(environment: Environment) -> None:
    """As long as volumes of a project stay, another one does not get them; with them, the record goes."""
    first = folder(environment, "a/app", volume=True)
    second = folder(environment, "b/app", volume=True)
    platform(environment, first, "deploy").expect()
    platform(environment, first, "destroy").expect()

    platform(environment, second, "deploy").expect(1)
    assert environment.names() == {"PersistentVolumeClaim/data"}

    platform(environment, first, "destroy", "--volumes", "--yes").expect()
    assert record(environment) == ""


def test_one_project_on_two_machines(environment: Environment, tmp_path: Path) -> None:
    """Clones of one repository are one project: on another machine, and where a clone is moved to."""
    item = repository(environment.folder / "one" / "app", URL)
    (item / "compose.yaml").write_text(f"services: {{web: {APP}}}\n")
    two = environment.folder / "two" / "app"
    shutil.copytree(item, two)
    platform(environment, item, "deploy").expect()

    elsewhere = platform(environment, two, "deploy", COMPOSEPLAT_DATA=str(tmp_path / "elsewhere")).expect()
    moved = item.rename(environment.folder / "one" / "App")
    platform(environment, moved, "preview", "--expect-no-changes").expect()

    assert "deleted" not in elsewhere.stderr
    assert record(environment) == "git.example.com/acme/shop"


def test_a_folder_that_was_moved(environment: Environment) -> None:
    """What is in no repository is known by its path: where that changes it says so, and is taken over or named."""
    place = folder(environment, "before/app")
    platform(environment, place, "deploy").expect()
    moved = place.rename(environment.folder / "app")

    refused = platform(environment, moved, "deploy").expect(1)
    assert "was made from another project, before/app on " in refused.stderr

    platform(environment, moved, "preview", "--expect-no-changes", "--name", "app").expect()
    platform(environment, moved, "deploy", "--take-over").expect()
    platform(environment, moved, "preview", "--expect-no-changes").expect()


@pytest.mark.endurance
def test_an_environment_that_was_renamed(environment: Environment) -> None:
    """Under another name a project makes another environment; the one of before stays, and is reported once."""
    place = folder(environment, "app")
    platform(environment, place, "deploy").expect()
    (place / "compose.yaml").write_text(f"name: new\nservices: {{api: {APP}}}\n")

    renamed = platform(environment, place, "deploy").expect()
    again = platform(environment, place, "deploy").expect()

    expected = "app was made from this project too, and stays; if the name was changed: platform destroy --name app"
    assert expected in renamed.stderr
    assert expected not in again.stderr
    assert environment.names() - {"ConfigMap/platform-project.new"} == {
        "Deployment/web", "Service/web", "Deployment/api", "Service/api",
    }  # fmt: skip


def test_an_environment_without_a_record(environment: Environment) -> None:
    """An environment from before there were records, or of plain Pulumi, is of the project that deploys it next."""
    first, second = folder(environment, "a/app"), folder(environment, "b/app")
    platform(environment, first, "deploy").expect()
    with environment.api() as api:
        api.delete(f"/api/v1/namespaces/{environment.namespace}/configmaps/platform-project.app")

    platform(environment, second, "deploy").expect()

    assert record(environment).startswith("b/app on ")
    platform(environment, first, "deploy").expect(1)


@pytest.mark.endurance
def test_an_account_that_may_not_see_the_record(environment: Environment) -> None:
    """Who may not read ConfigMaps can't show whose environment it is: status 4, and that a name given is enough."""
    account = str(restrict(environment, [], "configmaps"))
    place = folder(environment, "app")
    platform(environment, place, "deploy").expect()
    before = environment.started_at("web")

    for args in (["destroy"], ["sleep"], ["refresh"], ["up", "web"]):
        refused = platform(environment, place, *args, "--kubeconfig", account).expect(4)
        assert (
            "error: can't check whether environment 'app' was made from this project: you may not get configmaps in"
            f" namespace '{environment.namespace}'\n"
            "  hint: say that it is meant, with --name app, or be allowed to see its record\n" in refused.stderr
        ), args
    for args in (["deploy"], ["preview"]):
        refused = platform(environment, place, *args, "--kubeconfig", account).expect(4)
        assert (
            f"error: can't check whether ConfigMap 'platform-project.app' is in namespace '{environment.namespace}'"
            " already: you may neither list nor get configmaps there\n  hint: let those who deploy see them: "
        ) in refused.stderr, args
    assert "another project" not in platform(environment, place, "status", "--kubeconfig", account).expect().stderr
    assert environment.started_at("web") == before

    named = platform(environment, place, "deploy", "--name", "app", "--kubeconfig", account).expect()
    assert "can't remember that app is made from this project: you may not make configmaps" in named.stderr
    platform(environment, place, "destroy", "--name", "app", "--kubeconfig", account).expect()
    assert environment.names() == set()
    # Who may not see the record can't forget it either.
    assert record(environment)
