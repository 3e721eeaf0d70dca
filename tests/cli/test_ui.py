"""``platform ui``: what an exported page has of the definition, and the command lines of its actions."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from composeplat.cli.selection import Choice
from composeplat.cli.ui_actions import action_arguments
from composeplat.cli.ui_documents import changed_files, definition_document, read_stamp, with_errors
from composeplat.compose.load import load
from composeplat.compose.options import Request
from composeplat.plan import make_plan
from tests.cli.test_config import shell_pipe
from tests.conftest import Project
from tests.in_process import run_here

TOKEN = {"API_TOKEN": "xyzzy-secret-1"}
SHOP = """
services:
  web:
    image: example.com/${API_TOKEN}/nginx
    environment:
      API_TOKEN: ${API_TOKEN}
      MODE: ${MODE:-test}
      WRITTEN: xyzzy-secret-1
    depends_on: [db]
    ports: ["80"]
  db:
    image: postgres
    volumes: [data:/data]
volumes:
  data: {}
"""


class Data(HTMLParser):
    """The JSON data within an exported page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = ""
        self._is_data = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_data = tag == "script" and ("id", "data") in attrs

    def handle_endtag(self, _: str) -> None:
        self._is_data = False

    def handle_data(self, data: str) -> None:
        self.text += data if self._is_data else ""


def exported(folder: Path, **shell: str) -> Any:
    """Export the page of a folder without a cluster, and return its data."""
    done = run_here("ui", "--export", "page", folder=folder, **{"KUBECONFIG": "none", **shell})
    assert (done.status, done.stderr.splitlines()[-1]) == (0, "wrote page/index.html")
    return json.loads(Data((folder / "page" / "index.html").read_text()).text)


def test_definition(project: Project) -> None:
    """The page has the graph, the files, and the variables by name; confidential values are in none of them."""
    folder = project({"compose.yaml": SHOP}).path
    data = exported(folder, **TOKEN)
    definition = data["definition"]
    assert "xyzzy" not in json.dumps(data)
    (file,) = definition["files"]
    lines = file["text"].split("\n")
    assert (file["path"], len(lines)) == ("compose.yaml", len(SHOP.split("\n")))
    assert "WRITTEN: [secret]" in lines[7]
    assert {"name": "API_TOKEN", "source": "shell", "is_secret": True} in definition["variables"]
    assert {"name": "MODE", "source": "default", "is_secret": False} in definition["variables"]
    web = next(row for row in definition["services"] if row["service"] == "web")
    assert web["place"] == {"file": "compose.yaml", "line": 3, "column": 3}
    assert {"name": "API_TOKEN", "is_secret": True, "source": "compose.yaml:6"} in web["variables"]
    assert {node["key"] for node in definition["graph"]["nodes"]} >= {"service/web", "service/db", "volume/data"}
    assert all(node["x"] >= 0 and node["width"] > 0 for node in definition["graph"]["nodes"])


def test_without_a_cluster(project: Project) -> None:
    """What was not read is left out, and the page says why."""
    data = exported(project({"compose.yaml": SHOP}).path, **TOKEN)
    assert [part for part in ("status", "events", "history", "logs", "preview") if data[part] is not None] == []
    assert "no cluster was read" in data["page"]["notes"][0]


def test_without_the_plugin_of_a_cluster(project: Project) -> None:
    """A login that a program gives which this machine lacks, as in a pipeline, is no reason to write nothing."""
    folder = project({"compose.yaml": SHOP}).path
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/none", "interactiveMode": "Never"}
    (folder / "kubeconfig").write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "a", "user": "me"}}],
        "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "me", "user": {"exec": plugin}}],
    }))  # fmt: skip
    data = exported(folder, KUBECONFIG=str(folder / "kubeconfig"), **TOKEN)

    assert data["status"] is None
    assert "no cluster was read: the kubeconfig's credential plugin '/none' can't be run" in data["page"]["notes"][0]


