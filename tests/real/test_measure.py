"""How a folder of projects is measured: names of images, what takes their place, and the data that counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.measure import Project
from tests.real.standins import bare_name, make_program, read_facts, server_of
from tests.real.stores import Data

COMPOSE = """\
services:
  app:
    image: "ghcr.io/wiki/wiki:${TAG:-1}@sha256:%s"
    volumes: ['./data:/data', './wiki.conf:/etc/wiki.conf', 'cache:/cache', '/etc/localtime:/etc/localtime']
  db:
    image: postgres
  job:
    image: wiki/job
    restart: 'no'
    volumes: ['cache:/cache']
  own: {build: .}
volumes: {cache: }
""" % ("0" * 64)  # fmt: skip
FACTS = {"images": {"wiki/wiki": {"volumes": ["/srv"], "user": "7"}, "wiki/own": {"volumes": ["/own"]}}}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    source = tmp_path / "wiki"
    source.mkdir()
    (source / "compose.yaml").write_text(COMPOSE)
    (source / "wiki.conf").write_text("a")
    return Project(source, tmp_path / "copy", FACTS, 5001)


def test_images(project: Project) -> None:
    """An image is that of the local registry, without the digest of the real one."""
    services = project.load().project.services

    assert [service.image for service in services.values()] == [
        "localhost:5001/ghcr.io/wiki/wiki:1", "localhost:5001/library/postgres", "localhost:5001/wiki/job", "",
    ]  # fmt: skip


def test_data(project: Project) -> None:
    """Volumes of the file and of images count, and folders that do not exist; files, system paths and Jobs do not."""
    assert project.data(project.load()) == [
        Data("app", "", ["/cache", "/data", "/srv"]),
        Data("db", "postgres:15", ["/var/lib/postgresql/data"]),
        Data("own", "", ["/own"]),
    ]


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("localhost:5001/ghcr.io/a/b:1", "a/b"),
        ("library/redis:7", "redis"),
        ("a/b", "a/b"),
        ("x.io:80/c@sha256:1", "c"),
    ],
)
def test_bare_name(image: str, name: str) -> None:
    assert bare_name(image) == name


def test_facts_by_tag() -> None:
    """A row for a tag wins over that of the image."""
    rows = {"postgres": {"user": "1"}, "postgres:18": {"user": "2"}}

    assert [read_facts(rows, f"x.io/postgres:{tag}").user for tag in ("18", "17")] == ["2", "1"]


def test_a_server_that_is_not_used() -> None:
    """A row can say that a stand-in takes the place of a server that Debian has."""
    rows = {"redis": {"server": "none", "names": ["/run.sh", "/end.sh!"]}}
    program = make_program("redis:7", read_facts(rows, "redis:7"), (6379,))

    assert server_of("redis:7", read_facts(rows, "redis:7")) == ""
    assert (program.scripts["run.sh"], program.scripts["end.sh"]) == ("standin.py", "standin-once.sh")
