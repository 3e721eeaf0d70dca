"""The example beside a file that a fresh clone lacks, and the hints about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from composeplat.compose.load.examples import example_hint, find_example
from tests.conftest import Project

TEXT = """\
services:
  web:
    image: "nginx:${TAG}"
    env_file: [web.env]
    environment: {A: "${TOKEN:?from the team}", B: $OTHER}
    volumes: ["./app.yml:/etc/app.yml", "./Caddyfile:/etc/caddy/Caddyfile"]
"""


def hints(project: Project, files: dict[str, str], **shell: str) -> dict[str, str]:
    """Return the hints of the errors and warnings by the ends of their messages."""
    found = project({"compose.yaml": TEXT, **files}, **shell).read().loaded.report.by_path()
    return {diagnostic.message.rpartition(" ")[2]: diagnostic.hint for diagnostic in found}


@pytest.mark.parametrize(
    ("name", "example"),
    [
        (".env", ".env.example"),
        (".env", ".env-sample"),
        (".env", "env.template"),
        (".env", "example.env"),
        (".env", ".example.env"),
        ("app.yml", "app.yml.dist"),
        ("app.yml", "app.example.yml"),
        ("Caddyfile", "Caddyfile.default"),
        (".env", "env"),
        (".env", ".env.production"),
    ],
)
def test_names(tmp_path: Path, name: str, example: str) -> None:
    """An example has the name of its file, with a word that says so."""
    (tmp_path / example).touch()
    is_known = example not in ("env", ".env.production")

    assert find_example(tmp_path / name) == (str(tmp_path / example) if is_known else "")
    assert example_hint(tmp_path / name) == (f"copy '{example}' to '{name}', and set its values" if is_known else "")


def test_a_name_that_leaves_no_room(tmp_path: Path) -> None:
    """A name as long as the file system allows has no example, and is no failure."""
    assert find_example(tmp_path / ("a" * 255)) == ""


def test_variables(project: Project) -> None:
    """An unset variable that the example of a missing `.env` has is set by a copy of that."""
    found = hints(project, {".env.example": "TAG=1\nTOKEN=\n"})
    copy = "copy '.env.example' to '.env', and set it there"

    assert [found["team"], found["used"]] == [copy, "set it, or write ${OTHER:-default}, or $$ for a dollar sign"]
    assert hints(project, {".env.example": "OTHER=1\nTAG=1"})["used"] == copy


@pytest.mark.parametrize("beside", [{}, {"docker/.env": "OTHER=1"}])
def test_an_env_file_that_is_not_read(project: Project, beside: dict[str, str]) -> None:
    """With `-f`, the `.env` of the current folder is not read: the hint names it, and the option that reads it."""
    text = "services: {web: {image: 'a:${TAG}-${NONE}'}}"
    folder = project({"docker/compose.yaml": text, ".env": "TAG=7", **beside})
    printed = folder.run("config", "-f", "docker/compose.yaml").stderr
    given = folder.run("config", "-f", "docker/compose.yaml", "--env-file", ".env")

    assert printed.count("hint: give --env-file .env, which sets it: with -f, the one beside the Compose file is") == 1
    assert printed.count("hint: set it, or write ${NONE:-default}") == 1
    assert "image: a:7-\n" in given.stdout


@pytest.mark.parametrize(
    ("files", "shell"),
    [
        pytest.param({".env": "TAG=1"}, {}, id="with an env file"),
        pytest.param({}, {"COMPOSE_DISABLE_ENV_FILE": "true"}, id="without env files"),
        pytest.param({"own.env": "TAG=1"}, {"COMPOSE_ENV_FILES": "own.env"}, id="with another env file"),
    ],
)
def test_no_example(project: Project, files: dict[str, str], shell: dict[str, str]) -> None:
    """A copy would not be read, or hide what is there."""
    found = hints(project, {".env.example": "TOKEN=1", **files}, **shell)

    assert found["team"] == "set TOKEN in the shell or in the file .env beside the definition"


def test_files(project: Project) -> None:
    """A missing env file and a missing mounted file are copies of their examples."""
    examples = {"web.env.sample": "", "app.yml.example": "", "Caddyfile.dist": ""}

    assert [hint for hint in hints(project, examples).values() if hint.startswith("copy")] == [
        "copy 'web.env.sample' to 'web.env', and set its values",
        "copy 'app.yml.example' to 'app.yml', and set its values",
        "copy 'Caddyfile.dist' to 'Caddyfile', and set its values",
    ]


@pytest.mark.parametrize(
    ("files", "hint"),
    [
        ({"pw.txt.example": ""}, "copy 'pw.txt.example' to 'pw.txt', and set its values"),
        ({"PW.txt": ""}, "write 'PW.txt', which is there: case matters on Linux"),
        ({}, "create the file"),
    ],
)
def test_secrets(project: Project, files: dict[str, str], hint: str) -> None:
    """So is the missing file of a secret; one that is mounted at the place of a secret is a file, too."""
    text = "services: {web: {image: a, secrets: [pw]}}\nsecrets: {pw: {file: pw.txt}}\nx-platform: {full: true}\n"
    (found,) = project({"compose.yaml": text, **files}).read().loaded.report.by_path()
    mounted = "services: {web: {image: a, volumes: ['./gone/pw.txt:/run/secrets/pw:ro']}}"
    (other,) = project({"compose.yaml": mounted}).read().loaded.report.by_path()

    assert found.hint == hint
    assert other.hint == "create the file: it is copied, read-only"
