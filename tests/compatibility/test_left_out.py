"""Services that a cluster does without."""

from __future__ import annotations

import pytest

from tests.compatibility.test_check import check
from tests.compatibility.test_fixes import fix
from tests.conftest import Folder, Project

SOCKET = "/var/run/docker.sock:/var/run/docker.sock:ro"
TEXT = "services:\n  web: {{image: w, ports: ['80:80']}}\n  tool: {{{}}}\n{}"


def left_out(folder: Folder) -> list[str]:
    return [line.partition(":")[0].strip() for line in fix(folder) if line.endswith(": !reset null")]


@pytest.mark.parametrize(
    ("keys", "rest"),
    [
        pytest.param("image: containrrr/watchtower", "", id="a tool"),
        pytest.param(
            "image: 'registry.example.com:5000/portainer/portainer-ce:2'", "volumes: {d: }\n", id="a registry"
        ),
        pytest.param(f"image: 'amir20/dozzle:v8@sha256:{'0' * 64}', ports: ['8080:8080']", "", id="a page"),
        pytest.param("image: 'traefik:v3', command: --providers.docker=true, ports: ['443:443']", "", id="a proxy"),
        pytest.param("image: nginxproxy/nginx-proxy", "", id="nginx-proxy"),
        pytest.param("image: traefik, depends_on: [web]", "", id="a proxy that waits"),
    ],
)
def test_tools_for_docker(project: Project, keys: str, rest: str) -> None:
    """Without Docker's socket, they end at once or do nothing: check finds nothing after that."""
    folder = project({"compose.yaml": TEXT.format(f"{keys}, volumes: ['{SOCKET}', './certs:/certs']", rest)})

    assert left_out(folder) == ["tool"]
    folder.write({"compose.platform.yaml": "\n".join(fix(folder))})
    assert [f.diagnostic.code for f in check(folder).all_findings] == []


@pytest.mark.parametrize(
    ("keys", "rest"),
    [
        pytest.param(f"image: my/runner, volumes: ['{SOCKET}']", "", id="another image"),
        pytest.param(f"image: a/watchtower-notes, volumes: ['{SOCKET}']", "", id="another name"),
        pytest.param("image: containrrr/watchtower", "", id="no socket"),
        pytest.param(f"image: traefik, volumes: ['{SOCKET}', './dynamic:/etc/traefik']", "", id="routes of files"),
        pytest.param(f"image: traefik, command: --providers.file, volumes: ['{SOCKET}']", "", id="an option"),
        pytest.param(
            f"image: traefik, environment: {{TRAEFIK_PROVIDERS_FILE_DIRECTORY: /r}}, volumes: ['{SOCKET}']",
            "",
            id="a variable",
        ),
        pytest.param(f"image: traefik, volumes: ['{SOCKET}']", "  a: {image: a, depends_on: [tool]}\n", id="awaited"),
        pytest.param(
            f"image: traefik, volumes: ['{SOCKET}']", "  a: {image: a, network_mode: 'service:tool'}\n", id="a network"
        ),
        pytest.param(f"image: traefik, volumes: ['{SOCKET}']", "  a: {image: a, links: ['tool:t']}\n", id="a link"),
        pytest.param(
            f"image: traefik, ports: [80], volumes: ['{SOCKET}']",
            "endpoints: [{path: /, service: tool, port: 80}]\n",
            id="a route",
        ),
        pytest.param(
            "image: adminer, ports: [80], profiles: [debug]",
            "endpoints: {a: [{path: /, service: tool, port: 80}]}\n",
            id="a route to a service of a profile",
        ),
    ],
)
def test_others(project: Project, keys: str, rest: str) -> None:
    """They are kept, without the socket."""
    folder = project({"compose.yaml": TEXT.format(keys, rest), "dynamic/a.yaml": "a"})

    assert "tool" not in left_out(folder)


def test_tools_alone(project: Project) -> None:
    """A project of nothing else would have no service, also where it has others that Docker Compose does not start."""
    tool = f"a: {{image: dozzle, volumes: ['{SOCKET}']}}"

    assert left_out(project(f"services: {{{tool}}}")) == []
    assert left_out(project(f"services: {{{tool}, b: {{image: x, profiles: [debug]}}}}")) == ["b"]
