"""Links that a container plants under `platform up`: nothing outside the project is read or written through them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.deploy.conftest import Environment
from tests.deploy.test_up import plainly

PROJECT = """\
services:
  web:
    image: 'busybox:1.37'
    command: sleep 100000
    stop_grace_period: 0
    volumes:
    - .:/app
    - ./nginx.conf:/etc/nginx.conf
    - ./fixed.conf:/etc/fixed.conf:ro
    - ./sub:/sub
"""
PLANT = r"""
cd /app; mkdir d
ln -s d//../../OUTSIDE/.bashrc empty; ln -s . k; ln -s k/../OUTSIDE/secret winds; ln -s /etc/passwd absolute
for conf in nginx fixed; do rm $conf.conf; ln -s $1 $conf.conf; done
rm -rf sub; ln -s d sub
echo '!.git' > .stignore; mkdir -p .git/hooks; echo planted > .git/hooks/pre-commit
sleep 2
for conf in nginx fixed; do echo written > /etc/$conf.conf; done
echo planted > /sub/planted
sleep 3
cat /etc/nginx.conf /etc/fixed.conf; cat empty winds nginx.conf
"""
LONG_AGO = 1_000_000_000


@pytest.fixture
def outside(environment: Environment) -> Path:
    """What lies beside the project; anyone who reads a file there leaves another time of access."""
    folder = environment.folder.parent / "outside"
    folder.mkdir()
    for name in (".bashrc", "secret"):
        (folder / name).write_text(f"the developer's {name}\n")
        os.utime(folder / name, (LONG_AGO, LONG_AGO))
    return folder


def state(folder: Path) -> dict[str, tuple[float, float, int]]:
    found = {path.name: path.stat() for path in folder.iterdir()}
    return {name: (item.st_atime, item.st_mtime, item.st_size) for name, item in found.items()}


@pytest.mark.parametrize("target", ["../outside/secret", ".git/config"], ids=["outside", "git"])
def test_links_of_a_container(environment: Environment, outside: Path, target: str) -> None:
    """A shell in the container made links of folders and single files, and so read and wrote any file of the developer.

    Afterwards neither `down` nor `destroy` took the environment away: its files could not be published any more.
    """
    before = state(outside)
    for name in ("nginx.conf", "fixed.conf", ".git/config", "sub/file"):
        environment.write(f"{name} of the project\n", name)
    environment.deploy(PROJECT).expect()
    script = PLANT.replace("OUTSIDE", "outside")
    ran = plainly(environment, "web", "--", "sh", "-c", script, "sh", target)
    assert "the developer's" not in ran.stdout
    assert state(outside) == before
    assert (environment.folder / ".git/config").read_text() == ".git/config of the project\n"
    assert not (environment.folder / ".git/hooks").exists()
    assert not (environment.folder / ".stignore").exists()
    planted = {name: os.path.lexists(environment.folder / name) for name in ("k", "empty", "winds", "absolute")}
    assert planted == {"k": True, "empty": False, "winds": False, "absolute": False}
    assert "can't sync empty (container): a link" in ran.stderr
    again = plainly(environment, "web", "--", "true")
    assert (again.status, "holds 'k', a broken or cyclic link" in again.stderr) == (3, True)
    began = time.monotonic()
    environment.platform("down", "web").expect()
    environment.platform("destroy", "--volumes", "--yes").expect()
    assert time.monotonic() - began < 60
    assert state(outside) == before


def test_a_host_path_that_is_a_link_is_not_synced(environment: Environment) -> None:
    """What a container replaced by a link was synced by the next session, wherever in the project the link led."""
    environment.write("FROM busybox:1.37\n", "Dockerfile")
    environment.write("x", "other/file")
    (environment.folder / "sub").symlink_to("other")
    environment.write("services:\n  web:\n    build: .\n    volumes:\n      - ./sub:/app\n")

    ran = environment.platform("up", "web", "--", "true").expect(3)

    assert (
        "compose.yaml:5:9: error: services.web.volumes[0] mounts a host path that is a link, or lies behind one,"
        " which 'up' does not follow: './sub:/app' [forbidden-path]\n"
    ) in ran.stderr
    assert "mount what the link 'sub' leads to by its own path" in ran.stderr
    assert environment.names() == set()