def test_an_invalid_definition(project: Project) -> None:
    """Its errors are shown, and nothing is written."""
    folder = project({"compose.yaml": "services: {web: {image: 3, ports: [x]}}"}).path
    done = run_here("ui", "--export", "page", folder=folder, KUBECONFIG="none")
    assert done.status == 3
    assert "compose.yaml:1:" in done.stderr
    assert not (folder / "page").exists()


def test_lines_stay_where_a_secret_has_several(project: Project) -> None:
    """A confidential value of several lines is masked without moving the lines after it."""
    key = "      KEY: |\n        first-line-of-it\n        second-line-of-it\n"
    text = f"services:\n  web:\n    image: nginx\n    environment:\n{key}      OTHER: x\n"
    folder = project({"compose.yaml": text}).path
    definition = exported(folder)["definition"]
    lines = definition["files"][0]["text"].split("\n")
    assert "first-line" not in "".join(lines)
    assert lines[7] == "      OTHER: x"


def test_standard_input(project: Project) -> None:
    """The page reads the file again when it changes, which standard input can't be."""
    done = run_here("ui", "-f", "-", folder=project({}).path)
    assert done.status == 2
    assert "can't be standard input" in done.stderr


@pytest.mark.parametrize(
    ("args", "is_refused"),
    [((), True), (("--read-only",), False), (("--all",), False), (("--export", "page"), False)],
)
def test_an_env_file_that_a_shell_pipes(project: Project, args: tuple[str, ...], *, is_refused: bool) -> None:
    """The commands of the actions read it again, in processes that do not have the pipe."""
    with shell_pipe("TAG=7\n") as tag:
        done = run_here("ui", "--env-file", tag, *args, folder=project(SHOP).path, KUBECONFIG="none")

    assert (done.status == 2) == is_refused
    assert ("can't be a pipe without --read-only" in done.stderr) == is_refused


def test_without_the_extra(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install, before anything is read."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    done = run_here("ui", folder=project({}).path)
    assert done.status == 4
    assert "pip install 'composeplat[ui]'" in done.stderr


@pytest.mark.parametrize(
    ("command", "choice", "expected"),
    [
        pytest.param("sleep", Choice(), [], id="nothing"),
        pytest.param(
            "preview",
            Choice(file=("a.yml", "b.yml"), domain="example.com", full=True, namespace="team", strict=True),  # type: ignore[arg-type]
            [
                "--namespace",
                "team",
                "--full",
                "--domain",
                "example.com",
                "--file",
                "a.yml",
                "--file",
                "b.yml",
                "--strict",
            ],
            id="options",
        ),
        pytest.param("sleep", Choice(domain="example.com", name="shop"), ["--name", "shop"], id="those-it-has"),
        pytest.param("deploy", Choice(timeout=60.0), ["--timeout", "60.0"], id="a-number"),
    ],
)
def test_arguments_of_actions(command: str, choice: Choice, expected: list[str]) -> None:
    """A command gets the options of the page that it has, and writes JSON."""
    args = action_arguments(choice, command, ())
    index = args.index(command)
    assert args[0] == sys.executable
    assert sorted(args[index + 1 : -3]) == sorted(expected)
    assert args[-3:] == ["--json", "--progress", "json"]


def test_names_of_services_are_no_options() -> None:
    args = action_arguments(Choice(), "restart", ["--all", "web"])
    assert args[-3:] == ["--", "--all", "web"]


def test_a_stamp_differs_with_the_definition(project: Project) -> None:
    """A change of a file, and of a variable from elsewhere, is another definition; a comment is too."""
    folder = project({"compose.yaml": SHOP}).path

    def stamp(token: str) -> str:
        shell = {"API_TOKEN": token}
        loaded = load(replace(Request(folder=folder), shell=shell))
        return read_stamp(loaded, make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report))

    before = stamp("one")
    assert before == stamp("one")
    assert before != stamp("two")
    (folder / "compose.yaml").write_text(SHOP + "# a comment\n")
    assert before != stamp("one")


