"""Which services a command reads: by ``--profile``, by ``COMPOSE_PROFILES``, and by the services that it names."""

from __future__ import annotations

import json

import pytest

from composeplat.cli.preview import reasons_of
from composeplat.cli.selection import Choice, request_for
from composeplat.engine.events import Change, Operation
from composeplat.engine.plan_parts import Parts
from tests.conftest import Project
from tests.in_process import run_here

TEXT = """\
services:
  web: {image: nginx}
  debug: {image: busybox, profiles: [debug], depends_on: [web]}
  test: {image: busybox, profiles: [test, all]}
  load: {image: busybox, profiles: [test]}
"""


@pytest.mark.parametrize(
    ("args", "shell", "expected"),
    [
        pytest.param([], {}, ["web"], id="none"),
        pytest.param(["--profile", "debug"], {}, ["web", "debug"], id="an option"),
        pytest.param(["--profile=debug", "--profile=all"], {}, ["web", "debug", "test"], id="two options"),
        pytest.param([], {"COMPOSE_PROFILES": "debug,test"}, ["web", "debug", "test", "load"], id="the variable"),
        pytest.param(["--profile=all"], {"COMPOSE_PROFILES": "debug"}, ["web", "test"], id="the option wins"),
        pytest.param(["--profile", "*"], {}, ["web", "debug", "test", "load"], id="all"),
        pytest.param(["--profile", "typo"], {}, ["web"], id="a profile of no service"),
    ],
)
def test_chosen_profiles(args: list[str], shell: dict[str, str], expected: list[str], project: Project) -> None:
    """`config` shows the services without profiles, and those of the chosen ones."""
    folder = project(TEXT)

    outcome = run_here("config", "--full", "--format=json", *args, folder=folder.path, **shell).assert_success()

    # A dependency comes before the service that needs it.
    assert sorted(json.loads(outcome.stdout)["services"]) == sorted(expected)
    assert set(run_here("config", "--full", "--services", *args, folder=folder.path, **shell).stdout.split()) == set(
        expected
    )


@pytest.mark.parametrize(("args", "expected"), [((), {"always"}), (("--profile=pg",), {"always", "db"})])
def test_a_profile_without_a_name(project: Project, args: tuple[str, ...], expected: set[str]) -> None:
    """It is the one that is chosen where no other is, as in Compose."""
    folder = project("services: {always: {image: a, profiles: ['', pg]}, db: {image: a, profiles: [pg]}}")

    assert set(run_here("config", "--full", "--services", *args, folder=folder.path).stdout.split()) == expected


def test_a_named_service_brings_its_profiles(project: Project) -> None:
    """A deploy of one service reads those of its profiles, and deploys it with what it depends on."""
    folder = project(TEXT)

    def deployed(*args: str) -> list[str]:
        outcome = run_here("deploy", "--dry-run", "--json", "--full", *args, folder=folder.path).assert_success()
        kinds = ("Deployment", "StatefulSet", "Job")
        return [item["metadata"]["name"] for item in json.loads(outcome.stdout)["items"] if item["kind"] in kinds]

    assert deployed("debug") == ["web", "debug"]
    assert deployed("load") == ["load"]
    assert deployed() == ["web"]


def test_an_explained_service_brings_its_profiles(project: Project) -> None:
    """The option of `check` that names a service is one way to name it."""
    args = ("check", "--offline", "--full", "--json", "--explain", "load")
    (found,) = json.loads(run_here(*args, folder=project(TEXT).path).stdout)["services"]

    assert found["service"] == "load"


def test_profiles_need_full_mode(project: Project) -> None:
    """Without full mode the option is refused, and the variable has no effect."""
    folder = project(TEXT)

    refused = run_here("config", "--profile=debug", folder=folder.path)
    shown = run_here("config", "--services", folder=folder.path, COMPOSE_PROFILES="debug").assert_success()

    assert refused.status == 2
    assert refused.stderr == "error: --profile has an effect in full mode alone\n  hint: add --full\n"
    assert set(shown.stdout.split()) == {"web", "debug", "test", "load"}


def test_the_request_has_the_named_services() -> None:
    """The services among a command's arguments are part of the request."""
    assert request_for(Choice(named_services=("web",), profile=("a",))).named_services == ("web",)


def test_a_preview_gives_the_profile_as_the_reason(project: Project) -> None:
    """What is deleted as its profile is off has that as its reason; another deletion has none."""
    plan = project(TEXT).read(full=True, profile=("debug",)).plan
    assert plan is not None

    def reasons(name: str, operation: Operation = Operation.DELETE) -> list[str]:
        urn = f"urn:pulumi:team::demo::kubernetes:apps/v1:Deployment::demo-workload/{name}"
        deleted = Change(operation=operation, urn=urn, kind="Deployment", name=name, differences=(), kept=False)
        return reasons_of(deleted, Parts(plan).part_of(deleted), plan)

    assert reasons("test") == ["its profile is off: test, all"]
    assert reasons("gone") == []
    assert reasons("test", Operation.UPDATE) == []


def test_what_only_inactive_services_use_is_left_out(project: Project) -> None:
    """Volumes, networks, configs and secrets of an inactive service go with it; those that others use stay."""
    text = """\
services:
  web: {image: nginx, volumes: ["shared:/a"], networks: [front]}
  debug:
    build: {context: ., secrets: [token]}
    profiles: [debug]
    volumes: ["shared:/a", {type: volume, source: own, target: /b}]
    networks: {front: {}, back: {}}
    configs: [{source: settings}]
volumes: {shared: {}, own: {}, unused: {}}
networks: {front: {}, back: {}}
configs: {settings: {file: ./a}}
secrets: {token: {file: ./b}}
"""
    folder = project(text)

    outcome = run_here("config", "--full", "--format=json", folder=folder.path).assert_success()

    definition = json.loads(outcome.stdout)
    assert definition["volumes"] == {"shared": {}, "unused": {}}
    assert definition["networks"] == {"front": {}}
    assert "configs" not in definition
    assert "secrets" not in definition
