"""Without a configured cluster, errors of the file are reported first, since they can be fixed without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Project, run

NOWHERE = "/nowhere/config"


@pytest.mark.parametrize("command", ["deploy", "preview", "status"])
def test_no_file(tmp_path: Path, command: str) -> None:
    """A folder without a definition is reported, and where to look."""
    outcome = run(command, folder=tmp_path, KUBECONFIG=NOWHERE)

    assert outcome.status == 3
    assert outcome.stderr.startswith("error: no Compose file here or in a folder above")


def test_a_file_with_errors(project: Project) -> None:
    """The errors of a definition are shown, and nothing of a cluster."""
    folder = project("services:\n  web: {image: x, scale: no}\n").path
    outcome = run("deploy", folder=folder, KUBECONFIG=NOWHERE)

    assert outcome.status == 3
    assert "compose.yaml:2:26: error: services.web.scale" in outcome.stderr
    assert "cluster" not in outcome.stderr


@pytest.mark.parametrize(("command", "status"), [("deploy", 3), ("preview", 3), ("status", 4)])
def test_a_build_without_a_dockerfile(project: Project, command: str, status: int) -> None:
    """What a build lacks on this machine is shown too, where the command would build."""
    folder = project("services:\n  web: {build: .}\n").path
    outcome = run(command, folder=folder, KUBECONFIG=NOWHERE)

    assert outcome.status == status
    assert ("compose.yaml:2:16: error: services.web.build names a folder whose" in outcome.stderr) == (status == 3)
    assert ("cluster" in outcome.stderr) == (status == 4)


@pytest.mark.parametrize("args", [("deploy",), ("deploy", "--strict"), ("preview",), ("status",), ("destroy",)])
def test_endpoints_whose_domain_the_cluster_may_have(project: Project, args: tuple[str, ...]) -> None:
    """With a cluster, such as that of --local, there may be a domain, so that the cluster is what is missing."""
    text = "services:\n  web: {image: x, ports: ['80:80']}\nendpoints: [{path: /, service: web, port: 80}]\n"
    outcome = run(*args, folder=project(text).path, KUBECONFIG=NOWHERE)

    assert outcome.status == 4
    assert outcome.stderr.startswith("error: no cluster is configured")


@pytest.mark.parametrize("args", [("deploy",), ("preview",), ("build",), ("deploy", "--local")])
def test_a_service_that_the_file_does_not_have(project: Project, args: tuple[str, ...]) -> None:
    """A wrong name is reported before a cluster is looked for, and before one is started."""
    folder = project("services:\n  web: {image: x}\n").path
    outcome = run(*args, "wep", folder=folder, KUBECONFIG=NOWHERE)

    assert outcome.status != 0
    assert outcome.stderr.startswith("error: there is no service 'wep'\n  hint: did you mean 'web'?")
    assert "cluster" not in outcome.stderr


def test_a_command_without_a_service(project: Project) -> None:
    """The first word after ``--`` is no name of a service."""
    folder = project("services:\n  web: {image: x, volumes: ['.:/app']}\n").path
    outcome = run("up", "--", "npm", "run", "dev", folder=folder, KUBECONFIG=NOWHERE)

    assert outcome.status == 4
    assert outcome.stderr.startswith("error: no cluster is configured")


def test_a_service_that_needs_a_variable_of_the_namespace(project: Project) -> None:
    """Whether it is there is known once the cluster has given the variable."""
    folder = project("services:\n  web: {image: '${TAG:?}'}\n").path
    outcome = run("deploy", "web", folder=folder, KUBECONFIG=NOWHERE)

    assert outcome.status == 4
    assert outcome.stderr.startswith("error: no cluster is configured")


def test_a_sound_file(project: Project) -> None:
    """With nothing wrong in the file, the cluster is what is missing."""
    outcome = run("deploy", folder=project("services:\n  web: {image: x}\n").path, KUBECONFIG=NOWHERE)

    assert outcome.status == 4
    assert outcome.stderr == (
        "error: no cluster is configured: '/nowhere/config' names none\n"
        "  hint: give --local for a cluster on this machine (Linux, as root), or point KUBECONFIG to one of yours\n"
    )
