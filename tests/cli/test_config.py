"""``platform config``: the resolved definition, its views, and that it can be rendered again."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import yaml

from tests.conftest import Folder, Project
from tests.in_process import run_here

SHOP = {
    "compose.yaml": """\
services:
  Web:
    image: nginx:${TAG}
    ports: ['8080:80']
    depends_on: [db]
    environment: {URL: 'http://${HOST:-localhost}', PRICE: '5$$', WORD: $WORD}
  db:
    image: postgres
    volumes: ['data:/data', './init:/init']
    env_file: db.env
  app: {build: ./app}
volumes: {data: {}, unused: {}}
""",
    ".env": "TAG=1.27\n",
    "db.env": "PASSWORD='a$b'\n",
    "init/a.sql": "select 1;\n",
}


def shown(folder: Folder, *args: str, **shell: str) -> str:
    return run_here("config", *args, folder=folder.path, **shell).assert_success().stdout


def test_definition(project: Project) -> None:
    """The definition is printed with its files merged and its variables in."""
    outcome = project(SHOP).run("config", "--name", "shop", WORD="x").assert_success()

    assert yaml.safe_load(outcome.stdout) == {
        "name": "shop",
        "services": {
            "Web": {
                "image": "nginx:1.27",
                "ports": ["8080:80"],
                "depends_on": ["db"],
                "environment": {"URL": "http://localhost", "PRICE": "5$$", "WORD": "x"},
            },
            "db": {
                "image": "postgres",
                "volumes": ["data:/data", "./init:/init"],
                "environment": {"PASSWORD": "a$$b"},
            },
            "app": {"build": "./app"},
        },
        "volumes": {"data": {}, "unused": {}},
    }


def test_json(project: Project) -> None:
    """The same as JSON."""
    folder = project(SHOP)

    assert json.loads(shown(folder, "--format", "json")) == yaml.safe_load(shown(folder))


def test_rendering_the_resolved_definition(project: Project) -> None:
    """What ``config`` prints renders to the same bytes, without variables, env files or an override file."""
    folder = project({**SHOP, "compose.override.yaml": "services: {Web: {scale: 2, command: 'echo $$HOME'}}"})
    rendered = folder.run("render", "--domain", "example.com", WORD="it's a $ecret").assert_success().stdout
    resolved = folder.run("config", WORD="it's a $ecret").assert_success().stdout

    again = folder.run("render", "-f", "-", "--domain", "example.com", stdin=resolved.encode()).assert_success()

    assert rendered == again.stdout


def test_rendering_the_resolved_definition_as_json(project: Project) -> None:
    """So does its JSON."""
    folder = project(SHOP)
    rendered = folder.run("render").assert_success().stdout
    resolved = folder.run("config", "--format", "json").assert_success().stdout

    assert rendered == folder.run("render", "-f", "-", stdin=resolved.encode()).assert_success().stdout


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ("--services", ["db", "Web", "app"]),
        ("--images", ["postgres", "nginx:1.27", "registry.example.com/shop-app"]),
        ("--volumes", ["data"]),
    ],
)
def test_views(project: Project, view: str, expected: list[str]) -> None:
    """A view is one line a thing, or a JSON list."""
    args = (view, "--name", "shop", "--registry", "registry.example.com")
    folder = project(SHOP)

    assert expected == shown(folder, *args).splitlines()
    assert expected == json.loads(shown(folder, *args, "--format", "json"))


PARTS = """
services:
  web: {image: nginx, depends_on: [app], networks: [front]}
  app:
    image: app
    depends_on: {db: {condition: service_started}, debug: {condition: service_started, required: false}}
    networks: [back]
  db: {image: postgres, volumes: ["data:/data"], networks: [back]}
  other: {image: busybox, volumes: ["more:/more"], ports: ["80"], depends_on: [web]}
  debug: {image: busybox, profiles: [debug]}
