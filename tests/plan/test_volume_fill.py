"""The init containers that fill volumes, and their script, run on folders by Debian's busybox and the default one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from composeplat.toolchain.setup import Toolchain
from tests.conftest import Project
from tests.musl_busybox import can_be_built, musl_busybox

TOOLS = "/.platform/tools"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="owners are given by root: run the tests as root")

#: In forms that filling needs; Debian's static busybox has neither.
SETFATTR = f"""#!{sys.executable}
import os, sys
if sys.argv[1] == "-x":
    os.removexattr(sys.argv[3], sys.argv[2])
else:
    os.setxattr(sys.argv[5], sys.argv[2], sys.argv[4].encode())
"""


def init_containers(project: Project, service: str = "", **settings: str) -> list[dict[str, Any]]:
    """The init containers of a service with a named and an anonymous volume."""
    text = f"services: {{app: {{image: app, volumes: ['data:/data', /cache], {service}}}}}\nvolumes: {{data: {{}}}}\n"
    pod = project({"compose.yaml": text}).read(**settings).pod("StatefulSet", "app")
    found: list[dict[str, Any]] = pod["initContainers"]
    return found


DATA, CACHE = "/.platform/volumes/0-data", "/.platform/volumes/1-anonymous-cache"


@pytest.mark.parametrize(
    ("service", "user"),
    [
        pytest.param("", ["", ""], id="unknown"),
        pytest.param("user: '5:6'", ["5", "6"], id="both"),
        pytest.param("user: '5'", ["5", ""], id="uid"),
        pytest.param("user: app", ["", ""], id="name"),
    ],
)
def test_the_script_gets_the_user_and_the_paths(project: Project, service: str, user: list[str]) -> None:
    """The number of the user, where the definition has it, and each path of the image with its volume."""
    _, fill = init_containers(project, service)
    assert fill["command"][5:] == [*user, "/data", DATA, "/cache", CACHE]


def test_root_of_few_capabilities_fills(project: Project) -> None:
    """The container that copies is root and may give files away; the one that brings the tools may nothing."""
    tools, fill = init_containers(project, "cap_add: [SYS_ADMIN], mem_limit: 64m")

    assert tools["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert fill["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "runAsUser": 0,
        "runAsGroup": 0,
        "capabilities": {"add": ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID"], "drop": ["ALL"]},
    }
    assert fill["resources"] == tools["resources"] == {"limits": {"memory": "64Mi"}}


def test_a_restricted_namespace_has_no_root(project: Project) -> None:
    """There the user of the service copies, and volumes belong to a group of the pod."""
    tools, fill = init_containers(project, "user: '1000'", pod_security="restricted")
    same = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}

    assert tools["securityContext"] == {**same, "runAsUser": 65532}
    assert fill["securityContext"] == {**same, "runAsUser": 1000}


def test_another_image_may_bring_the_tools(project: Project) -> None:
    """A cluster that can't pull the usual image gets another."""
    tools, _ = init_containers(project, fill_image="registry.example.com/busybox:musl")
    assert tools["image"] == "registry.example.com/busybox:musl"


# the script -----------------------------------------------------------------------------------------------------------


class Machine:
    """A folder with tools as in a pod, an image's folder and a volume."""

    def __init__(self, folder: Path, install: str, fill: str, put_programs: Callable[[Path], None]) -> None:
        self.tools, self.image, self.volume = folder / "tools", folder / "image", folder / "volume"
        programs = folder / "bin"
        for made in (self.tools, self.image, self.volume, programs):
            made.mkdir()
        put_programs(programs)
        self.script = self._placed(fill)
        subprocess.run(
            [programs / "busybox", "sh", "-c", self._placed(install).replace("cd /bin", f"cd {programs}")], check=True
        )

    def _placed(self, script: str) -> str:
        return script.replace("$$(", "$(").replace(TOOLS, str(self.tools))

    def start(
        self, user: str = "", group: str = "", *, source: str | None = None, script: str = ""
    ) -> subprocess.Popen[str]:
        path = str(self.image) if source is None else source
        command = [
            str(self.tools / "busybox"),
            "sh",
            "-c",
            script or self.script,
            "fill",
            user,
            group,
            path,
            str(self.volume),
        ]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")

    def fill(self, user: str = "", group: str = "", *, source: str | None = None) -> None:
        process = self.start(user, group, source=source)
        output = process.communicate(timeout=60)
        assert (process.returncode, *output) == (0, "", "")

    def owner(self, name: str = ".") -> str:
        found = (self.volume / name).stat()
        return f"{found.st_uid}:{found.st_gid} {found.st_mode & 0o7777:o}"

    def names(self) -> list[str]:
        return sorted(os.listdir(self.volume))


