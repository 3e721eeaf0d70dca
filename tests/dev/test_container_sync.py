"""Copying into running containers: which containers, what is in the archive, and which commands run."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import urlencode

import pytest

from composeplat.compose.model import HostFile
from composeplat.compose.watch_model import WatchAction, WatchExec, WatchRule
from composeplat.dev import container_sync
from composeplat.dev.container_commands import Piped
from composeplat.dev.container_sync import (
    Container,
    ContainerFiles,
    command_args,
    emptied_folders,
    find_folders,
    give_modes,
    parse_modes,
    running_containers,
    write_archive,
)
from composeplat.dev.mounted_files import read_mounted_files
from composeplat.dev.watch_rules import WatchedFolder
from composeplat.diagnostics import ComposeplatError


def watched(top: Path, target: str = "/app") -> WatchedFolder:
    rule = WatchRule(action=WatchAction.SYNC, path=str(top / "src"), target=target)
    return WatchedFolder(service="web", rule=rule, local=str(top / "src"), within=str(top))


@pytest.fixture
def folder(tmp_path: Path) -> WatchedFolder:
    (tmp_path / "src/sub").mkdir(parents=True)
    (tmp_path / "src/sub/a.sh").write_text("a")
    (tmp_path / "src/sub/a.sh").chmod(0o750)
    (tmp_path / "src/link").symlink_to("sub/a.sh")
    (tmp_path / "secret").write_text("secret")
    return watched(tmp_path)


def packed(folder: WatchedFolder, *paths: str) -> dict[str, tuple[bytes, int, str]]:
    archive = io.BytesIO()
    count = write_archive([(folder, path) for path in paths], archive)
    archive.seek(0)
    with tarfile.open(fileobj=archive) as tar:
        members = tar.getmembers()
        assert len(members) == count
        assert {(member.uid, member.gid) for member in members} <= {(0, 0)}
        return {m.name: ((tar.extractfile(m) or io.BytesIO()).read() if m.isreg() else m.type, m.mode, m.linkname)
                for m in members}  # fmt: skip


def test_an_archive(folder: WatchedFolder) -> None:
    """Files with their modes, links as links; what has gone meanwhile, devices and folders are left out."""
    (Path(folder.local) / "empty").mkdir(mode=0o755)
    os.mkfifo(Path(folder.local) / "pipe")

    assert packed(folder, "sub/a.sh", "link", "empty", "gone", "gone/a", "link/a", "pipe") == {
        "app/sub/a.sh": (b"a", 0o750, ""), "app/link": (tarfile.SYMTYPE, 0o777, "sub/a.sh"),
    }  # fmt: skip


def test_folders_and_their_modes(folder: WatchedFolder, tmp_path: Path) -> None:
    """Empty folders, and those above files up to the target; none behind a link, and none of a single file."""
    for name, mode in (("", 0o775), ("sub", 0o700), ("sub/empty", 0o2770)):
        place = Path(folder.local) / name
        place.mkdir(exist_ok=True)
        place.chmod(mode)
    (tmp_path / "src/out").symlink_to(tmp_path)

    paths = ("sub/a.sh", "sub/empty", "link", "gone/a", "out/secret")
    assert find_folders([(folder, path) for path in paths]) == (
        {"/app/sub/empty": 0o770}, {"/app": 0o775, "/app/sub": 0o700},
    )  # fmt: skip
    single = replace(folder, file="link")
    assert find_folders([(single, "link")]) == ({}, {})


@pytest.mark.parametrize("program", ["mkdir", "none", "busybox"])
def test_folders_are_made(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Those above come first, one command for those of one mode; the container's user may always write to them."""
    ran: list[tuple[str, ...]] = []
    answers = {
        "mkdir": (1, "mkdir: cannot create directory \u2018/app/b\u2019: Permission denied"),
        "busybox": (1, "mkdir: can't create directory '/app/b': Permission denied"),
        "none": (127, ""),
    }

    def run(_: object, args: tuple[str, ...], *__: object) -> tuple[int, str]:
        ran.append(args)
        return answers[program]

    monkeypatch.setattr(ContainerFiles, "_run", run)
    files = ContainerFiles(Mock(), Mock(), {})
    modes = {"/app/b": 0o775, "/app/a/x": 0o555, "/app/a": 0o775, "/app": 0o755}
    if program == "none":
        # tar makes those that are not empty.
        assert files.make_folders(modes, []) == {}
        with pytest.raises(ComposeplatError, match="no program 'mkdir'"):
            files.make_folders(modes, ["/app/b"])
        return
    assert files.make_folders(modes, ["/app/b", "/app/a/x"]) == {
        "/app/b": "Permission denied", "/app/a/x": answers[program][1],
    }  # fmt: skip
    assert ran == [
        ("mkdir", "-p", "-m", "755", "--", "/app"), ("mkdir", "-p", "-m", "775", "--", "/app/a", "/app/b"),
        ("mkdir", "-p", "-m", "755", "--", "/app/a/x"),
    ]  # fmt: skip


