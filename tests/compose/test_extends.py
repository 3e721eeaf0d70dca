"""The limits of ``extends``, and what ``platform config`` shows of it; tests/keys has its rules."""

from __future__ import annotations

import json
import time

import pytest

from composeplat.compose.load import extends
from tests.conftest import Project
from tests.in_process import run_here


def chain(length: int) -> str:
    """A definition in which each service extends the one before it."""
    services = ["  s0: {image: nginx}", *(f"  s{n}: {{extends: s{n - 1}}}" for n in range(1, length + 1))]
    return "services:\n" + "\n".join(reversed(services)) + "\n"


def test_a_long_chain(project: Project) -> None:
    """As many services as the limit allows extend each other; with one more there is an error where it is passed."""
    assert project(chain(extends.MAX_CHAIN)).read(full=True).messages == []
    messages = project(chain(extends.MAX_CHAIN + 1)).read(full=True).messages

    assert messages == [
        (
            "compose.yaml:102:17: error: services.s1.extends makes a chain of more than 100 services that extend each"
            " other [invalid-value]"
        )
    ]


def test_many_files(project: Project) -> None:
    """The number of files has a limit."""
    names = [f"b{n}.yaml" for n in range(extends.MAX_FILES + 1)]
    services = "".join(f"  s{n}: {{extends: {{file: {name}, service: b}}}}\n" for n, name in enumerate(names))
    files = dict.fromkeys(names, "services: {b: {image: nginx}}")

    reading = project({"compose.yaml": f"services:\n{services}", **files}).read(full=True)

    assert reading.messages == [
        (
            "compose.yaml:102:26: error: services.s100.extends.file exceeds the limit of 100 files of 'extends'"
            " [invalid-value]"
        )
    ]


def test_a_file_is_read_once(project: Project) -> None:
    """Services that extend services of one file read it once: its messages come once."""
    base = "services:\n  b: {image: 'nginx:${TAG}'}\n  c: {image: nginx}\n"
    text = "services:\n" + "".join(f"  s{n}: {{extends: {{file: base.yaml, service: b}}}}\n" for n in range(3))

    reading = project({"compose.yaml": text, "base.yaml": base}, TAG="1").read(full=True)

    assert reading.messages == []
    assert {service.image for service in reading.loaded.project.services.values()} == {"nginx:1"}


def test_a_large_service_is_not_copied_without_end(project: Project) -> None:
    """What many services inherit is limited in all, and refused in little time."""
    variables = "\n".join(f"      V{n}: x" for n in range(3000))
    services = "".join(f"  s{n}: {{extends: base}}\n" for n in range(200))
    started = time.monotonic()

    reading = project(f"services:\n  base:\n    image: nginx\n    environment:\n{variables}\n{services}").read(
        full=True
    )

    (message,) = [line for line in reading.messages if "too-large" in line]
    assert message.endswith("brings the extended services above 200000 values [too-large]")
    assert time.monotonic() - started < 30


def test_services_are_listed_once(project: Project) -> None:
    """A service that an include has too is listed once where the name of another one is wrong."""
    files = {
        "compose.yaml": "include: [a.yaml]\nservices: {web: {user: '1'}, job: {image: nginx, extends: gone}}",
        "a.yaml": "services: {web: {image: nginx}, db: {image: nginx}}",
    }

    (error,) = project(files).read(full=True).loaded.report.sorted()

    assert (error.code, error.hint) == (
        "undefined-service",
        "services are: web, db, job; name the file of another service with 'file'",
    )


@pytest.mark.parametrize("reference", ["!reset base", "!reset {service: gone}", "!reset null"])
def test_a_reset_reference(reference: str, project: Project) -> None:
    """A service whose `extends` has the tag `!reset` extends none, as in Compose."""
    text = f"services:\n  base: {{image: busybox, user: '1'}}\n  web: {{image: nginx, extends: {reference}}}\n"

    reading = project(text).read(full=True)

    assert reading.messages == []
    assert reading.loaded.project.services["web"].user is None


@pytest.mark.parametrize("args", [[], ["--no-interpolate"]], ids=["substituted", "as written"])
def test_config_shows_the_merged_service(args: list[str], project: Project) -> None:
    """The resolved definition has what is inherited in each service, and neither `extends` nor `label_file`."""
    folder = project(
        {
            "compose.yaml": "services:\n  web:\n    extends: {file: common/base.yaml, service: base}\n    user: '7'\n",
            "common/base.yaml": "services: {base: {build: ./app, image: 'x:${TAG:-1}', user: '5'}}",
            "common/app/Dockerfile": "FROM scratch\n",
        }
    )

    outcome = run_here("config", "--full", "--format=json", *args, folder=folder.path).assert_success()

    web = json.loads(outcome.stdout)["services"]["web"]
    assert web["user"] == "7"
    assert web["image"] == ("x:${TAG:-1}" if args else "x:1")
    assert web["build"] == ("./app" if args else "./common/app")
    assert "extends" not in web


def test_config_shows_the_labels_of_files(project: Project) -> None:
    """The resolved definition has the labels of files among the service's own, and reads as the same project."""
    folder = project(
        {
            "compose.yaml": "services:\n  web:\n    image: nginx\n    label_file: a.labels\n    labels: [own=$$1]\n"
            "    deploy: {labels: {other: x}}\n",
            "a.labels": "one=1\n",
        }
    )

    outcome = run_here("config", "--full", "--format=json", folder=folder.path).assert_success()

    web = json.loads(outcome.stdout)["services"]["web"]
    assert web["labels"] == {"one": "1", "own": "$$1"}
    assert "label_file" not in web
    again = project({"compose.yaml": outcome.stdout}).read(full=True).loaded.project.services["web"]
    assert again.labels == {"one": "1", "own": "$1", "other": "x"}
