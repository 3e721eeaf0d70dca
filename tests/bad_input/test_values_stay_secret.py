"""What a variable holds never comes into a message: not from any layer, at any key, valid or not.

Messages quote what is in the file, which is ``${SECRET}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from composeplat.cli.console import show_report
from composeplat.compose.keys import SECTIONS
from composeplat.render.manifests import to_yaml
from tests.bad_input.test_wrong_types import PLACES, definition
from tests.conftest import Folder, Project, Reading
from tests.in_process import run_here

SECRET = "hunter2.s3ntinel"  # noqa: S105 -- a stand-in for one
NUMBER = "39157"
"""A value that is right where a number is wanted, and stands nowhere else."""

LAYERS = ("shell", "env file", "named env file", "platform")


def shapes() -> Iterator[Any]:
    """The variable as every kind of value, and inside one."""
    for text in ("${SECRET}", "a-${SECRET}-b", "${SECRET}:/a", "./${SECRET}:/a", "/a:${SECRET}", "${SECRET}=a"):
        yield text
        yield [text]
    yield from ({"a": "${SECRET}"}, [{"a": "${SECRET}"}], {"a": ["${SECRET}"]}, {"a": {"condition": "${SECRET}"}})
    yield from (["${SECRET}:80"], ["80:${SECRET}"], ["${SECRET}-${SECRET}"], ["CMD", "${SECRET}"], "${SECRET:?must}")
    yield from (
        {"a${SECRET}": "b"},
        "${SECRET:+${NEVER:?${SECRET}}}",
        "${SECRET",
        "${SECRET:-${",
        "${NEVER:-${SECRET}}",
    )


def printed_text(reading: Reading, capsys: pytest.CaptureFixture[str]) -> str:
    """Everything that the command could write of a reading."""
    for strict in (False, True):
        for as_json in (False, True):
            show_report(reading.loaded.report, strict=strict, verbose=True, as_json=as_json)
    return capsys.readouterr().err


def read_with(folder: Folder, layer: str, secret: str) -> Reading:
    """Read the folder's definition with the variable given by a layer."""
    more: dict[str, Any] = {}
    (folder.path / ".env").unlink(missing_ok=True)
    match layer:
        case "shell":
            more = {"shell": {"SECRET": secret}}
        case "platform":
            more = {"platform": {"SECRET": secret}}
        case "env file":
            folder.write({".env": f"SECRET='{secret}'\n"})
        case _:
            folder.write({"more.env": f"SECRET={secret}\n"})
            more = {"env_files": ("more.env",)}
    return folder.read(**more)


