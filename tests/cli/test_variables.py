"""`platform variables` and what other commands make of variables, before a cluster and with one that fails."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.objects import Answer, Server, no_server, refusal
from tests.conftest import VARIABLES, Outcome, Project, split_log_path
from tests.in_process import run_here
from tests.terminal import Terminal

WEB = "services: {web: {image: 'nginx:${TAG:?which one}'}}"


def kubeconfig(path: Path, port: int) -> str:
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "namespace": "team"}}],
    }  # fmt: skip
    path.write_text(json.dumps(config))
    return str(path)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


def stored(**values: str) -> Answer:
    data = {name: base64.b64encode(text.encode()).decode() for name, text in values.items()}
    return Answer(json.dumps({"metadata": {}, "data": data}).encode())


def run(args: str, folder: Path, port: int, data: Path, **shell: str) -> Outcome:
    config = kubeconfig(data / "config", port)
    return run_here(
        *args.split(), folder=folder, KUBECONFIG=config, COMPOSEPLAT_DATA=str(data), HOME=str(data), **shell
    )


@pytest.mark.parametrize(
    ("args", "shell", "namespace"),
    [
        pytest.param("", {}, "team", id="context"),
        pytest.param("", {"PLATFORM_NAMESPACE": "shell"}, "shell", id="variable"),
        pytest.param("--namespace here", {"PLATFORM_NAMESPACE": "shell"}, "here", id="option"),
    ],
)
def test_which_namespace(
    server: Server, project: Project, tmp_path: Path, args: str, shell: dict[str, str], namespace: str
) -> None:
    """It is the one that a deploy here would take; no definition is needed."""
    run(f"variables list {args}", project({}).path, server.port, tmp_path, **shell)
    assert server.paths == [f"/api/v1/namespaces/{namespace}/secrets/platform-variables"]


def test_the_namespace_of_an_env_file(server: Server, project: Project, tmp_path: Path) -> None:
    """The `.env` beside the definition counts, from a folder below it too."""
    folder = project({"compose.yaml": WEB, ".env": "PLATFORM_NAMESPACE=file", "below/x": ""}).path
    run("variables list", folder / "below", server.port, tmp_path)
    assert server.paths == ["/api/v1/namespaces/file/secrets/platform-variables"]


def test_a_text_without_a_name(project: Project, tmp_path: Path, server: Server) -> None:
    """A namespace that could not be is refused, and no cluster asked."""
    ran = run("variables list --namespace a/b", project({}).path, server.port, tmp_path)
    assert (ran.status, server.paths) == (2, [])
    assert ran.stderr == (
        "error: --namespace (or PLATFORM_NAMESPACE) must be a name of at most 63 lowercase letters, digits and '-',"
        " with no '-' at either end\n"
    )


def test_variables_that_choose_a_namespace_are_not_stored(server: Server, project: Project, tmp_path: Path) -> None:
    """A Secret that someone has made by hand can't lead elsewhere, nor can what is no variable's name."""
    server.answers = {
        "/api/v1/namespaces/team/secrets/platform-variables": stored(
            PLATFORM_NAMESPACE="other", COMPOSE_FILE="other.yaml", COMPOSE_PROJECT_NAME="other", **{"a-b": "x"}
        )
    }
    text = "services: {web: {image: nginx}}"
    ran = run("status --json", project({"compose.yaml": text}).path, server.port, tmp_path)
    assert '"namespace": "team"' in ran.stdout
    assert "other" not in ran.stdout + ran.stderr


def test_a_definition_that_is_wrong_whatever_the_namespace_has(project: Project, tmp_path: Path) -> None:
    """A mistake is reported, though no cluster answers; what may hang on variables is not."""
    with no_server() as access:
        wrong = run("preview", project("services: {web: {}}").path, access.port, tmp_path)
        unknown = run("preview", project(WEB).path, access.port, tmp_path)
    assert wrong.status == 3
    assert unknown.status == 4
    expected = f"error: the API server at {access.address} can't be reached: connection refused\n"
    assert unknown.stderr.startswith(expected)


def test_variables_that_can_not_be_had(server: Server, project: Project, tmp_path: Path) -> None:
    """A cluster that fails ends the command: what is deployed without them would be something else."""
    server.otherwise = refusal(500, "etcd is ill")
    ran = run("preview", project("services: {web: {image: nginx}}").path, server.port, tmp_path)
    hint = "  hint: check that the cluster runs, and that --context is right\n"
    assert (ran.status, ran.stderr) == (4, f"error: etcd is ill\n{hint}")


def test_a_stored_value_that_is_no_text(server: Server, project: Project, tmp_path: Path) -> None:
    """One that somebody added by hand is listed, with what is wrong with it, and can be removed."""
    secret = {"metadata": {"resourceVersion": "7"}, "data": {"BAD": "gA==", "GOOD": "Zm9v"}}
    server.otherwise = Answer(json.dumps(secret).encode())
    folder = project({}).path

    listed = run("variables list", folder, server.port, tmp_path)
    assert listed.stdout == "NAME  VALUE\nBAD   ********\nGOOD  ********\n"
    assert listed.stderr == "BAD is not UTF-8 text, so nothing uses it; to remove it: platform variables unset BAD\n"

    removed = run("variables unset BAD", folder, server.port, tmp_path)
    assert (removed.status, removed.stderr) == (0, "removed BAD from namespace team\n")


def test_standard_input_that_is_no_text(server: Server, project: Project, tmp_path: Path) -> None:
    """A variable is text; what is none is refused before anything is kept."""
    config = kubeconfig(tmp_path / "config", server.port)
    ran = project({}).run("variables", "set", "A", KUBECONFIG=config, stdin=b"\xff")
    assert (ran.status, ran.stderr) == (1, "error: the value of A is not UTF-8 text\n")
    assert server.asked == []


def test_an_argument_that_is_no_text(server: Server, project: Project, tmp_path: Path) -> None:
    """A value on the command line is refused alike."""
    ran = run("variables set A=\udcff", project({}).path, server.port, tmp_path)
    assert (ran.status, ran.stderr) == (1, "error: the value of A is not UTF-8 text\n")
    assert server.asked == []


@pytest.mark.parametrize("name", ["LEVEL", "API_TOKEN"])
def test_ctrl_d_at_the_value(server: Server, project: Project, tmp_path: Path, name: str) -> None:
    """Ctrl-D, with or without a hidden value, refuses with a message; the variable stays as it is."""
    terminal = Terminal(
        [sys.executable, "-c", "from composeplat.cli.app import main; main()", "variables", "set", name],
        folder=project({}).path,
        env={**VARIABLES, "KUBECONFIG": kubeconfig(tmp_path / "config", server.port), "NO_COLOR": "1"},
    )
    # The space comes when getpass has thrown away what was typed before.
    terminal.until(f"Value of {name}: ")
    terminal.end_input()

    stderr, _ = split_log_path(terminal.rest())
    assert stderr.splitlines()[1:] == [f"error: no value was given: {name} was not changed"]
    assert terminal.status() == 1
    assert server.asked == []


def test_a_change_leaves_a_log(server: Server, project: Project, tmp_path: Path) -> None:
    """As that of every command that changes something, it has the requests and no value; a list leaves none."""
    folder = project({}).path
    run("variables list", folder, server.port, tmp_path)
    assert not (tmp_path / "logs").exists()

    server.otherwise = Answer(b'{"metadata": {"resourceVersion": "7"}, "data": {"MODE": "aHVudGVyMg=="}}')
    run("variables set LEVEL=hunter2", folder, server.port, tmp_path).assert_success()
    (log,) = (tmp_path / "logs").iterdir()
    assert "-variables-set-" in log.name
    assert "GET /api/v1/namespaces/team/secrets/platform-variables: 200" in log.read_text()
    assert "hunter2" not in log.read_text()


@pytest.mark.parametrize("command", ["set A=1", "unset A", "list"])
def test_no_cluster(project: Project, tmp_path: Path, command: str) -> None:
    """The error has the hint that other commands have, and names its log."""
    with no_server() as access:
        ran = run(f"variables {command}", project({}).path, access.port, tmp_path)

    hint = "  hint: check that the cluster runs, and that --context is right\n"
    expected = f"error: the API server at {access.address} can't be reached: connection refused\n{hint}"
    assert (ran.status, ran.stderr, Path(ran.log).exists()) == (4, expected, True)
