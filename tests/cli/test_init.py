"""``platform init`` as a command: what one run of it leaves."""

from __future__ import annotations

import pytest

from composeplat.registry.image_config import ImageFacts
from tests.cli.test_config import shell_pipe
from tests.conftest import Project
from tests.in_process import run_here

NAME = "compose.platform.yaml"
PROXIED = """\
services:
  web:
    image: example/web
    labels: {caddy: a.example.com, caddy.reverse_proxy: "{{upstreams 8080}}"}
    environment: {ALLOWED_HOSTS: localhost}
"""
HOST = 'ALLOWED_HOSTS: "web-${PLATFORM_NAMESPACE}.${PLATFORM_DOMAIN}"'


@pytest.mark.parametrize("files", [(), ("-f", "compose.yaml")])
def test_an_entry_that_another_entry_makes_needed(files: tuple[str, ...], project: Project) -> None:
    """With its route, the service has a URL whose host it must accept: both are written at once."""
    folder = project(PROXIED).path
    shown = run_here("init", "--offline", "--dry-run", *files, folder=folder).assert_success()
    assert HOST in shown.stdout
    assert not (folder / NAME).exists()

    run_here("init", "--offline", "--yes", *files, folder=folder).assert_success()
    written = (folder / NAME).read_text()
    assert '"8080:8080"' in written
    assert HOST in written

    again = run_here("init", "--offline", "--yes", *files, folder=folder).assert_success()
    assert f"{NAME} needs no change" in again.stderr


def test_volumes_of_an_image_whose_job_becomes_a_server(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job has no data to keep; the server that an entry makes of it has, and gets its volume in the same run."""
    facts = ImageFacts(user="", volumes=("/data",), ports=(), entrypoint=(), command=())
    monkeypatch.setattr("composeplat.cli.gathering.read_images", lambda *_, **__: {"x": facts})
    folder = project(
        "services: {db: {image: x, restart: on-failure, expose: [80]}, job: {image: x, restart: 'no'}}"
    ).path
    run_here("init", "--yes", folder=folder).assert_success()
    written = (folder / NAME).read_text()

    assert "restart: unless-stopped" in written
    assert "- db-data:/data" in written
    assert "job:" not in written


def test_a_service_on_each_node_gets_no_volume(project: Project) -> None:
    """Its pods can't have one: an entry would be an error."""
    text = (
        "services:\n"
        "  agent: {image: a, volumes: [./logs:/logs], deploy: {mode: global}}\n"
        "  more: {image: a, volumes_from: [db], deploy: {mode: global}}\n"
        "  db: {image: a, volumes: [data:/data]}\n"
        "volumes: {data: }\n"
        "x-platform: {full: true}\n"
    )
    folder = project({"compose.yaml": text, "logs/a.log": ""}).path
    outcome = run_here("init", "--offline", "--yes", folder=folder).assert_success()

    assert "there is nothing to write" in outcome.stderr


def test_a_base_of_a_profile_that_is_off(project: Project) -> None:
    """A service without the profile does not build on the image of one that may be off."""
    text = (
        "services:\n"
        "  base: {build: ., image: team/base, profiles: [tools]}\n"
        "  web: {build: web}\n"
        "  tool: {build: web, profiles: [tools, more]}\n"
        "x-platform: {full: true}\n"
    )
    files = {"compose.yaml": text, "Dockerfile": "FROM scratch\n", "web/Dockerfile": "FROM team/base\n"}
    folder = project(files).path
    run_here("init", "--offline", "--yes", folder=folder).assert_success()
    written = (folder / NAME).read_text()

    assert "  tool:\n" in written
    assert "  web:\n" not in written


def test_an_env_file_that_a_shell_pipes(project: Project) -> None:
    """The definition is read several times, and the pipe has its content once."""
    folder = project("services: {web: {image: 'nginx:${TAG:?}', hostname: other, tty: true}}").path
    (folder / "tag.env").write_text("TAG=7\n")
    with shell_pipe("TAG=7\n") as tag:
        piped = run_here("init", "--offline", "--dry-run", "--env-file", tag, folder=folder)
    expected = run_here("init", "--offline", "--dry-run", "--env-file", "tag.env", folder=folder)

    assert "full: true" in expected.stdout
    assert (piped.stdout, piped.stderr) == (expected.stdout, expected.stderr)