@pytest.mark.parametrize("section", SECTIONS)
def test_at_every_key(section: str, project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """No key repeats the value of a variable, whichever kind of value it takes."""
    folder = project({})
    for key in SECTIONS[section]:
        for shape in shapes():
            folder.write({"compose.yaml": to_yaml(definition(section, key, shape))})
            for secret in (SECRET, NUMBER):
                text = printed_text(read_with(folder, "shell", secret), capsys)
                assert secret not in text, (key, shape)


@pytest.mark.parametrize("layer", LAYERS)
def test_from_every_layer(layer: str, project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """No layer's values are repeated."""
    folder = project({})
    for section, key in PLACES:
        folder.write({"compose.yaml": to_yaml(definition(section, key, "${SECRET}"))})
        text = printed_text(read_with(folder, layer, SECRET), capsys)
        assert SECRET not in text, (section, key)


def test_the_variable_was_read(project: Project) -> None:
    """Each layer does give the value: otherwise the tests above would show nothing."""
    folder = project("services: {web: {image: nginx, labels: {a: '${SECRET}'}}}")
    for layer in LAYERS:
        assert read_with(folder, layer, SECRET).loaded.project.services["web"].labels == {"a": SECRET}


INVALID = """
name: ${SECRET}
x-secret: ${SECRET:?must be set}
services:
  web:
    image: ${SECRET} UPPER
    build: {context: "${SECRET}", dockerfile: a, dockerfile_inline: "${SECRET}", args: ["${SECRET}", "A=$$SECRET"]}
    command: "'${SECRET}"
    container_name: ${SECRET}
    cap_add: ["${SECRET}"]
    cpus: ${SECRET}
    depends_on: ["${SECRET}", web]
    deploy: {replicas: "${SECRET}", endpoint_mode: "${SECRET}", restart_policy: {condition: "${SECRET}"}}
    entrypoint: ["${SECRET}", {}]
    env_file: ["${SECRET}", {path: "./${SECRET}", format: "${SECRET}"}]
    environment: ["${SECRET}", "1${SECRET}=a", "A=${SECRET}"]
    expose: ["${SECRET}"]
    healthcheck: {test: ["${SECRET}"], interval: "${SECRET}", retries: "${SECRET}"}
    labels: {dev.platform.com/update: "${SECRET}", a b: "${SECRET}"}
    mem_limit: ${SECRET}
    ports: ["${SECRET}", "80:${SECRET}", {target: "${SECRET}", protocol: "${SECRET}"}]
    public: ${SECRET}
    restart: ${SECRET}
    scale: ${SECRET}
    stop_grace_period: ${SECRET}
    user: ${SECRET}
    volumes: ["${SECRET}:/a", "./${SECRET}:/b", "/c:${SECRET}", {type: "${SECRET}", source: "${SECRET}", target: a}]
    x-node-selector: {a: "${SECRET} "}
    ${SECRET}: ${SECRET}
  api:
    image: nginx
    depends_on: {"${SECRET}": {condition: "${SECRET}"}}
    volumes: ["${SECRET}:/a", "./${SECRET}:/b", "/${SECRET}:/c", "${SECRET}"]
    labels: ["dev.platform.com/update=${SECRET}", "${SECRET}"]
volumes:
  data: {driver_opts: {size: "${SECRET}", class: "${SECRET} "}, x-access-mode: "${SECRET}", labels: ["${SECRET}!=a"]}
endpoints:
- {path: "${SECRET}", service: "${SECRET}", port: "${SECRET}"}
- {path: "/${SECRET}", service: "${SECRET}", port: 80}
"""

UNREAD = """
include: ["${SECRET}", {path: ["${SECRET}"], project_directory: "${SECRET}", env_file: "${SECRET}"}]
services: {web: {image: nginx}}
"""

VALID = """
name: ${SECRET}
services:
  web:
    image: nginx:${SECRET}
    build: {context: "./${SECRET}", target: "${SECRET}", args: {A: "${SECRET}"}}
    command: ["${SECRET}"]
    container_name: ${SECRET}
    environment: {A: "${SECRET}", SECRET: }
    labels: {a: "${SECRET}"}
    ports: ["127.0.0.1:8080:80"]
    restart: on-failure
    user: ${SECRET}
  Db:
    image: postgres
    ports: ["5432:5432", {target: 80, name: "${SECRET}", app_protocol: "${SECRET}"}]
    environment: ["A=${SECRET}"]
    volumes: ["data:/data", {type: npipe, source: "${SECRET}", target: /a}]
    networks: {a: {aliases: ["${SECRET}"]}}
volumes: {data: {name: "${SECRET}", driver: "${SECRET}", driver_opts: {o: "${SECRET}", class: "${SECRET}"}}}
networks: {a: {name: "${SECRET}"}}
secrets: {a: {file: "${SECRET}"}}
"""


@pytest.mark.parametrize("option", ["-v", "--strict", "--json-diagnostics"])
@pytest.mark.parametrize("command", ["render", "config"])
@pytest.mark.parametrize(
    ("text", "status"), [(INVALID, 3), (UNREAD, 3), (VALID, 0)], ids=["invalid", "unread", "valid"]
)
def test_of_the_command(text: str, status: int, command: str, option: str, project: Project) -> None:
    """The command's messages, all of them at once, do not repeat the value."""
    folder = project({"compose.yaml": text, ".env": f"SECRET={SECRET}\n"})

    outcome = run_here(command, option, "--domain", "example.com", folder=folder.path)

    assert outcome.status == (3 if option == "--strict" else status)
    assert outcome.stderr != ""
    assert SECRET not in outcome.stderr


@pytest.mark.parametrize("option", ["-v", "--strict", "--json-diagnostics"])
def test_of_files_over_one_another(option: str, project: Project) -> None:
    """Merging makes paths and keys of texts: they do not hold the value either."""
    folder = project({"compose.yaml": INVALID, "compose.override.yaml": INVALID, ".env": f"SECRET={SECRET}\n"})

    outcome = run_here("render", option, folder=folder.path).assert_invalid()

    assert SECRET not in outcome.stderr


def test_of_an_env_file(project: Project) -> None:
    """Mistakes in an env file are reported by place and name, without the value."""
    env = f"A={SECRET}${{\nB='{SECRET}\n"
    more = f'C="{SECRET}" {SECRET}\nD={SECRET}${{A!}}\n{SECRET} {SECRET}\n= {SECRET}\nE="{SECRET}\n'
    folder = project(
        {"compose.yaml": "services: {web: {image: nginx, env_file: more.env}}", ".env": env, "more.env": more}
    )

    outcome = run_here("render", "-v", folder=folder.path).assert_invalid()

    assert "invalid-env-file" in outcome.stderr
    assert SECRET not in outcome.stderr


def test_of_an_environment_that_does_not_fit(project: Project) -> None:
    """A service whose variables are too large is reported by their size alone."""
    folder = project(
        {"compose.yaml": "services: {web: {image: nginx, env_file: a.env}}", "a.env": "A=" + SECRET * 65_000}
    )

    outcome = run_here("render", folder=folder.path).assert_invalid()

    assert SECRET not in outcome.stderr


def test_messages_do_name_the_variable(project: Project) -> None:
    """A message quotes what is in the file, so that the mistake can be found."""
    folder = project("services: {web: {image: nginx, scale: '${SECRET}'}}", SECRET=SECRET)

    outcome = folder.run("render", "--json-diagnostics").assert_invalid()

    expected = "services.web.scale must be a whole number from 0 to 10000, not '${SECRET}' (after substitution)"
    assert expected == json.loads(outcome.stderr)["message"]
