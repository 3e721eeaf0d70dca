"""Variables with the host names for which a program answers."""

from __future__ import annotations

import pytest

from tests.compatibility.test_check import check
from tests.compatibility.test_fixes import fix
from tests.conftest import Folder, Project

TEXT = "services:\n  web: {{image: w, ports: ['8000:8000'], environment: {{{}}}{}}}\n"
HOST = "web-${PLATFORM_NAMESPACE}.${PLATFORM_DOMAIN}"


def found(folder: Folder) -> list[tuple[str, str]]:
    findings = (f.diagnostic for f in check(folder, domain="example.com", namespace="team").all_findings)
    return [(".".join(map(str, d.path[1:])), d.hint) for d in findings if d.code == "local-host"]


def entries(folder: Folder) -> list[str]:
    """Return the entries of init, after which nothing is found any more."""
    lines = fix(folder)
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert found(folder) == []
    return [line.strip() for line in lines if not line.endswith(":")]


@pytest.mark.parametrize(
    ("variable", "written"),
    [
        pytest.param("ALLOWED_HOSTS: 'localhost 127.0.0.1 [::1]'", f"localhost {HOST} 127.0.0.1 [::1]", id="spaces"),
        pytest.param("DJANGO_ALLOWED_HOSTS: 'a, localhost'", f"a, localhost, {HOST}", id="commas"),
        pytest.param("NEXTCLOUD_TRUSTED_DOMAINS: localhost;a", f"localhost;{HOST};a", id="semicolons"),
        pytest.param("ALLOWED_HOSTS: '${H:-localhost,b}'", f"${{H:-localhost,{HOST},b}}", id="a default"),
        pytest.param("""ALLOWED_HOSTS: '["localhost"]'""", rf"[\"localhost\",\"{HOST}\"]", id="JSON"),
        pytest.param("TRUSTED_HOSTS: '^(localhost|a.b)$$'", f"^(localhost|{HOST}|a.b)$$", id="a pattern"),
        pytest.param("allowed_host: localhost", HOST, id="one name"),
        pytest.param("ALLOWED_HOSTS: localhost:8000", f"{HOST}:8000", id="a port"),
        pytest.param("PHX_HOST: localhost", HOST, id="the host of Phoenix"),
        pytest.param("DOMAIN: '${DOMAIN:-localhost}'", f"${{DOMAIN:-{HOST}}}", id="a domain"),
        pytest.param("GF_SERVER_DOMAIN: 127.0.0.1", HOST, id="an address"),
    ],
)
def test_hosts_of_this_machine(project: Project, variable: str, written: str) -> None:
    """They stay where they are listed, as health checks in the container need them."""
    folder = project({"compose.yaml": TEXT.format(variable, "")})
    name = variable.partition(":")[0]
    ((path, hint),) = found(folder)

    assert path == f"web.environment.{name}"
    assert hint.endswith(f" {HOST}, in compose.platform.yaml")
    assert entries(folder) == [f'{name}: "{written}"']


@pytest.mark.parametrize(
    "variable",
    [
        "ALLOWED_HOSTS: '*'",
        "ALLOWED_HOSTS: localhost *",
        "ALLOWED_HOSTS: localhost .example.com",
        "ALLOWED_HOSTS: localhost *.example.com",
        "ALLOWED_HOSTS: 'localhost,web-team.example.com'",
        r"TRUSTED_HOSTS: '^(localhost|web-team\.example\.com)$$'",
        "ALLOWED_HOSTS: example.org",
        "ALLOWED_HOSTS: my-localhost localhost.example.com",
        "DOMAIN: example.com",
        "HOST: localhost",
        "DB_HOST: localhost",
        "DISALLOWED_HOSTS: localhost",
        "ALLOWED_HOSTS_FILE: localhost",
    ],
)
def test_others(project: Project, variable: str) -> None:
    """Names that the variable accepts already, and variables of other kinds."""
    assert found(project(TEXT.format(variable, ""))) == []


def test_a_proxy(project: Project) -> None:
    """A program behind the only URL is asked for its host; a worker is not, whose page has the same variable."""
    proxied = "services:\n  proxy: {image: nginx, ports: ['80:80']}\n"
    proxied += "  web: {image: w, environment: {ALLOWED_HOSTS: localhost}}\n"
    host = HOST.replace("web", "proxy")

    assert found(project(proxied)) == [("web.environment.ALLOWED_HOSTS", f"add {host}, in compose.platform.yaml")]
    worker = (
        TEXT.format("ALLOWED_HOSTS: localhost", "") + "  worker: {image: w, environment: {ALLOWED_HOSTS: localhost}}\n"
    )
    assert [path for path, _ in found(project(worker))] == ["web.environment.ALLOWED_HOSTS"]
    assert found(project(proxied + "  other: {image: w, ports: ['81:80']}\n")) == []
    assert found(project("services: {web: {image: w, environment: {ALLOWED_HOSTS: localhost}}}")) == []