endpoints: [{path: /, service: other, port: 80}]
volumes: {data: , more: }
networks: {front: , back: }
"""


def test_some_services(project: Project) -> None:
    """With names, the output has these services and what they depend on, and nothing that only others use."""
    folder = project(PARTS)
    found = yaml.safe_load(shown(folder, "--full", "app"))

    assert list(found["services"]) == ["app", "db"]
    assert (list(found["volumes"]), list(found["networks"]), found["endpoints"]) == (["data"], ["back"], [])
    assert shown(folder, "--full", "--services", "app").splitlines() == ["db", "app"]
    assert "no service 'nope'" in folder.run("config", "nope").stderr
    assert "--no-interpolate" in folder.run("config", "--no-interpolate", "app").stderr


def test_a_dependency_whose_profile_is_off(project: Project) -> None:
    """A dependency that the output lacks is not named in it: Docker Compose refuses such a file."""
    folder = project(PARTS)

    assert list(yaml.safe_load(shown(folder, "--full"))["services"]["app"]["depends_on"]) == ["db"]
    dependencies = yaml.safe_load(shown(folder, "--full", "--profile", "debug"))["services"]["app"]["depends_on"]
    assert list(dependencies) == ["db", "debug"]


VARIABLES = "services: {web: {image: 'a${S}${F}${P}${D:-d}${U}${E}'}}"


def test_variables(project: Project) -> None:
    """Each variable is shown with its value and the layer that gave it."""
    folder = project({"compose.yaml": VARIABLES.replace("${P}", "${PLATFORM_NAME}"), ".env": "F=file\nS=file\n"})

    assert shown(folder, "--variables", S="shell", E="").splitlines() == [
        "NAME           VALUE  FROM",
        "S              shell  shell",
        "F              file   .env",
        "PLATFORM_NAME  demo   platform",
        "D              d      default",
        "U                     unset",
        "E                     shell",
    ]


def test_variables_of_named_env_files(project: Project) -> None:
    """A variable of an env file that was named is shown with that file's name, and not as one of .env."""
    files = {"compose.yaml": "services: {web: {image: 'a${A}${B}'}}", ".env": "A=own\n", "e1": "A=1\nB=1\n"}
    folder = project({**files, "more/e2": "B=${A}2\n"})

    assert shown(folder, "--variables", "--env-file", "e1", "--env-file", "more/e2").splitlines() == [
        "NAME  VALUE  FROM",
        "A     1      e1",
        "B     12     more/e2",
    ]


@pytest.mark.parametrize("given", [{}, {"PWD": "/"}, {"PWD": "/no/such/folder"}, {"PWD": "."}])
def test_the_current_folder(project: Project, given: dict[str, str]) -> None:
    """PWD is the current folder, also where it is not set, or that of `make` before `-C`."""
    folder = project({"compose.yaml": "services: {web: {image: a, command: '${PWD}'}}"})

    assert shown(folder, "--variables", **given).splitlines()[1:] == [f"PWD   {folder.path}  shell"]


def test_the_current_folder_by_a_link(project: Project) -> None:
    """A shell that came by a link has that for its PWD, which stays."""
    folder = project({"compose.yaml": "services: {web: {image: a, command: '${PWD}'}}"})
    link = folder.path.parent / "link"
    link.symlink_to(folder.path)

    assert shown(folder, "--variables", PWD=str(link)).splitlines()[1:] == [f"PWD   {link}  shell"]


def test_variables_as_json(project: Project) -> None:
    """In JSON, a variable that is not set has no value."""
    folder = project({"compose.yaml": "services: {web: {image: 'a${S}${U}${D:-d}'}}"})

    assert json.loads(shown(folder, "--variables", "--format", "json", S="shell")) == [
        {"name": "S", "value": "shell", "from": "shell", "required": False},
        {"name": "U", "value": None, "from": "unset", "required": False},
        {"name": "D", "value": "d", "from": "default", "required": False},
    ]


