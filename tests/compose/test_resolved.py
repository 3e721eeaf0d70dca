"""The resolved definition: written back, it is the same project."""

from __future__ import annotations

from typing import Any

import pytest

from composeplat.compose.resolved import resolved_definition, variable_rows
from composeplat.render.manifests import render_yaml, to_yaml
from tests.conftest import Project


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("image: 'nginx:${TAG}'", {"image": "nginx:1.27"}, id="variables-in"),
        pytest.param("image: nginx, scale: 2", {"image": "nginx", "scale": 2}, id="numbers-stay"),
        pytest.param(
            "image: nginx, cpus: $TAG", {"image": "nginx", "cpus": 1.27}, id="substituted-numbers-are-numbers"
        ),
        pytest.param("image: nginx, cpus: '$TAG'", {"image": "nginx", "cpus": "1.27"}, id="substituted-texts-stay"),
        pytest.param("image: nginx, x-on: $ON", {"image": "nginx", "x-on": True}, id="substituted-booleans"),
        pytest.param("image: nginx, user: $NOTHING", {"image": "nginx", "user": ""}, id="nothing-put-in-is-a-text"),
        pytest.param("image: nginx, x-own: {a: b}", {"image": "nginx", "x-own": {"a": "b"}}, id="extensions-stay"),
        pytest.param("image: nginx, command: 'echo $$HOME'", {"image": "nginx", "command": "echo $$HOME"}, id="dollar"),
        pytest.param(
            "image: nginx, environment: [A=1, 'B=$TAG', NONE, TAG]",
            {"image": "nginx", "environment": {"A": "1", "B": "1.27", "TAG": "1.27"}},
            id="environment-as-a-mapping",
        ),
        pytest.param("build: .", {"build": "."}, id="build"),
        pytest.param("build: ./a/../app", {"build": "./app"}, id="build-folder"),
        pytest.param(
            "build: {context: app, args: [A=1, TAG, NONE]}",
            {"build": {"context": "./app", "args": {"A": "1", "TAG": "1.27"}}},
            id="build-arguments",
        ),
        pytest.param(
            "build: 'https://example.com/$$app.git'", {"build": "https://example.com/$$app.git"}, id="build-address"
        ),
        pytest.param(
            "build: ., volumes: ['./src:/src:ro', 'data:/data', /cache]",
            {"build": ".", "volumes": ["./src:/src:ro", "data:/data", "/cache"]},
            id="volumes",
        ),
    ],
)
def test_service(project: Project, text: str, expected: dict[str, Any]) -> None:
    """A service is written with its variables in and its paths relative to the project's folder."""
    folder = project(f"services: {{web: {{{text}}}}}\nvolumes: {{data: {{}}}}", TAG="1.27", ON="true", NOTHING="")
    reading = folder.read()

    assert reading.messages == []
    assert expected == resolved_definition(reading.loaded)["services"]["web"]


def test_modes(project: Project) -> None:
    """The mode of a file is octal text, and that of a volume in memory a number: Docker Compose refuses others."""
    text = """
services:
  web:
    build: {context: ., secrets: [{source: a, mode: 0o400}]}
    configs: [{source: a, mode: 0440}, {source: b, mode: 288}, {source: c, mode: 0o440}, {source: d, mode: odd}]
    secrets: [{source: a, mode: '440'}]
    volumes: [{type: tmpfs, target: /a, tmpfs: {mode: 01777}}]
"""
    web = resolved_definition(project(text).read().loaded)["services"]["web"]

    assert [item["mode"] for item in web["configs"]] == ["0440", "0440", "0440", "odd"]
    assert [web["secrets"][0]["mode"], web["build"]["secrets"][0]["mode"]] == ["0440", "0400"]
    assert web["volumes"][0]["tmpfs"] == {"mode": 0o1777}


def test_env_files_go_into_the_environment(project: Project) -> None:
    """What env files give is in ``environment``, with its dollar signs doubled."""
    folder = project(
        {
            "compose.yaml": "services: {web: {image: nginx, env_file: a.env, environment: {B: own}}}",
            "a.env": "A='$X'\nB=file\n",
        }
    )

    assert resolved_definition(folder.read().loaded)["services"]["web"] == {
        "image": "nginx",
        "environment": {"A": "$$X", "B": "own"},
    }