def test_changed_files(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is written, added or removed is a change."""
    folder = project({"compose.yaml": SHOP}).path
    monkeypatch.chdir(folder)
    loaded = load(Request(folder=folder))
    states = [changed_files(loaded)]
    (folder / ".env").write_text("API_TOKEN=x\n")
    states.append(changed_files(loaded))
    (folder / "compose.yaml").write_text(SHOP + "\n")
    states.append(changed_files(loaded))
    (folder / ".env").unlink()
    states.append(changed_files(loaded))
    assert len(set(states)) == 4


@pytest.mark.parametrize("name", ["production.env", "web.env"])
def test_changed_env_files(project: Project, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A change of an env file is one, of that of an option and of that of a service."""
    text = "services: {web: {image: 'nginx:${TAG}', env_file: web.env}}"
    folder = project({"compose.yaml": text, "production.env": "TAG=1\n", "web.env": "MODE=a\n"}).path
    monkeypatch.chdir(folder)
    loaded = load(Request(folder=folder, env_files=("production.env",)))
    before = changed_files(loaded)
    (folder / name).write_text("OTHER=longer\n")

    assert changed_files(loaded) != before


INVALID = {
    "a-port": "services: {web: {image: nginx, ports: [x]}}",
    "an-unknown-dependency": "services: {web: {image: nginx, depends_on: [none]}}",
    "a-cycle": "services: {a: {image: a, depends_on: [b]}, b: {image: b, depends_on: [a]}}",
    "no-image": "services: {web: {}}",
    "a-service-that-is-a-list": "services: {web: []}",
    "services-that-are-a-text": "services: text",
    "an-undeclared-volume": "services: {web: {image: nginx, volumes: ['data:/data']}}",
    "an-endpoint-of-no-service": "services: {web: {image: nginx}}\nendpoints: [{path: /, service: none, port: 80}]",
}


@pytest.mark.parametrize("text", INVALID.values(), ids=INVALID)
def test_an_invalid_definition_has_a_document(project: Project, text: str) -> None:
    """A file with errors is shown with them, as it is being edited."""
    loaded = load(Request(folder=project({"compose.yaml": text}).path))
    plan = make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report)
    document: Any = definition_document(loaded, plan, cluster="", strict=False)
    assert document["files"][0]["text"] == text
    assert "error" in [row["severity"] for row in document["diagnostics"]]
    json.dumps(document)


def test_a_file_that_is_no_yaml(project: Project) -> None:
    """The last document stays, with the errors of the new file and its text."""
    folder = project({"compose.yaml": SHOP}).path
    loaded = load(Request(folder=folder))
    plan = make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report)
    before: Any = definition_document(loaded, plan, cluster="", strict=False)
    (folder / "compose.yaml").write_text("services: [\n")
    after: Any = with_errors(before, load(Request(folder=folder)), strict=False)
    assert after["files"] == [{"path": "compose.yaml", "text": "services: [\n"}]
    assert after["diagnostics"][0]["line"] in (1, 2)
    assert after["services"] == before["services"]
    assert after["stamp"] != before["stamp"]


def test_an_env_file_with_an_error(project: Project) -> None:
    """The page has the message, and not the file, whose text is the values of variables."""
    folder = project({"compose.yaml": SHOP, ".env": "MODE=xyzzy\n"}).path
    loaded = load(Request(folder=folder, shell=TOKEN))
    plan = make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report)
    before: Any = definition_document(loaded, plan, cluster="", strict=False)
    (folder / ".env").write_text('MODE=xyzzy\n"KEY=plugh\n')
    after: Any = with_errors(before, load(Request(folder=folder, shell=TOKEN)), strict=False)

    assert [file["path"] for file in after["files"]] == ["compose.yaml"]
    assert [(row["file"], row["line"]) for row in after["diagnostics"]] == [(".env", 2)]
