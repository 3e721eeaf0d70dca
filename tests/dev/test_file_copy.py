"""Copies into and out of a container: names as for ``docker cp``, and archives that are not believed."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from composeplat.dev.file_copy import Copied, pack, pack_args, place_in_container, unpack, unpack_args
from composeplat.diagnostics import ComposeplatError

Member = tuple[str, bytes | None, dict[str, object]]


def archive(*members: Member) -> io.BytesIO:
    """An archive; a member without content is a folder, or what its fields say."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, content, fields in members:
            info = tarfile.TarInfo(name)
            info.type, info.mode = (tarfile.DIRTYPE, 0o755) if content is None else (tarfile.REGTYPE, 0o640)
            info.size = len(content or b"")
            for key, value in fields.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(content or b""))
    made.seek(0)
    return made


def tree(folder: Path) -> dict[str, str]:
    """The files below a folder, links as links."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_dir():
            found[str(path.relative_to(folder))] = os.readlink(path) if path.is_symlink() else path.read_text()
    return found


def link(target: str, kind: bytes = tarfile.SYMTYPE) -> dict[str, object]:
    return {"type": kind, "linkname": target}


FOLDER: tuple[Member, ...] = (
    ("./app", None, {}),
    ("./app/a", b"A", {}),
    ("./app/sub", None, {}),
    ("./app/sub/b", b"B", {}),
)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("/srv/app", "new", {"new/a": "A", "new/sub/b": "B"}),
        ("/srv/app", ".", {"app/a": "A", "app/sub/b": "B"}),
        ("/srv/app/", "there", {"there/app/a": "A", "there/app/sub/b": "B"}),
        ("/srv/app", "new/", {"new/a": "A", "new/sub/b": "B"}),
    ],
)
def test_a_folder_goes_where_docker_cp_puts_it(
    tmp_path: Path, source: str, target: str, expected: dict[str, str]
) -> None:
    (tmp_path / "there").mkdir()

    assert unpack(archive(*FOLDER), source, f"{tmp_path}/{target}") == Copied(files=2, size=2)
    assert tree(tmp_path) == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [("new", {"new": "X"}), ("there", {"there/x": "X"}), (".", {"x": "X"}), ("there/y", {"there/y": "X"})],
)
def test_a_file_goes_where_docker_cp_puts_it(tmp_path: Path, target: str, expected: dict[str, str]) -> None:
    (tmp_path / "there").mkdir()

    unpack(archive(("./x", b"X", {})), "/etc/x", tmp_path / target)
    assert tree(tmp_path) == expected
    assert os.stat(tmp_path / next(iter(expected))).st_mode & 0o7777 == 0o640


@pytest.mark.parametrize("target", ["new", "."])
def test_modes_and_times_are_kept(tmp_path: Path, target: str) -> None:
    """Files and folders have those of the container, as with `docker cp`: also a folder that may not be written to."""
    members: tuple[Member, ...] = (
        ("./app", None, {"mode": 0o550, "mtime": 1_000_000_000}),
        ("./app/a", b"A", {"mode": 0o4755, "mtime": 1_100_000_000}),
        ("./app/b", None, {**link("app/a", tarfile.LNKTYPE)}),
        ("./app/sub", None, {"mode": 0o1777, "mtime": 1_200_000_000}),
        ("./app/sub/c", b"C", {"mode": 0o600, "mtime": 1_300_000_000}),
    )
    unpack(archive(*members), "/srv/app", tmp_path / target)

    folder = tmp_path / ("app" if target == "." else target)
    found = {
        path.name: (stat.S_IMODE(path.stat().st_mode), int(path.stat().st_mtime))
        for path in (folder, *folder.rglob("*"))
    }
    assert found == {
        folder.name: (0o550, 1_000_000_000),
        "a": (0o755, 1_100_000_000),
        "b": (0o755, 1_100_000_000),
        "sub": (0o777, 1_200_000_000),
        "c": (0o600, 1_300_000_000),
    }


def test_a_folder_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    """Only what the copy makes has modes of the container; a folder of this machine keeps its own."""
    there = tmp_path / "app" / "sub"
    there.mkdir(parents=True)
    there.parent.chmod(0o700)
    there.chmod(0o750)
    members: tuple[Member, ...] = (("./app", None, {"mode": 0o777}), ("./app/sub", None, {"mode": 0o500}))
    unpack(archive(*members, ("./app/sub/b", b"B", {})), "/srv/app", tmp_path)

    assert [stat.S_IMODE(path.stat().st_mode) for path in (there.parent, there)] == [0o700, 0o750]


@pytest.mark.parametrize("mtime", [-1, 1 << 80, 2e300], ids=str)
def test_a_time_that_no_file_can_have(tmp_path: Path, mtime: float) -> None:
    """The file is copied, with another time."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("./x")
        info.size, info.pax_headers = 1, {"mtime": str(mtime)}
        tar.addfile(info, io.BytesIO(b"X"))
    made.seek(0)

    assert unpack(made, "/srv/x", tmp_path / "x").files == 1
    assert (tmp_path / "x").read_text() == "X"


