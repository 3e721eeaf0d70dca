"""``--local`` and ``PLATFORM_LOCAL``: the local cluster is meant, and what reads a file alone asks no cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Folder, Project, run

BUILT = "services: {web: {build: ., ports: ['80:80']}}"
NOT_RUNNING = "error: the local cluster is not running\n  hint: platform cluster start\n"

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: theirs
clusters: [{name: there, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {token: t}}]
contexts: [{name: theirs, context: {cluster: there, user: me, namespace: theirs}}]
"""


@pytest.fixture
def built(project: Project, tmp_path: Path) -> Folder:
    """A project, a kubeconfig of another cluster, and a local cluster with a registry at a port of its own."""
    (tmp_path / "cluster" / "cluster").mkdir(parents=True)
    (tmp_path / "cluster" / "cluster" / "ports.json").write_text(json.dumps({"registry": 5005}))
    (tmp_path / "config").write_text(KUBECONFIG)
    shell = {"COMPOSEPLAT_CLUSTER": str(tmp_path / "cluster"), "KUBECONFIG": str(tmp_path / "config")}
    return project({"compose.yaml": BUILT, "Dockerfile": "FROM scratch\n"}, **shell)


def seen(rendered: str) -> list[str]:
    """What of the objects depends on the cluster that is meant."""
    found = [line.strip(" -") for line in rendered.splitlines()]
    return list(dict.fromkeys(item for item in found if item.startswith(("namespace:", "image:", "host:"))))


LOCAL = ["namespace: default", "image: localhost:5005/{0}-web", "host: web-default.localhost"]


@pytest.mark.parametrize("command", [["render"], ["deploy", "--dry-run"]], ids=" ".join)
def test_objects_for_the_local_cluster(built: Folder, command: list[str]) -> None:
    """With --local, the domain and registry are the local cluster's, whether it runs or not."""
    expected = [line.format(built.path.name) for line in LOCAL]

    assert expected == seen(built.run(*command, "--local").assert_success().stdout)
    assert expected == seen(built.run(*command, PLATFORM_LOCAL="true").assert_success().stdout)


def test_without_it_the_kubeconfig_counts(built: Folder) -> None:
    """Nothing local is meant unless it is asked for."""
    assert seen(built.run("render").assert_success().stdout) == [
        "namespace: theirs",
        f"image: {built.path.name}-web",
    ]


def test_config_knows_it(built: Folder) -> None:
    """``config`` resolves images as a deploy to the local cluster would."""
    expected = f"localhost:5005/{built.path.name}-web\n"

    assert built.run("config", "--images", "--local").assert_success().stdout == expected
    assert built.run("config", "--images", PLATFORM_LOCAL="1").assert_success().stdout == expected


@pytest.mark.parametrize(
    "command",
    [["status"], ["logs"], ["exec", "web", "--", "ls"], ["preview"], ["destroy", "--yes"], ["variables", "list"]],
    ids=lambda args: args[0],
)
def test_the_variable_means_it_everywhere(built: Folder, command: list[str]) -> None:
    """Each command that asks a cluster asks the local one, and says that it does not run."""
    outcome = built.run(*command, PLATFORM_LOCAL="true")

    assert (outcome.status, outcome.stderr) == (4, NOT_RUNNING)


def test_another_cluster_that_is_named_comes_first(built: Folder) -> None:
    """--context and --kubeconfig name a cluster, and the variable only says which is meant where nothing does."""
    for args in (["--context", "theirs"], ["--kubeconfig", built.shell["KUBECONFIG"]]):
        outcome = built.run("status", *args, PLATFORM_LOCAL="true")
        assert outcome.status == 4
        assert "local cluster" not in outcome.stderr


def test_dashes_without_a_command(tmp_path: Path) -> None:
    """``exec SERVICE --`` names no command, which is reported before anything is read."""
    outcome = run("exec", "web", "--", folder=tmp_path)

    assert outcome.status == 2
    assert outcome.stderr.endswith("Error: Invalid value for --: names no command\n")