def put_debian(programs: Path) -> None:
    for name in ("busybox", "flock"):
        shutil.copy(shutil.which(name) or "", programs / name)
    (programs / "setfattr").write_text(SETFATTR)
    (programs / "setfattr").chmod(0o755)


def put_musl(programs: Path) -> None:
    """As the image has it: one file, with a hard link for each command."""
    shutil.copy(musl_busybox(Toolchain(os.environ).cache.folder), programs / "busybox")
    subprocess.run([programs / "busybox", "--install", programs], check=True)


@pytest.fixture(
    params=[
        pytest.param(put_debian, id="debian"),
        pytest.param(
            put_musl,
            id="1.37-musl",
            marks=[
                pytest.mark.skipif(not can_be_built(), reason="building busybox needs musl-gcc: make extras"),
                pytest.mark.timeout(300),
            ],
        ),
    ]
)
def machine(request: pytest.FixtureRequest, project: Project, tmp_path: Path) -> Machine:
    tools, fill = init_containers(project)
    return Machine(tmp_path, tools["command"][3], fill["command"][3], request.param)


def give(path: Path, owner: int, mode: int) -> None:
    os.chown(path, owner, owner)
    path.chmod(mode)


@needs_root
def test_a_new_volume_gets_the_content_of_the_image(machine: Machine) -> None:
    """With owners, modes, links and times, the folder's own too; lost+found is no content."""
    file = machine.image / "file"
    file.write_text("x")
    give(file, 70, 0o4750)
    os.utime(file, (1, 1))
    os.link(file, machine.image / "twin")
    (machine.image / "link").symlink_to("/nowhere")
    (machine.image / "empty").mkdir()
    give(machine.image / "empty", 71, 0o2770)
    give(machine.image, 72, 0o1770)
    (machine.volume / "lost+found").mkdir()
    machine.fill()

    assert machine.names() == ["empty", "file", "link", "twin"]
    assert [machine.owner(name) for name in (".", "file", "empty")] == ["72:72 1770", "70:70 4750", "71:71 2770"]
    assert os.readlink(machine.volume / "link") == "/nowhere"
    found = (machine.volume / "file").stat()
    assert (found.st_mtime, found.st_nlink) == (1, 2)


@needs_root
@pytest.mark.parametrize("left", [("other",), ()])
def test_deleted_files_stay_deleted(machine: Machine, left: tuple[str, ...]) -> None:
    """A second start fills nothing, though a program deleted a part or all."""
    for name in ("file", ".hidden", "other"):
        (machine.image / name).touch()
    machine.fill()
    for name in {"file", ".hidden", "other"} - set(left):
        (machine.volume / name).unlink()
    machine.fill()
    assert machine.names() == list(left)


@needs_root
def test_a_volume_with_anything_in_it_stays_as_it_is(machine: Machine) -> None:
    """Neither content nor the folder's owner and mode are changed."""
    (machine.image / "file").touch()
    give(machine.image, 70, 0o700)
    (machine.volume / "mine").touch()
    give(machine.volume, 0, 0o755)
    machine.fill()
    assert (machine.names(), machine.owner()) == (["mine"], "0:0 755")


@needs_root
@pytest.mark.parametrize(
    ("folder", "user", "expected"),
    [
        pytest.param((70, 0o700), "", "70:70 700", id="of the image"),
        pytest.param((70, 0o700), "999", "70:70 700", id="of another user in the image"),
        pytest.param((0, 0o755), "", "0:0 1777", id="of root in the image"),
        pytest.param((0, 0o755), "0", "0:0 755", id="of root for root"),
        pytest.param((0, 0o755), "999", "999:0 755", id="of root for a user"),
        pytest.param((0, 0o750), "", "0:0 750", id="closed in the image"),
        pytest.param(None, "", "0:0 1777", id="not in the image"),
        pytest.param(None, "999", "999:0 755", id="not in the image for a user"),
        pytest.param(None, "0", "0:0 755", id="not in the image for root"),
    ],
)
def test_users_that_can_write_to_an_empty_volume(
    machine: Machine, folder: tuple[int, int] | None, user: str, expected: str
) -> None:
    """The owner that the image names, else the program's user, else, of a folder that is nobody's, everyone."""
    if folder:
        give(machine.image, *folder)
    machine.volume.chmod(0o755)
    machine.fill(user, source=None if folder else "")
    assert machine.owner() == expected
    machine.fill(user, source=None if folder else "")
    assert (machine.owner(), machine.names()) == (expected, [])