def test_the_content_of_a_folder(tmp_path: Path) -> None:
    unpack(archive((".", None, {}), ("./a", b"A", {})), "/srv/.", tmp_path)
    assert tree(tmp_path) == {"a": "A"}


@pytest.mark.parametrize(
    ("members", "target", "message"),
    [
        (FOLDER, "file", "is a file, and '/srv/app' is a folder"),
        ((("./app", b"", {}),), "no/such", "there is no folder"),
        ((("./app", b"", {}),), "new/", "there is no folder"),
        ((("./app", b"", {}),), "new/.", "there is no folder"),
        ((("./app", b"", {}),), "file/", "there is no folder"),
    ],
)
def test_a_target_that_does_not_fit(tmp_path: Path, members: tuple[Member, ...], target: str, message: str) -> None:
    (tmp_path / "file").write_text("kept")

    with pytest.raises(ComposeplatError, match=message):
        unpack(archive(*members), "/srv/app", f"{tmp_path}/{target}")
    assert tree(tmp_path) == {"file": "kept"}


@pytest.mark.parametrize(
    "member",
    [
        ("./app/../../outside", b"bad", {}),
        ("/app/outside", b"bad", {}),
        ("./other", b"bad", {}),
        ("../outside", b"bad", {}),
        ("./app/../../made", None, {}),
    ],
)
def test_a_name_that_leads_outside_ends_the_copy(tmp_path: Path, member: Member) -> None:
    target = tmp_path / "target"
    target.mkdir()

    with pytest.raises(ComposeplatError, match="the container sent a file that lies outside"):
        unpack(archive(FOLDER[0], member), "/srv/app", target)
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
    assert tree(target) == {}


def test_links_are_not_made(tmp_path: Path) -> None:
    """Neither is written through one of the same archive; a second name of a file is a file of its own."""
    outside = tmp_path / "outside"
    outside.write_text("kept")
    copied = unpack(
        archive(
            FOLDER[0],
            ("./app/a", b"A", {}),
            ("./app/up", None, link("../..")),
            ("./app/up/outside", b"bad", {}),
            ("./app/abs", None, link(str(outside))),
            ("./app/same", None, link("./app/a", tarfile.LNKTYPE)),
            ("./app/far", None, link("./app/none", tarfile.LNKTYPE)),
            ("./app/null", None, {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}),
            ("./app/pipe", None, {"type": tarfile.FIFOTYPE}),
        ),
        "/srv/app",
        tmp_path / "target",
    )

    assert copied.omitted == ["./app/up", "./app/abs", "./app/far", "./app/null", "./app/pipe"]
    assert tree(tmp_path) == {"outside": "kept", "target/a": "A", "target/same": "A", "target/up/outside": "bad"}
    assert not (tmp_path / "target" / "up").is_symlink()


@pytest.mark.parametrize(("target", "path"), [("releases/2", "/srv/releases/2"), ("/data", "/data")])
def test_a_source_that_is_a_link(tmp_path: Path, target: str, path: str) -> None:
    """It is refused, and the hint names what to copy: nothing was copied, which passed for a success."""
    with pytest.raises(ComposeplatError, match="'/srv/app' is a link in the container") as raised:
        unpack(archive(("./app", None, link(target))), "/srv/app/", tmp_path)
    assert raised.value.hint == f"copy what it leads to: '{path}'"


