"""Keys in Compose files of other projects, which Docker Compose takes: they work, or the hint has a fix."""

from __future__ import annotations

import pytest

from tests.conftest import Project
from tests.test_fixes import messages_and_hints, service

ALONE = "runs the first text after 'CMD-SHELL' alone, as Docker does: the others are only arguments of it"


def test_a_shell_has_further_arguments(project: Project) -> None:
    """Docker runs a shell with all texts of the list, of which the first is the command."""
    folder = project(service("healthcheck: {test: [CMD-SHELL, pg_isready, -U, x]}"))
    check = folder.read().loaded.project.services["web"].health_check

    assert check is not None
    assert check.command == ("/bin/sh", "-c", "pg_isready", "-U", "x")
    assert [ALONE in message for message in folder.read().messages] == [True]


def test_an_extended_service_without_an_image(project: Project) -> None:
    """Without full mode the image is missing; the hint names the key that may have it."""
    texts = messages_and_hints(project, "services: {base: {image: x}, web: {extends: {service: base}}}")

    assert texts[0][1] == "full mode (--full) honors 'extends', which may have it; without full mode, set one of them"


@pytest.mark.parametrize("key", ["restart: '$UNSET'", "restart: ''", "deploy: {restart_policy: {condition: ''}}"])
def test_no_restart_policy(project: Project, key: str) -> None:
    """An empty policy is Compose's default."""
    reading = project(service(key)).read()

    assert reading.loaded.project.services["web"].restart == "always"
    assert set(reading.codes) <= {"unset-variable"}


FULL = "full mode (--full) honors"
GATEWAY = "write an address in the place of host-gateway, or use a service of the cluster; " + FULL + " addresses"
NAME = "write the name of the service wherever this one is used; " + FULL + " names that DNS allows"


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("container_name: my_web", NAME),
        ("container_name: other", f"{FULL} it"),
        ("extra_hosts: ['h:host-gateway', 'g:10.0.0.1']", GATEWAY),
        ("extra_hosts: {h: [host-gateway]}", GATEWAY),
        ("extra_hosts: {h: 10.0.0.1}", f"{FULL} it"),
    ],
)
def test_what_full_mode_honors(project: Project, key: str, hint: str) -> None:
    """The hint says which values full mode honors, where this is none of them."""
    assert [hint for _, hint in messages_and_hints(project, service(key))] == [hint]


def test_a_name_in_capitals(project: Project) -> None:
    """DNS has no case, so nothing is lost."""
    assert project("services: {web: {image: x, container_name: WEB}}").read().messages == []


@pytest.mark.parametrize("path", ["/etc/localtime", "/etc/timezone"])
def test_the_clock_of_this_machine(project: Project, path: str) -> None:
    """A variable sets the time zone."""
    ((_, hint),) = messages_and_hints(project, service(f"volumes: ['{path}:{path}:ro']"))

    assert hint == "leave it out, and set the time zone by a variable: environment: {TZ: Europe/Berlin}"