def test_variables_of_hooks(project: Project) -> None:
    """The variables of a hook are its own alone."""
    hook = "{command: a, environment: {A: '1'}}"
    web, db = f"{{image: nginx, post_start: [{hook}]}}", f"{{image: pg, pre_stop: [{hook}], environment: []}}"
    text = f"services: {{web: {web}, db: {db}}}"

    written = resolved_definition(project(text).read(full=True).loaded)["services"]

    assert written["web"] == {"image": "nginx", "post_start": [{"command": "a", "environment": {"A": "1"}}]}
    assert written["db"]["environment"] == {}


def test_top_level(project: Project) -> None:
    """The environment's name comes first; what is obsolete or carried out goes."""
    folder = project(
        {
            "compose.yaml": "version: '3'\ninclude: [a.yaml]\nservices: {web: {image: nginx}}\nx-own: 1\n",
            "a.yaml": "volumes: {data: {}}",
        }
    )

    resolved = resolved_definition(folder.read(name="shop").loaded)

    assert next(iter(resolved.items())) == ("name", "shop")
    assert resolved == {
        "name": "shop",
        "volumes": {"data": {}},
        "services": {"web": {"image": "nginx"}},
        "x-own": 1,
    }


def test_jobs(project: Project) -> None:
    """A job of full mode is resolved as a service is; by default it is left as it is, as it has no effect."""
    job = "{image: busybox, env_file: a.env, triggers: {manual: true}}"
    folder = project({"compose.yaml": f"services: {{web: {{image: nginx}}}}\njobs: {{backup: {job}}}", "a.env": "A=1"})

    read = {full: resolved_definition(folder.read(full=full).loaded)["jobs"]["backup"] for full in (True, False)}

    assert read[True] == {"image": "busybox", "triggers": {"manual": True}, "environment": {"A": "1"}}
    assert read[False] == {"image": "busybox", "triggers": {"manual": True}, "env_file": "a.env"}


VOLUMES = """\
services:
  web:
    image: nginx
    volumes:
      - {type: image, source: "example.com/x:1", target: /img}
      - ./a:/a:ro
      - {type: cluster, target: /c}
      - {type: bind, source: a, target: /b}
      - data:/data
volumes: {data: {}}
"""


@pytest.mark.parametrize("full", [True, False])
def test_each_volume_keeps_its_path(project: Project, *, full: bool) -> None:
    """A volume that the model leaves out is no volume of the output, and moves no path to its neighbour."""
    folder = project({"compose.yaml": VOLUMES, "a/x": "x"})

    found = resolved_definition(folder.read(full=full).loaded)["services"]["web"]["volumes"]

    image = {"type": "image", "source": "example.com/x:1", "target": "/img"}
    others = ["./a:/a:ro", {"type": "bind", "source": "./a", "target": "/b"}, "data:/data"]
    assert found == ([image, *others] if full else others)


INCLUDED = """\
services:
  web:
    image: nginx
    build:
      context: .
      cache_from: ["type=local,src=./old$$", user/app:cache]
      ssh: [default, "keys=./a,./b"]
      cache_to: ["type=local,mode=max,dest=new"]
    secrets: [pw]
    configs: [c]
    develop: {watch: [{action: rebuild, path: src}]}
secrets: {pw: {file: pw.txt}}
configs: {c: {file: ./c.txt}}
"""


def test_paths_of_an_included_file(project: Project) -> None:
    """Paths of an included file are relative to the project's folder, and mean the same files when read again."""
    folder = project({"compose.yaml": "include: [sub/compose.yaml]", "sub/compose.yaml": INCLUDED})
    folder.write({"sub/pw.txt": "x", "sub/c.txt": "x", "sub/Dockerfile": "FROM scratch\n", "sub/src/a": "a"})

    first = folder.read(full=True)
    found = resolved_definition(first.loaded)
    again = folder.write({"again.yaml": to_yaml(found)}).read("again.yaml", full=True)

    web = found["services"]["web"]
    assert web["build"] == {
        "context": "./sub",
        "cache_from": ["type=local,src=./sub/old$$", "user/app:cache"],
        "ssh": ["default", "keys=./sub/a,./sub/b"],
        "cache_to": ["type=local,mode=max,dest=./sub/new"],
    }
    assert web["develop"] == {"watch": [{"action": "rebuild", "path": "./sub/src"}]}
    assert (found["secrets"], found["configs"]) == ({"pw": {"file": "./sub/pw.txt"}}, {"c": {"file": "./sub/c.txt"}})
    assert first.messages == again.messages
    assert resolved_definition(again.loaded) == found


