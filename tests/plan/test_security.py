"""Pods for a namespace of the Pod Security level 'restricted', and who can't be in one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from composeplat.diagnostics import Severity
from composeplat.plan.security import check_image_users
from composeplat.registry.image_config import read_users
from tests.conftest import Project, lines
from tests.registry_server import Registry, serving

REFUSED = "which a namespace with pod security 'restricted' refuses"
UNKNOWN = "names no user, and that of its image is not known: its pods don't start if that is root [unknown-user]"


def messages_of(project: Project, text: str, users: Mapping[str, str] | None = None) -> list[str]:
    """The message about a definition where the users of images are known."""
    loaded = project(text).read(pod_security="restricted").loaded
    check_image_users(loaded.project, loaded.settings, loaded.origins, loaded.report, lambda _: users or {})
    return lines(loaded.report.at_least(Severity.WARNING))


def test_settings_of_a_restricted_namespace(project: Project) -> None:
    """No root, no way to become it, no capability but one, and a seccomp profile."""
    reading = project("services: {web: {image: x, user: '5:6', cap_add: [NET_BIND_SERVICE], cap_drop: [CHOWN]}}").read(
        pod_security="restricted"
    )

    assert reading.pod("Deployment", "web")["securityContext"] == {
        "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    assert reading.container("Deployment", "web")["securityContext"] == {
        "allowPrivilegeEscalation": False, "runAsUser": 5, "runAsGroup": 6,
        "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
    }  # fmt: skip


def test_nothing_of_it_unasked(project: Project) -> None:
    """Without the option, images that want root run as they do with Compose."""
    reading = project("services: {web: {image: x}}").read()

    assert "securityContext" not in reading.container("Deployment", "web")
    assert reading.pod("Deployment", "web")["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ("user: root", f"compose.yaml:1:34: error: services.web.user is root, {REFUSED} [pod-security-violation]"),
        ("user: '0:5'", f"compose.yaml:1:34: error: services.web.user is root, {REFUSED} [pod-security-violation]"),
        (
            "user: '5', cap_add: [SYS_ADMIN, NET_BIND_SERVICE]",
            (
                f"compose.yaml:1:48: error: services.web.cap_add adds SYS_ADMIN, {REFUSED}:"
                " it allows only NET_BIND_SERVICE [pod-security-violation]"
            ),
        ),
    ],
)
def test_forbidden_settings_are_reported_at_their_place(service: str, expected: str, project: Project) -> None:
    """Who can't be so is named, with the line, before anything changes."""
    assert messages_of(project, f"services: {{web: {{image: x, {service}}}}}") == [expected]


@pytest.mark.parametrize(
    ("users", "expected"),
    [
        ({"x": "1000"}, []),
        ({"x": "1000:5"}, []),
        ({"x": ""}, [f"compose.yaml:1:25: error: services.web.image runs as root, {REFUSED} [pod-security-violation]"]),
        (
            {"x": "root"},
            [f"compose.yaml:1:25: error: services.web.image runs as root, {REFUSED} [pod-security-violation]"],
        ),
        (
            {"x": "0:0"},
            [f"compose.yaml:1:25: error: services.web.image runs as root, {REFUSED} [pod-security-violation]"],
        ),
        (
            {"x": "node"},
            [
                (
                    "compose.yaml:1:25: error: services.web.image runs as 'node', and Kubernetes can't check"
                    " that a user name is not root [pod-security-violation]"
                )
            ],
        ),
        ({}, [f"compose.yaml:1:12: warning: services.web {UNKNOWN}"]),
    ],
)
def test_the_image_s_own_user(users: dict[str, str], expected: list[str], project: Project) -> None:
    """Where the service names none, the image's counts; an unknown one is warned of."""
    assert messages_of(project, "services: {web: {image: x}}", users) == expected


def test_an_image_that_is_built_is_not_known_yet(project: Project) -> None:
    """What has the name in a registry may be another one."""
    text = "services: {web: {image: x, build: .}}"

    assert messages_of(project, text, {"x": "5"}) == [f"compose.yaml:1:12: warning: services.web {UNKNOWN}"]


def test_users_are_read_from_registries(tmp_path: Path) -> None:
    """The user is the one that the image's configuration has; what is not there is left out."""
    with serving(Registry()) as registry:
        digest = registry.push("app")
        manifest = json.loads(registry.content[f"app/manifests/{digest}"])
        registry.content[f"app/blobs/{manifest['config']['digest']}"] = b'{"config": {"User": "1000"}}'
        registry.push("plain")
        names = [f"{registry.host}/{name}" for name in ("app", "plain", "gone")]

        assert read_users(names, {"HOME": str(tmp_path)}) == {names[0]: "1000", names[1]: ""}