def test_links_that_lie_there_are_not_followed(tmp_path: Path) -> None:
    """A file in place of a link replaces it; a link to a folder is no folder."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b").write_text("kept")
    target = tmp_path / "target"
    target.mkdir()
    (target / "a").symlink_to(outside / "b")
    unpack(archive((".", None, {}), ("./a", b"A", {})), "/srv/.", target)
    assert (tree(target), tree(outside)) == ({"a": "A"}, {"b": "kept"})
    (target / "sub").symlink_to(outside)
    with pytest.raises(ComposeplatError, match="can't write below"):
        unpack(archive((".", None, {}), ("./sub", None, {}), ("./sub/b", b"bad", {})), "/srv/.", target)
    assert tree(outside) == {"b": "kept"}


@pytest.mark.parametrize("cut", [700, 1400])
def test_a_broken_archive(tmp_path: Path, cut: int) -> None:
    """A file that was cut off is not there, not even in part."""
    whole = archive(("./x", None, {}), ("./x/a", b"X" * 2000, {})).getvalue()

    with contextlib.suppress(ComposeplatError):
        unpack(io.BytesIO(whole[:cut]), "/x", tmp_path / "x")
    assert tree(tmp_path) == {}


class Endless(io.RawIOBase):
    """An archive of one header, which announces more than a machine has memory for; and how much of it was read."""

    def __init__(self, kind: bytes) -> None:
        info = tarfile.TarInfo("x")
        info.type, info.size = kind, 2**40
        self.head = info.tobuf(tarfile.GNU_FORMAT)
        self.size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        start = self.head[self.size : self.size + len(buffer)]
        buffer[: len(start)] = start
        self.size += len(buffer)
        assert self.size < 4 * 1024 * 1024
        return len(buffer)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
def test_a_header_without_end(tmp_path: Path, kind: bytes) -> None:
    """The headers of an archive take little memory, whatever size the container gives them."""
    with pytest.raises(ComposeplatError, match="sent is broken: a header is too large"):
        unpack(io.BufferedReader(Endless(kind)), "/x", tmp_path)


def test_headers_of_headers(tmp_path: Path) -> None:
    """Thousands of headers that each belong to the next one end in an error, not in a traceback."""
    info = tarfile.TarInfo("x")
    info.type = tarfile.XHDTYPE

    with pytest.raises(ComposeplatError, match="sent is broken: too many headers follow each other"):
        unpack(io.BytesIO(info.tobuf() * 5000), "/x", tmp_path)


@pytest.mark.parametrize("kept", [b"\x00" * 512, b"\xff" * 600, b"no archive"])
def test_no_archive_at_all(tmp_path: Path, kept: bytes) -> None:
    assert unpack(io.BytesIO(kept), "/x", tmp_path) == Copied()


@pytest.mark.parametrize(
    ("path", "args"),
    [
        ("/etc/x", ("tar", "-cf", "-", "-C", "/etc", "./x")),
        ("/etc/-x/", ("tar", "-cf", "-", "-C", "/etc", "./-x")),
        ("/etc/.", ("tar", "-cf", "-", "-C", "/etc", ".")),
        ("/", ("tar", "-cf", "-", "-C", "/", ".")),
    ],
)
def test_the_command_that_packs(path: str, args: tuple[str, ...]) -> None:
    assert pack_args(path) == args


@pytest.mark.parametrize(
    ("target", "options", "place"),
    [
        ("/data", {"content_only": False, "is_folder": True}, ("/data", "shop")),
        ("/data", {"content_only": True, "is_folder": True}, ("/data", "")),
        ("/data/new", {"content_only": False, "is_folder": False}, ("/data", "new")),
        ("/data/new/", {"content_only": True, "is_folder": False}, ("/data", "new")),
    ],
)
def test_the_place_in_a_container(target: str, options: dict[str, bool], place: tuple[str, str]) -> None:
    assert place_in_container(Path("shop"), target, **options) == place


def test_packing_and_unpacking(tmp_path: Path) -> None:
    """By the program of this machine: files, folders, modes, and links as links."""
    source = tmp_path / "source"
    (source / "sub" / "empty").mkdir(parents=True)
    (source / "sub" / "a").write_text("A")
    (source / "sub" / "a").chmod(0o751)
    (source / "link").symlink_to("sub/a")
    os.mkfifo(source / "pipe")
    sent = io.BytesIO()
    copied = pack(source, "new", sent)
    (tmp_path / "target").mkdir()
    subprocess.run(unpack_args(str(tmp_path / "target")), input=sent.getvalue(), check=True)

    assert (copied.files, copied.size, copied.omitted) == (1, 1, ["pipe"])
    assert tree(tmp_path / "target") == {"new/link": "sub/a", "new/sub/a": "A"}
    assert (tmp_path / "target" / "new" / "sub" / "empty").is_dir()
    assert os.stat(tmp_path / "target" / "new" / "sub" / "a").st_mode & 0o777 == 0o751


def test_a_file_is_unpacked_as_a_file(tmp_path: Path) -> None:
    """Also by GNU tar, to which a name that ends with a slash is that of a folder."""
    (tmp_path / "dump.sql").write_text("A")
    sent = io.BytesIO()
    pack(tmp_path / "dump.sql", "new.sql", sent)
    (tmp_path / "target").mkdir()
    subprocess.run(unpack_args(str(tmp_path / "target")), input=sent.getvalue(), check=True)
    assert tree(tmp_path / "target") == {"new.sql": "A"}
    sent.seek(0)
    with tarfile.open(fileobj=sent) as tar:
        assert [(info.name, info.isreg()) for info in tar] == [("./new.sql", True)]


def test_a_source_that_can_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that leads nowhere and a file that may not be read are messages; a broken pipe is left to the caller."""
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(ComposeplatError, match=r"can't read '.*nowhere': No such file or directory"):
        pack(tmp_path / "link", "x", io.BytesIO())

    (tmp_path / "loop").symlink_to("loop")
    sent = io.BytesIO()
    with pytest.raises(ComposeplatError, match=r"can't read '.*/loop': Too many levels of symbolic links"):
        pack(tmp_path / "loop", "x", sent)
    assert not sent.getvalue().strip(b"\0")

    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "secret").write_text("x")

    def refuse(path: str, *_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(ComposeplatError, match=r"can't read '.*/folder/secret': Permission denied"):
        pack(tmp_path / "folder", "x", io.BytesIO())
    monkeypatch.undo()

    class Closed(io.BytesIO):
        def write(self, _: object) -> int:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        pack(tmp_path / "folder", "x", Closed())