def test_several_hosts(project: Project) -> None:
    """All of them are listed; of a variable with a single name, none is chosen."""
    routes = "endpoints: {a: [{path: /, service: web, port: 8000}]}"
    listed = project({"compose.yaml": TEXT.format("ALLOWED_HOSTS: 'localhost,b'", "") + routes})
    other = HOST.replace("web", "a")

    assert sorted(entries(listed)[0].partition(": ")[2].strip('"').split(",")) == sorted(
        ["localhost", HOST, other, "b"]
    )
    single = project({"compose.yaml": TEXT.format("DOMAIN: localhost", "") + routes})
    assert len(found(single)) == 1
    assert fix(single) == []


def test_a_port_for_tls(project: Project) -> None:
    """Browsers reach the other port, which has the host of the program."""
    folder = project({"compose.yaml": TEXT.format("DOMAIN: localhost", "").replace("']", "', '443:443']")})

    assert entries(folder) == [f'DOMAIN: "{HOST.replace("web", "web-8000")}"']


@pytest.mark.parametrize(
    ("variable", "more", "files"),
    [
        pytest.param(
            "ALLOWED_HOSTS: localhost", ", healthcheck: {test: curl localhost}", {}, id="needed, no separator"
        ),
        pytest.param("ALLOWED_HOSTS: $H", "", {".env": "H=localhost,b\n"}, id="a value from elsewhere"),
        pytest.param(
            "A: b", ", env_file: v.env", {"v.env": "ALLOWED_HOSTS=localhost,k3y\n"}, id="an env file with more"
        ),
    ],
)
def test_no_entry(project: Project, variable: str, more: str, files: dict[str, str]) -> None:
    folder = project({"compose.yaml": TEXT.format(variable, more), **files})

    assert len(found(folder)) == 1
    assert fix(folder) == []


def test_entry_for_an_env_file(project: Project) -> None:
    text = TEXT.format("A: b", ", env_file: v.env")
    folder = project({"compose.yaml": text, "v.env": "ALLOWED_HOSTS=localhost,127.0.0.1,[::1]\n"})

    assert entries(folder) == [f'ALLOWED_HOSTS: "localhost,{HOST},127.0.0.1,[::1]"']


@pytest.mark.parametrize(
    ("keys", "place", "variable"),
    [
        pytest.param("environment: {RAILS_ENV: development}", "RAILS_ENV", "RAILS_DEVELOPMENT_HOSTS", id="Rails"),
        pytest.param("environment: [RAILS_ENV=development]", "RAILS_ENV", "RAILS_DEVELOPMENT_HOSTS", id="a list"),
        pytest.param("command: npx vite --host", "command", "__VITE_ADDITIONAL_SERVER_ALLOWED_HOSTS", id="Vite"),
        pytest.param(
            "command: [sh, -c, 'npm ci && vite']", "command", "__VITE_ADDITIONAL_SERVER_ALLOWED_HOSTS", id="a shell"
        ),
    ],
)
def test_servers_for_development(project: Project, keys: str, place: str, variable: str) -> None:
    """They answer for this machine alone, until a variable has another host."""
    folder = project({"compose.yaml": f"services: {{web: {{image: w, ports: ['80:80'], {keys}}}}}"})
    ((path, hint),) = found(folder)

    assert path.endswith(place)
    assert hint == f"set {variable}: {HOST}, in compose.platform.yaml"
    assert entries(folder) == [f'{variable}: "{HOST}"']


@pytest.mark.parametrize(
    "keys",
    [
        "ports: ['80:80'], environment: {RAILS_ENV: production}",
        "ports: ['80:80'], environment: {RAILS_ENV: development, RAILS_DEVELOPMENT_HOSTS: example.com}",
        "environment: {RAILS_ENV: development}",
        "ports: ['80:80'], command: vite build",
        "ports: ['80:80'], command: vitest",
    ],
)
def test_other_servers(project: Project, keys: str) -> None:
    assert found(project(f"services: {{web: {{image: w, {keys}}}}}")) == []