def test_modes_of_a_file_system_without_permissions(folder: WatchedFolder, tmp_path: Path) -> None:
    """An archive gets the modes that the container has; contents, links and other members stay as they are."""
    archive, adapted = tmp_path / "changes.tar", io.BytesIO()
    (Path(folder.local) / "other").write_text("other")
    (Path(folder.local) / "other").chmod(0o640)
    with archive.open("wb") as content:
        write_archive([(folder, path) for path in ("sub/a.sh", "link", "other")], content)

    give_modes(archive, {"/app/sub/a.sh": 0o600, "/app/gone": 0o755}, adapted)
    adapted.seek(0)
    with tarfile.open(fileobj=adapted) as tar:
        found = {
            m.name: (m.mode, (tar.extractfile(m) or io.BytesIO()).read() if m.isreg() else m.linkname) for m in tar
        }
    assert found == {"app/sub/a.sh": (0o600, b"a"), "app/link": (0o777, "sub/a.sh"), "app/other": (0o640, b"other")}


def test_modes_that_a_container_answers() -> None:
    """Only modes of files and folders that were asked for count, without the bits that run as another user."""
    lines = ["81a4 /app/a", "89ed /app/b c", "41c0 /app/folder", "a1ff /app/link", "81a4 /etc/passwd", "x /app/a", ""]
    paths = ["/app/a", "/app/b c", "/app/folder", "/app/link"]

    assert parse_modes("\n".join(lines), paths) == {"/app/a": 0o644, "/app/b c": 0o755, "/app/folder": 0o700}
    assert parse_modes("9" * 100, paths) == {}


def test_no_link_is_followed(folder: WatchedFolder, tmp_path: Path) -> None:
    """A folder that becomes a link after it was scanned leads nowhere, and so do its parents."""
    (tmp_path / "src/out").symlink_to(tmp_path)
    assert packed(folder, "out/secret") == {}
    (tmp_path / "src").rename(tmp_path / "moved")
    (tmp_path / "src").symlink_to("moved")
    assert packed(folder, "sub/a.sh") == {}
    assert read_mounted_files([(folder, "sub/a.sh")]) == ((), [])


def test_emptied_folders(folder: WatchedFolder) -> None:
    """Folders of deleted files that are gone here are deleted too, the deepest first, but never the target."""
    assert emptied_folders(folder, ["sub/b", "x/y/z", "x/y/a", "a"]) == ["/app/x/y", "/app/x"]
    # Those that a file or a link replaces here are in its way: tar removes no folder.
    assert emptied_folders(folder, ["link/b", "sub/a.sh/b"]) == ["/app/sub/a.sh", "/app/link"]
    # A folder that was deleted after its files, or was empty, has a change of its own; another may be here again.
    assert emptied_folders(folder, ["x/y/", "sub/"]) == ["/app/x/y", "/app/x"]


