"""URLs of this machine, by which browsers reach published ports in Docker alone."""

from __future__ import annotations

import pytest

from tests.compatibility.test_check import check
from tests.compatibility.test_fixes import fix
from tests.conftest import Project

API = "services:\n  api: {{image: a, ports: ['8000:8000', '5432:5432', '127.0.0.1:9100:9100']}}\n"
TEXT = API + "  web: {{image: w, ports: ['3000:80'], {}}}\n"


def found(project: Project, keys: str, **more: str) -> list[tuple[str, str]]:
    folder = project({"compose.yaml": TEXT.format(keys), "Dockerfile": "FROM a\n", **more})
    findings = (f.diagnostic for f in check(folder).all_findings if f.diagnostic.code == "local-url")
    return [(d.message.partition(" by a URL")[0], d.hint) for d in findings]


def url(endpoint: str, scheme: str = "https") -> str:
    return f"{scheme}://{endpoint}-${{PLATFORM_NAMESPACE}}.${{PLATFORM_DOMAIN}}"


LISTED = '["http://localhost:3000","http://localhost:8000","http://localhost:1"]'


@pytest.mark.parametrize(
    ("keys", "place", "written"),
    [
        pytest.param("environment: {U: 'http://localhost:8000/v1'}", "environment.U", url("api"), id="a map"),
        pytest.param("environment: ['U=ws://127.0.0.1:8000']", "environment.U", url("api", "wss"), id="a list"),
        pytest.param("environment: {U: '${V-http://localhost:8000}'}", "environment.U", url("api"), id="a default"),
        pytest.param("environment: {U: 'http://localhost:3000'}", "environment.U", url("web"), id="its own"),
        pytest.param("build: {args: {U: 'http://localhost:8000'}}", "build.args.U", url("api"), id="an argument"),
        pytest.param("build: {args: ['U=http://localhost:8000']}", "build.args", url("api"), id="arguments"),
        pytest.param("command: serve --api http://localhost:8000", "command", url("api"), id="a command"),
        pytest.param("entrypoint: [serve, 'u=http://localhost:8000']", "entrypoint", url("api"), id="an entrypoint"),
        pytest.param(f"environment: {{U: '{LISTED}'}}", "environment.U", f"{url('web')}, {url('api')}", id="several"),
    ],
)
def test_local_url(project: Project, keys: str, place: str, written: str) -> None:
    """It leads to a service that has another URL in a cluster, which the hint has."""
    ((message, hint),) = found(project, keys)

    assert message.startswith(f"services.web.{place} leads browsers to '")
    assert hint == f"write {written}, in compose.platform.yaml"


@pytest.mark.parametrize(("scheme", "service"), [("http", "plain"), ("https", "secure"), ("ws", "plain")])
def test_without_a_port(project: Project, scheme: str, service: str) -> None:
    """A URL without a port leads to the usual one of its scheme."""
    text = "{plain: {image: p, ports: ['80:8000']}, secure: {image: s, ports: ['443:8443']}, web: {image: w, %s}}"
    folder = project(f"services: {text}" % f"environment: {{U: '{scheme}://localhost/v1'}}")
    (entry,) = (line.strip() for line in fix(folder) if "${PLATFORM_DOMAIN}" in line)

    assert entry == f'U: "{url(service, "wss" if scheme == "ws" else "https")}/v1"'


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param("environment: {U: 'http://localhost:80/health http://localhost'}", id="its own port"),
        pytest.param("environment: {U: 'http://localhost:8001 http://localhost.example.com:8000'}", id="others"),
        pytest.param("environment: {U: 'http://localhost:5432 http://localhost:9100'}", id="ports that are not public"),
        pytest.param("command: curl http://localhost:80/health --public", id="its own port in a command"),
        pytest.param("environment: {U: 'redis://localhost:8000 localhost:8000'}", id="no page"),
        pytest.param("network_mode: host, environment: {U: 'http://localhost:8000'}", id="the network of this machine"),
    ],
)
def test_other_urls(project: Project, keys: str) -> None:
    """A service may ask itself, and what has no URL in a cluster has none to write."""
    assert found(project, keys) == []


FOR_BROWSERS = """
NEXTAUTH_URL APP_URL SITE_URLS GF_SERVER_ROOT_URL NEXT_PUBLIC_API KC_EXTERNAL_ADDRESS CORS_ALLOWED ALLOWED_ORIGINS
csrf_trusted AUTH_REDIRECT_URI OAUTH_CALLBACK BASEURL
"""
OWN = "services: {{web: {{image: w, ports: ['9090:9090'], {}}}}}\n"
OTHERS = "U HEALTH_URL INTERNAL_API_URL EUREKA_CLIENT_SERVICEURL_DEFAULTZONE APPS_URL"


@pytest.mark.parametrize("name", FOR_BROWSERS.split())
def test_own_port_of_a_variable_for_browsers(project: Project, name: str) -> None:
    """Host and container port are often the same: the name of the variable says for whom the URL is."""
    keys = f"ports: ['8000:8000'], environment: {{{name}: 'http://localhost:8000'}}"
    folder = project(f"services: {{web: {{image: w, {keys}}}}}\n")
    (entry,) = (line.strip() for line in fix(folder) if "http" in line)

    assert entry == f'{name}: "{url("web")}"'