def test_variables_of_an_included_file(project: Project) -> None:
    """A variable that an included file uses first is shown as it is there, from that file's own env file."""
    folder = project(
        {
            "compose.yaml": "include: [{path: inner/more.yaml, env_file: named.env}, inner/compose.yaml]",
            "inner/more.yaml": "services: {web: {image: 'web:${TAG}', command: '$BOTH'}}",
            "inner/compose.yaml": "services: {db: {image: 'db:${OWN}', command: '$BOTH'}}",
            "named.env": "TAG=named\nBOTH=first\n",
            "inner/.env": "OWN=own\nBOTH=second\n",
        }
    )

    assert shown(folder, "--variables").splitlines() == [
        "NAME  VALUE  FROM",
        "TAG   named  include",
        "BOTH  first  include",
        "OWN   own    include",
    ]


def test_a_value_that_steers_a_terminal(project: Project) -> None:
    """A value's control characters and line ends don't break the table."""
    folder = project("services: {web: {image: nginx, command: '$X'}}")

    assert shown(folder, "--variables", X="a\x1b[2J\nb").splitlines()[1] == "X     a\\x1b[2J\\nb  shell"


def test_no_interpolate(project: Project) -> None:
    """Variables can be left as they are; then nothing is reported about them."""
    outcome = run_here("config", "--no-interpolate", folder=project(SHOP).path).assert_success()

    assert yaml.safe_load(outcome.stdout) == yaml.safe_load(SHOP["compose.yaml"])
    assert outcome.stderr == ""


def test_no_interpolate_and_a_view(project: Project) -> None:
    """Names of services need no variables; the other lists do, and are refused."""
    folder = project("services: {web: {image: 'nginx:${TAG:?}'}, db: {image: postgres}}")

    assert shown(folder, "--no-interpolate", "--services") == "web\ndb\n"
    assert shown(folder, "--no-interpolate", "--services", "--format", "json") == '[\n  "web",\n  "db"\n]\n'
    for option in ("--images", "--volumes", "--variables"):
        outcome = folder.run("config", "--no-interpolate", option)
        assert (outcome.status, outcome.stdout) == (2, "")
        assert f"Invalid value for {option}: can't be given with --no-interpolate" in outcome.stderr


@pytest.mark.parametrize("option", ["--quiet", "-q"])
def test_quiet(project: Project, option: str) -> None:
    """Quietly, the definition is checked and only messages are shown."""
    outcome = run_here("config", option, folder=project(SHOP).path).assert_success()

    assert outcome.stdout == ""
    assert "the variable 'WORD' is not set" in outcome.stderr


def test_no_domain_is_needed(project: Project) -> None:
    """A definition with endpoints is sound before anyone has chosen a domain."""
    text = "services: {web: {image: nginx, ports: ['8080:80']}}\nendpoints: {a: [{path: /, service: web, port: 80}]}"

    outcome = run_here("config", folder=project(text).path).assert_success()

    assert outcome.stderr == ""


def test_invalid(project: Project) -> None:
    """An invalid definition ends with 3 and nothing printed, in every view."""
    folder = project("services: {web: {image: nginx, scale: two}}")

    for args in ((), ("--services",), ("--variables",), ("--format", "json"), ("-q",)):
        run_here("config", *args, folder=folder.path).assert_invalid()


def test_strict(project: Project) -> None:
    """With --strict a warning is an error."""
    folder = project("services: {web: {image: nginx, hostname: x}}")

    run_here("config", "-q", folder=folder.path).assert_success()
    outcome = run_here("config", "-q", "--strict", folder=folder.path).assert_invalid()

    assert outcome.stderr.splitlines()[-1] == "1 error"


def test_json_diagnostics_and_verbose(project: Project) -> None:
    """Messages are available as JSON, notes too."""
    folder = project("services: {web: {image: nginx, uts: x}}")

    outcome = run_here("config", "-q", "-v", "--json-diagnostics", folder=folder.path).assert_success()

    assert [json.loads(line)["code"] for line in outcome.stderr.splitlines()] == ["ignored-key"]