@pytest.mark.parametrize("has_xargs", [True, False])
def test_many_deleted_files(monkeypatch: pytest.MonkeyPatch, *, has_xargs: bool) -> None:
    """Their paths are not in URLs that a proxy refuses: they were, up to 64 KiB; few need no ``xargs``."""
    ran: list[tuple[tuple[str, ...], bytes]] = []

    def run(_: object, args: tuple[str, ...], content: io.BytesIO | None, __: float) -> tuple[int, str]:
        ran.append((args, content.read() if content else b""))
        return (0, "") if has_xargs or args[0] != "xargs" else (127, "")

    monkeypatch.setattr(ContainerFiles, "_run", run)
    files = ContainerFiles(Mock(), Mock(), {})
    files.delete(["/a b", "/c"], ["/d"])
    assert ran == [(("rm", "-f", "--", "/a b", "/c"), b""), (("rmdir", "--", "/d"), b"")]

    ran.clear()
    paths = [f"/ü/{number}" for number in range(1000)]
    files.delete(paths, [])
    listed = "".join(f"{path}\0" for path in paths).encode()
    assert ran[0] == (("xargs", "-0", "rm", "-f", "--"), listed)
    assert [path for args, _ in ran[1:] for path in args[3:]] == ([] if has_xargs else paths)
    assert max(len(urlencode({"command": args}, doseq=True)) for args, _ in ran) < 4400


def pod(name: str, *, service: str = "web", phase: str = "Running", state: str = "running", **more: object) -> object:
    statuses = [
        {"name": "other", "state": {"running": {}}},
        {"name": service, "containerID": "c1", "state": {state: {}}},
    ]
    metadata = {"name": name, "labels": {"dev.platform.com/service": service}, **more}
    return {"metadata": metadata, "status": {"phase": phase, "containerStatuses": statuses}}


def test_containers_of_a_service() -> None:
    """Only running containers of the service count, and none of a pod that is deleted."""
    pods = [pod("a"), pod("b", service="db"), pod("c", state="waiting"), pod("d", deletionTimestamp="now"),
            pod("e", phase="Pending")]  # fmt: skip

    assert running_containers(pods, "web") == [Container("a", "c1")]  # type: ignore[arg-type]
    # A service that joined the pod of another has its container there; a one-off pod is of no service.
    assert running_containers([pod("a"), pod("run", labels={})], "other") == [Container("a", "")]  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("command", "args"),
    [
        (WatchExec(command=("a", "b c")), ("a", "b c")),
        (WatchExec(command=("a",), working_dir="/my app"), ("sh", "-c", "cd '/my app' && exec env \"$@\"", "sh", "a")),
        (WatchExec(command=("a",), environment={"A": "$b"}), ("sh", "-c", 'exec env "$@"', "sh", "A=$b", "a")),
    ],
)
def test_commands(command: WatchExec, args: tuple[str, ...]) -> None:
    """A command runs as it is; only one with a folder or variables needs a shell."""
    assert command_args(command) == args


def test_files_of_new_pods(folder: WatchedFolder) -> None:
    """Files of new pods have their path there; links are left out with a reason."""
    files, left_out = read_mounted_files([(folder, "sub/a.sh"), (folder, "link"), (folder, "gone")])

    assert files == (HostFile(path="/app/sub/a.sh", mode=0o750, content=b"a"),)
    assert left_out == [("/app/link", "a link or folder, which is not put into new pods")]


def test_a_file_that_no_pod_can_mount(folder: WatchedFolder) -> None:
    """A path of a mount has no colon, so such a file is left out of new pods."""
    (Path(folder.local) / "a:b").write_text("x")

    assert read_mounted_files([(folder, "a:b")]) == ((), [("/app/a:b", "a path with ':', which no pod can mount")])


def test_too_many_files_of_new_pods(folder: WatchedFolder) -> None:
    """What an object of Kubernetes can't hold is an error with another way."""
    (Path(folder.local) / "large").write_bytes(b"x" * 1_000_001)
    with pytest.raises(ComposeplatError, match="1 files of 1000 kB changed, and new pods get at most 64 files of 1000"):
        read_mounted_files([(folder, "large")])


