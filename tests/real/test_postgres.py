"""PostgreSQL with its data folder at the root of a volume, which it wants empty, its own, and closed to others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from composeplat.local.cluster import LocalCluster
from composeplat.toolchain.setup import Toolchain
from tests.deploy.conftest import Environment, an_environment, until
from tests.real.debian import root_layer
from tests.real.software import owners_of
from tests.real.test_projects import kill_all_pods

pytestmark = [pytest.mark.cluster, pytest.mark.real]

FOLDER = "/var/lib/postgresql/data"
#: Root's entry point gives its rights away; `user` with a number has none; a name of the image is not known here.
FILE = f"""\
x-database: &database
  image: postgres:15
  environment: {{POSTGRES_PASSWORD: "of nobody", RUN: "${{RUN:-1}}"}}
  healthcheck: {{test: [CMD, pg_isready, -h, localhost], interval: 1s, retries: 60}}
services:
  by-root: {{<<: *database, volumes: ["one:{FOLDER}"]}}
  by-name: {{<<: *database, volumes: ["two:{FOLDER}"], user: postgres}}
  by-number: {{<<: *database, volumes: ["three:{FOLDER}"], user: "USER"}}
  by-image: {{<<: *database, volumes: ["four:{FOLDER}"], image: "postgres-unprivileged:15"}}
volumes: {{one: {{}}, two: {{}}, three: {{}}, four: {{}}}}
"""
SERVICES = ("by-root", "by-name", "by-number", "by-image")


@pytest.fixture
def environment(real_cluster: LocalCluster, tmp_path: Path) -> Iterator[Environment]:
    folder = tmp_path / "postgres"
    folder.mkdir()
    with an_environment(real_cluster, folder, tmp_path) as made:
        yield made


def ask(environment: Environment, service: str, question: str) -> str:
    (pod,) = environment.pods(service)
    command = ("psql", "--username=postgres", "--tuples-only", "--no-align", "--quiet", "--command", question)
    return environment.exec(pod["metadata"]["name"], *command).strip()


def check(environment: Environment, user: tuple[int, int]) -> None:
    """Each has its row, and its data folder is the user's alone."""
    for service in SERVICES:
        assert ask(environment, service, "SELECT text FROM notes") == service
        (pod,) = environment.pods(service)
        owner = environment.exec(pod["metadata"]["name"], "stat", "-c", "%u:%g %a", FOLDER)
        assert owner == f"{user[0]}:{user[1]} 700\n"


def test_its_data_outlives_pods(environment: Environment) -> None:
    """Started by root, by a user of the definition and by one of the image, killed, and deployed again."""
    user = owners_of(root_layer(Toolchain(os.environ).cache.folder))["postgres"]
    environment.deploy(FILE.replace("USER", f"{user[0]}:{user[1]}")).expect()
    for service in SERVICES:
        ask(environment, service, f"CREATE TABLE notes AS SELECT '{service}' AS text")
    check(environment, user)

    before = {pod["metadata"]["uid"] for pod in environment.pods()}
    kill_all_pods(environment)
    until(lambda: not before & {pod["metadata"]["uid"] for pod in environment.pods()})
    environment.platform("deploy").expect()
    check(environment, user)

    environment.platform("deploy", RUN="2").expect()
    check(environment, user)

    environment.platform("destroy", "--yes").expect()
    environment.deploy().expect()
    check(environment, user)