@pytest.mark.parametrize(
    ("keys", "written"),
    [
        pytest.param(
            "command: '--web.external-url=http://localhost:9090/p'", f"--web.external-url={url('web')}/p", id="="
        ),
        pytest.param("command: '--public-url http://localhost:9090'", f"--public-url {url('web')}", id="a blank"),
        pytest.param(
            "command: [--base-url, 'http://localhost:9090', -v]",
            f'["--base-url", "{url("web")}", "-v"]',
            id="two items",
        ),
        pytest.param(
            """entrypoint: "sh -c 'exec x --root-url \\"http://localhost:9090\\"'\"""",
            f"""sh -c 'exec x --root-url \\"{url("web")}\\"'""",
            id="a script",
        ),
    ],
)
def test_own_port_of_an_option_for_browsers(project: Project, keys: str, written: str) -> None:
    """The whole command is written again, as Compose replaces it."""
    folder = project({"compose.yaml": OWN.format(keys)})
    lines = fix(folder)

    assert lines[-1].partition(": ")[2].strip('"') == written
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert "local-url" not in {finding.diagnostic.code for finding in check(folder).all_findings}


@pytest.mark.parametrize("name", OTHERS.split())
def test_own_port_of_another_variable(project: Project, name: str) -> None:
    keys = f"ports: ['8000:8000'], environment: {{{name}: 'http://localhost:8000'}}"
    folder = project(f"services: {{web: {{image: w, {keys}}}}}\n")

    assert fix(folder) == []


def test_the_url_of_the_hint(project: Project) -> None:
    """Nothing is left where it is written, and the service gets it."""
    text = TEXT.format("environment: {U: 'http://localhost:8000'}")
    over = f"services: {{web: {{environment: {{U: '{url('api')}'}}}}}}"
    folder = project({"compose.yaml": text, "compose.platform.yaml": over})

    assert "local-url" not in folder.run("check", "--domain", "example.com", "--namespace", "team").stdout
    assert (
        "U: https://api-team.example.com\n"
        in folder.run("config", "--domain", "example.com", "--namespace", "team").stdout
    )


def test_an_endpoint_of_the_file(project: Project) -> None:
    """A path of the route is part of the URL."""
    routes = "endpoints: {all: [{path: /api, service: api, port: 8000}]}"
    folder = project(TEXT.format("environment: {U: 'http://localhost:8000'}") + routes)
    (hint,) = (f.diagnostic.hint for f in check(folder).all_findings if f.diagnostic.code == "local-url")

    assert hint == f"write {url('all')}/api, in compose.platform.yaml"


@pytest.mark.parametrize(
    ("keys", "entries"),
    [
        pytest.param(
            "environment: {U: 'http://localhost:8000/v1'}", ["environment:", f'U: "{url("api")}/v1"'], id="a variable"
        ),
        pytest.param(
            "environment: ['U=ws://localhost:8000,http://localhost:3000,http://localhost:1']",
            ["environment:", f'U: "{url("api", "wss")},{url("web")},http://localhost:1"'],
            id="several",
        ),
        pytest.param(
            "environment: {U: '${V:-http://localhost:8000}'}",
            ["environment:", f'U: "${{V:-{url("api")}}}"'],
            id="a default",
        ),
        pytest.param(
            "build: {args: {U: 'http://localhost:8000'}}", ["build:", "args:", f'U: "{url("api")}"'], id="an argument"
        ),
    ],
)
def test_entries(project: Project, keys: str, entries: list[str]) -> None:
    """The URL is written for every namespace and domain; with it, nothing is left."""
    folder = project({"compose.yaml": TEXT.format(keys), "Dockerfile": "FROM a\n"})
    lines = fix(folder)

    assert [line.strip() for line in lines] == ["services:", "web:", *entries]
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert "local-url" not in {finding.diagnostic.code for finding in check(folder).all_findings}


@pytest.mark.parametrize(
    ("keys", "more"),
    [
        pytest.param("environment: {U: $V}", {"_env": "V=http://localhost:8000\n"}, id="a value from elsewhere"),
        pytest.param("env_file: v.env", {"v__env": "U=http://localhost:8000/k3y\n"}, id="an env file with more"),
    ],
)
def test_no_entry(project: Project, keys: str, more: dict[str, str]) -> None:
    """A value that the file does not have is not written anywhere."""
    files = {name.replace("__", ".").replace("_env", ".env"): text for name, text in more.items()}
    folder = project({"compose.yaml": TEXT.format(keys), **files})

    assert "local-url" in {finding.diagnostic.code for finding in check(folder).all_findings}
    assert fix(folder) == []


@pytest.mark.parametrize("value", ["http://localhost:8000", "http://localhost:8000/, http://localhost:3000"])
def test_entry_for_an_env_file(project: Project, value: str) -> None:
    """A value that is no more than URLs is written: nothing in it is secret."""
    folder = project({"compose.yaml": TEXT.format("env_file: v.env"), "v.env": f"U={value}\n"})
    lines = fix(folder)

    after = value.replace("http://localhost:8000", url("api")).replace("http://localhost:3000", url("web"))
    assert [line.strip() for line in lines] == ["services:", "web:", "environment:", f'U: "{after}"']
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert "local-url" not in {finding.diagnostic.code for finding in check(folder).all_findings}


def test_no_entry_for_a_path(project: Project) -> None:
    """A route of a path of its own does not lead to all that the port of this machine led to."""
    routes = "endpoints: {all: [{path: /api, service: api, port: 8000}]}"
    folder = project(TEXT.format("environment: {U: 'http://localhost:8000'}") + routes)

    assert fix(folder) == []