def test_files_that_change_while_they_are_packed(folder: WatchedFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that an editor empties meanwhile, or that may not be read any more, keeps no other one from its copy."""
    for name in ("shorter", "secret", "z"):
        (Path(folder.local) / name).write_text(name)
    opened, asked = os.open, os.fstat

    def refuse(path: str, *args: int, **fields: int) -> int:
        if path == "secret":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return opened(path, *args, **fields)

    def empty(descriptor: int) -> os.stat_result:
        found = asked(descriptor)
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith("/shorter"):
            (Path(folder.local) / "shorter").write_text("")
        return found

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "fstat", empty)

    assert packed(folder, "shorter", "secret", "z") == {
        "app/shorter": (b"", 0o644, ""), "app/z": (b"z", 0o644, ""),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("has_shell", "has_tar"), [(True, True), (False, True), (True, False), (False, False)]
)  # fmt: skip
def test_all_of_an_archive_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_shell: bool, has_tar: bool
) -> None:
    """A shell reads the part that is left where tar ends early: its end was not seen, for two minutes."""
    ran: list[tuple[str, ...]] = []

    def run(_: object, args: tuple[str, ...], content: io.BytesIO, __: float) -> tuple[int, str]:
        ran.append(args)
        content.read()
        return (0, "") if has_tar and (has_shell or args[0] != "sh") else (127, "")

    monkeypatch.setattr(ContainerFiles, "_run", run)
    tarfile.open(tmp_path / "archive", "w").close()
    files = ContainerFiles(Mock(), Mock(), {})
    if has_tar:
        assert files.unpack(tmp_path / "archive", tmp_path / "part") == {}
    else:
        with pytest.raises(ComposeplatError, match="has no program 'tar'"):
            files.unpack(tmp_path / "archive", tmp_path / "part")

    tar = ("tar", "-xf", "-", "-o", "-C", "/")
    shell = ran[0]
    assert shell[4:] == tar
    assert ran[1:] == ([] if has_shell and has_tar else [tar])
    early = ("sh", "-c", "head -c 1 >/dev/null; exit 7")
    ended = subprocess.run([*shell[:4], *early], input=b"x" * 2**20, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (7, b"")


def unpack_with(program: str, archive: Path, monkeypatch: pytest.MonkeyPatch, timeout_s: float) -> None:
    """Unpack an archive with a program of this machine as the ``tar`` of a container."""

    @contextlib.contextmanager
    def opened(*_: object) -> Iterator[Piped]:
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(
                [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            ) as process,
        ):
            assert process.stdin is not None
            assert process.stdout is not None
            yield Piped(process, process.stdin, process.stdout, errors)

    monkeypatch.setattr(container_sync, "open_command", opened)
    monkeypatch.setattr(container_sync, "_COPY_TIMEOUT_S", timeout_s)
    ContainerFiles(Mock(), Mock(), {}).unpack(archive, archive.with_suffix(".part"))


def test_a_large_file_over_a_slow_line_arrives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time limit is for a container that takes nothing: a copy that took longer as a whole was ended each time."""
    archive, arrived = tmp_path / "archive", tmp_path / "arrived"
    archive.write_bytes(os.urandom(2**20))
    slow = f"""import os, time
with open({str(arrived)!r}, "wb") as to:
    while part := os.read(0, 2**16):
        to.write(part)
        time.sleep(0.5)
"""
    unpack_with(slow, archive, monkeypatch, 5)

    assert arrived.read_bytes() == archive.read_bytes()


@pytest.mark.parametrize(
    "size", [pytest.param(2**20, id="in-the-middle"), pytest.param(2**10, id="after-all-of-it-was-sent")]
)
def test_a_container_that_takes_nothing_ends_the_copy(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "archive"
    archive.write_bytes(os.urandom(size))
    with pytest.raises(ComposeplatError, match="nothing for 1 s"):
        unpack_with("import time; time.sleep(600)", archive, monkeypatch, 1)
