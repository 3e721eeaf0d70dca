"""Services whose command ends by itself."""

from __future__ import annotations

import json

import pytest

from tests.compatibility.test_check import check
from tests.compatibility.test_fixes import fix
from tests.conftest import Folder, Project

ENTRIES = ['restart: "no"', "restart_policy: {max_attempts: 6}"]


def found(folder: Folder) -> list[str]:
    findings = (f.diagnostic for f in check(folder).all_findings)
    return [".".join(map(str, d.path[1:])) for d in findings if d.code == "ending-command"]


def service(project: Project, keys: str, rest: str = "") -> Folder:
    return project({"compose.yaml": f"services:\n  setup: {{{keys}}}\n{rest}"})


def shell(script: str) -> str:
    return f"image: a, command: {json.dumps(['sh', '-c', script])}"


ENDING = [
    "mc alias set s http://minio:9000 a b; mc mb s/b; exit 0;",
    "until mc ready s; do sleep 1; done\n/usr/bin/mc mb --ignore-existing s/b\n",
    "python manage.py migrate && python manage.py collectstatic --noinput",
    "if [ ! -f /c/ca.pem ]; then\n  openssl req -x509 -out /c/ca.pem\nfi\n",
    "for t in a b; do kafka-topics --create --topic $$t; done",
    "sleep 5 && curl -X PUT http://es:9200/_settings -d '{\"a\": 1}'",
    "(echo 'a; b' | psql -c 'SELECT 1; SELECT 2')",
    "A=b npx prisma migrate deploy",
    "echo $$(date)",
    "echo a \\\n  b",
]
RUNNING = [
    "python manage.py migrate && python manage.py runserver 0:8000",
    "echo ready; exec nginx -g 'daemon off;'",
    "while true; do curl http://a; sleep 60; done",
    "while :; do echo a; done",
    "python server.py & curl http://localhost",
    "touch log; tail -n 0 -f log; echo end",
    "server & echo a; wait",
    "mc mirror --watch a b",
    "echo 'not closed",
    "npm run dev",
    "if [ -f a ]; then echo a; else npm start; fi",
    "sleep infinity; echo",
    "",
]


@pytest.mark.parametrize("script", ENDING)
def test_scripts_that_end(project: Project, script: str) -> None:
    """The last statement ends, and nothing before it runs on; as a job, it may fail until its database is ready."""
    folder = service(project, shell(script))

    assert found(folder) == ["setup.command"]
    lines = fix(folder)
    assert [line.strip() for line in lines if not line.endswith(":")] == ENTRIES
    folder.write({"compose.platform.yaml": "\n".join(lines)})
    assert [f.diagnostic.code for f in check(folder).all_findings] == []


@pytest.mark.parametrize("script", RUNNING)
def test_scripts_that_run_on(project: Project, script: str) -> None:
    assert found(service(project, shell(script))) == []


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        pytest.param("image: a, command: python manage.py migrate", "command", id="a program"),
        pytest.param("image: a, command: alembic -c a.ini upgrade head", "command", id="with options"),
        pytest.param("image: flyway/flyway:10, command: -url=jdbc:a migrate", "command", id="arguments of an image"),
        pytest.param(f"image: 'migrate/migrate:v4@sha256:{'0' * 64}', command: -path /m up", "command", id="a digest"),
        pytest.param("image: minio/mc, entrypoint: /bin/sh -c 'mc mb a; exit 0'", "entrypoint", id="an entrypoint"),
        pytest.param("image: a, entrypoint: [bash, -ec], command: ['mc mb a']", "command", id="both"),
        pytest.param("image: a, command: bash -e -c 'echo a'", "command", id="options of the shell"),
        pytest.param("image: a, command: yarn db:migrate:prod", "command", id="a script of a package"),
    ],
)
def test_commands_that_end(project: Project, keys: str, place: str) -> None:
    assert found(service(project, keys)) == [f"setup.{place}"]


@pytest.mark.parametrize(
    ("keys", "rest"),
    [
        pytest.param("image: a, command: echo, restart: always", "", id="a policy"),
        pytest.param("image: a, command: echo, restart: 'no'", "", id="a job"),
        pytest.param("image: a, command: echo, deploy: {restart_policy: {condition: any}}", "", id="one of deploy"),
        pytest.param("image: a, command: echo, ports: [80]", "", id="ports"),
        pytest.param("image: a, command: echo, scale: 2", "", id="several replicas"),
        pytest.param(
            "image: a, command: echo", "  b: {image: b, environment: {U: 'http://setup:80'}}\n", id="a server"
        ),
        pytest.param(
            "image: a, command: echo",
            "  b: {image: b, depends_on: {setup: {condition: service_completed_successfully}}}\n",
            id="awaited",
        ),
        pytest.param("image: a, command: migrate", "", id="an unknown program"),
        pytest.param("image: a, command: bash setup.sh -c echo", "", id="a file of a shell"),
        pytest.param("image: a", "", id="no command"),
        pytest.param("image: a, command: mc admin trace a", "", id="a trace"),
        pytest.param("image: a, command: npm run migrate:watch", "", id="a script that watches"),
        pytest.param("image: a, command: curly", "", id="a longer name"),
    ],
)
def test_others(project: Project, keys: str, rest: str) -> None:
    assert found(service(project, keys, rest)) == []


def test_a_shared_pod(project: Project) -> None:
    """Its restarts are those of the pod, so that no entry makes it a job."""
    text = "services: {a: {image: a}, setup: {image: b, command: echo, network_mode: 'service:a'}}\n"
    folder = project({"compose.yaml": f"x-platform: {{full: true}}\n{text}"})
    (finding,) = check(folder).all_findings

    assert finding.diagnostic.code == "ending-command"
    assert finding.diagnostic.hint == "it shares the pod of 'a': make it a service of its own, with restart: 'no'"
    assert fix(folder) == []


def test_a_pod_on_each_node(project: Project) -> None:
    """A DaemonSet is always restarted."""
    folder = service(project, "image: a, command: echo, deploy: {mode: global}", "x-platform: {full: true}\n")

    assert found(folder) == []


def test_long_scripts(project: Project) -> None:
    """They are read once, statement by statement."""
    assert found(service(project, shell("echo a; " * 20_000))) == ["setup.command"]
    assert found(service(project, shell("A=b " * 20_000 + "serve"))) == []
    assert found(service(project, shell("tail a " * 15_000 + "; echo"))) == ["setup.command"]