ROUTED = """\
services:
  web: {image: nginx, expose: [80]}
  debug: {image: nginx, expose: [80], profiles: [debug]}
endpoints:
  shop: [{path: /, service: web, port: 80}, {path: /debug, service: debug, port: 80}]
  debug: {rules: [{path: /, service: debug, port: 80}]}
"""


def test_routes_to_inactive_services(project: Project) -> None:
    """A service whose profile is off leaves the output with its routes, so that it can be read again."""
    folder = project(ROUTED)

    found = resolved_definition(folder.read(full=True).loaded)
    again = folder.write({"again.yaml": to_yaml(found)}).read("again.yaml", full=True)

    assert list(found["services"]) == ["web"]
    assert found["endpoints"] == {"shop": [{"path": "/", "service": "web", "port": 80}], "debug": {"rules": []}}
    assert again.messages == []


EVERYTHING = {
    "compose.yaml": """\
include: [more/more.yaml]
x-base: &base
  restart: unless-stopped
  environment: &environment {A: '${TAG}', B: '$$(X) $$$$', C: }
services:
  web:
    <<: *base
    image: nginx:${TAG}
    command: ['echo', '$$HOME', "two\\nlines"]
    env_file: [a.env]
    ports: ['8080:80', '0123', {target: 90, published: "91"}]
    volumes: ['./conf:/etc/conf', '${PLACE}:/place', data:/data, {type: bind, source: ./conf, target: /other}]
    user: "0123"
    healthcheck: {test: 'curl -f localhost', interval: 1m30s}
  app:
    <<: *base
    build: {context: ./app, args: {A: $TAG}, additional_contexts: {base: ./base, web: 'docker-image://nginx'}}
    depends_on: [web]
    volumes: ['./app:/app']
volumes: {data: {driver_opts: {size: 2Gi}}}
endpoints: {shop: [{path: /, service: web, port: 80}]}
""",
    "more/more.yaml": "services: {db: {image: postgres, volumes: ['./init:/init'], env_file: b.env}}",
    "more/init/a.sql": "select 1;",
    "more/b.env": "PASSWORD='pa$$word'\n",
    "a.env": "FROM_FILE=1\n",
    "conf/app.ini": "x",
    "place dollar$": "x",
}


def test_reading_it_again_gives_the_same(project: Project) -> None:
    """The resolved definition needs no variables, env files or includes, and gives the same objects."""
    folder = project(EVERYTHING, TAG="1.27", PLACE="./place dollar$")
    first = folder.read()
    assert first.plan is not None, first.messages
    text = to_yaml(resolved_definition(first.loaded))

    again = project({"again.yaml": text}).read("again.yaml", name="")

    assert again.plan is not None, again.messages
    assert render_yaml(first.plan) == render_yaml(again.plan)
    assert text == to_yaml(resolved_definition(again.loaded))


def test_rows_of_variables(project: Project) -> None:
    """Each variable is listed once with its value and the layer that gave it."""
    folder = project(
        {
            "compose.yaml": "services: {web: {image: 'a${S}${F}${P}${D:-d}${U}${R:?}${PLATFORM_NAME}'}}",
            ".env": "F=file\nS=file\n",
        },
        S="shell",
        R="",
    )

    loaded = folder.read(platform={"P": "platform", "F": "platform"}).loaded

    assert [(r["name"], r["value"], r["from"], r["required"]) for r in variable_rows(loaded.references)] == [
        ("S", "shell", "shell", False),
        ("F", "file", ".env", False),
        ("P", "platform", "platform", False),
        ("D", "d", "default", False),
        ("U", None, "unset", False),
        ("R", "", "shell", True),
        ("PLATFORM_NAME", "demo", "platform", False),
    ]