@needs_root
def test_the_owner_of_a_volume_is_kept(machine: Machine) -> None:
    """PostgreSQL closes its folder; a start neither opens it nor takes it away, though there is nothing in it yet."""
    give(machine.volume, 999, 0o700)
    machine.fill("999", "999")
    assert machine.owner() == "999:999 700"


def many(machine: Machine) -> list[str]:
    names = [f"{number:04}" for number in range(1500)]
    for name in names:
        (machine.image / name).write_text(name * 100)
    os.link(machine.image / names[0], machine.image / "twin")
    return [*names, "twin"]


@needs_root
def test_a_fill_that_was_killed_is_completed(machine: Machine) -> None:
    """Killed in the middle, as often as it is, it is never taken for done, and leaves no trace when it is."""
    names = many(machine)
    for count in (10, 400, 900):
        process = machine.start()
        until(machine, count)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert ".platform-filling" in machine.names()
    machine.fill()
    assert machine.names() == names
    assert all((machine.volume / name).read_text() == name * 100 for name in names[:-1])


@needs_root
def test_several_at_once_fill_once(machine: Machine) -> None:
    """All wait for the first: none ends before all is there, and none writes again what a program changed since."""
    names = many(machine)
    processes = [machine.start() for _ in range(4)]
    while not any(process.poll() is not None for process in processes):
        time.sleep(0.001)
    assert machine.names() == names or machine.names() == sorted([".platform-filling", *names])
    (machine.volume / "0000").write_text("changed")
    for process in processes:
        assert (*process.communicate(), process.returncode) == ("", "", 0)
    assert machine.names() == names
    assert (machine.volume / "0000").read_text() == "changed"


@needs_root
def test_a_fill_that_begins_between_two_looks_is_waited_for(machine: Machine, tmp_path: Path) -> None:
    """A second pod that looks into the volume just when the first begins to fill it doesn't take it for filled."""
    names = many(machine)
    looks, go = tmp_path / "looks", tmp_path / "go"
    slow = tmp_path / "slow-find"
    slow.write_text(f'#!/bin/sh\n: >{looks}\nuntil [ -e {go} ]; do :; done\nexec "{machine.tools}/busybox" find "$@"\n')
    slow.chmod(0o755)
    second = machine.start(script=machine.script.replace("{ find ", f"{{ {slow} "))
    until_true(looks.exists)
    first = machine.start()
    until(machine, 10)
    go.touch()
    assert (*second.communicate(timeout=60), second.returncode) == ("", "", 0)
    assert set(names) <= set(machine.names())
    first.communicate()


@needs_root
def test_another_image_waits_and_leaves_the_fill_alone(machine: Machine) -> None:
    """A service whose image has nothing there starts when all is copied; what a kill left, the other completes."""
    names = many(machine)
    filling = machine.start()
    until(machine, 100)
    machine.fill(source="")
    assert machine.names() == names
    filling.communicate()

    (machine.volume / ".platform-filling").write_text("begun\n")
    machine.fill(source="")
    assert ".platform-filling" in machine.names()


@needs_root
def test_a_full_volume_is_an_error(machine: Machine) -> None:
    """What can't be copied ends with a message, and is tried again."""
    (machine.image / "folder").mkdir()
    (machine.image / "folder" / "file").touch()
    (machine.volume / ".platform-filling").write_text("begun\n")
    (machine.volume / "folder").touch()
    process = machine.start()
    _, output = process.communicate()
    assert process.returncode == 1
    assert "folder" in output
    (machine.volume / "folder").unlink()
    machine.fill()
    assert machine.names() == ["folder"]


def until(machine: Machine, count: int) -> None:
    """Wait until more names than these are in the volume."""
    until_true(lambda: len(machine.names()) > count)


def until_true(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)