def test_files_names_and_env_files(project: Project) -> None:
    """The options that choose what is read are those of ``render``."""
    folder = project({"a.yaml": "services: {web: {image: '$A ${PLATFORM_NAMESPACE}'}}", "a.env": "A=x\n"})

    outcome = run_here(
        "config", "-f", "a.yaml", "--env-file", "a.env", "-n", "team", "--no-interpolate", folder=folder.path
    )

    assert yaml.safe_load(outcome.assert_success().stdout)["services"]["web"]["image"] == "$A ${PLATFORM_NAMESPACE}"
    folder.write({"a.yaml": "services: {web: {image: nginx, command: '$A ${PLATFORM_NAMESPACE} $PLATFORM_DOMAIN'}}"})
    args = ("-f", "a.yaml", "--env-file", "a.env", "--namespace", "team", "--domain", "example.com")
    assert yaml.safe_load(shown(folder, *args))["services"]["web"]["command"] == "x team example.com"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--format", "xml"), "Error: Invalid value for --format: must be yaml or json"),
        (
            ("--services", "--images"),
            "Error: Invalid value: give only one of --services, --images, --volumes and --variables",
        ),
    ],
)
def test_usage(project: Project, args: tuple[str, ...], expected: str) -> None:
    """What can't be chosen together, or at all, is a mistake of use."""
    outcome = run_here("config", *args, folder=project(SHOP).path)

    assert (outcome.status, outcome.stdout, outcome.stderr.splitlines()[-1]) == (2, "", expected)


@pytest.mark.parametrize(("args", "image"), [((), "demo-app"), (("--local",), "localhost:5000/demo-app")])
def test_for_which_cluster(project: Project, args: tuple[str, ...], image: str) -> None:
    """What is built is named for the registry of the local cluster where that is meant, and only there."""
    assert shown(project({"compose.yaml": "services: {app: {build: .}}"}), "--images", *args) == f"{image}\n"


@contextmanager
def shell_pipe(content: str) -> Iterator[str]:
    """Give the path of a pipe as a shell does for ``<(command)``."""
    receiving, sending = os.pipe()
    os.write(sending, content.encode())
    os.close(sending)
    yield f"/dev/fd/{receiving}"
    os.close(receiving)


def test_an_env_file_that_a_shell_pipes(project: Project) -> None:
    """An env file can be the output of a command, which can be read once; its messages name it as the line does."""
    folder = project("services: {a: {image: 'nginx:${TAG}', environment: {B: '${B}'}}}")
    with shell_pipe("TAG=7\n") as tag, shell_pipe("B=${TAG}8\n") as other:
        text = shown(folder, "--env-file", tag, "--env-file", other)
    with shell_pipe("TAG='7\n") as broken:
        outcome = run_here("config", "--env-file", broken, folder=folder.path)

    assert yaml.safe_load(text)["services"]["a"] == {"image": "nginx:7", "environment": {"B": "78"}}
    assert outcome.status == 3
    assert outcome.stderr.startswith(f"{broken}:1:1: error: the value of 'TAG' begins with a quote")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        pytest.param("pipe", "is not an ordinary file", id="a-pipe-with-a-name"),
        pytest.param("/dev/null", "is a file of the system", id="a-device"),
        pytest.param("/dev/fd/0", "is a file of the system", id="no-pipe"),
        pytest.param("/dev/fd/987", "is a file of the system", id="nothing"),
    ],
)
def test_env_files_that_are_no_pipe_of_a_shell(project: Project, path: str, reason: str) -> None:
    """Nothing else that is no file is read: a pipe with a name may never end."""
    folder = project("services: {a: {image: nginx}}")
    os.mkfifo(folder.path / "pipe")

    assert reason in run_here("config", "--env-file", path, folder=folder.path).stderr


def test_a_pipe_of_a_shell_that_never_ends(project: Project) -> None:
    """No more is read of a pipe than an env file may have."""
    folder = project("services: {a: {image: nginx}}")
    with subprocess.Popen(("yes", "A=1"), stdout=subprocess.PIPE) as endless:
        assert endless.stdout
        path = f"/dev/fd/{endless.stdout.fileno()}"
        outcome = run_here("config", "--env-file", path, folder=folder.path)
        endless.kill()

    assert f"'{path}' is larger than 1 MiB" in outcome.stderr
