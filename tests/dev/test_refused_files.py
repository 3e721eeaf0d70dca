"""Files that a container's programs refuse: their messages, and how the other files of an archive get there."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from composeplat.dev.refused_files import Refused, describe_refusals, read_refusals, unpack_in_parts

GNU_END = "tar: Exiting with failure status due to previous errors"
DENIED, EXISTS = "Permission denied", "File exists"


def archive_of(folder: Path, *names: str) -> Path:
    path = folder / "changes.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(name.encode())
            tar.addfile(member, io.BytesIO(name.encode()))
    return path


class Tar:
    """A container's ``tar``, which writes what it can until it ends."""

    def __init__(self, complain: Callable[[str], str], *, continues: bool = False) -> None:
        self.written: list[str] = []
        self.attempts: list[list[str]] = []
        self._complain, self._continues = complain, continues

    def __call__(self, archive: Path) -> str:
        with tarfile.open(archive) as tar:
            members = {member.name: (tar.extractfile(member) or io.BytesIO()).read() for member in tar}
        assert {name: name.encode() for name in members} == members
        self.attempts.append(list(members))
        complaints = []
        for name in members:
            if complaint := self._complain(name):
                complaints.append(complaint)
                if not self._continues:
                    return complaint
            else:
                self.written.append(name)
        return "\n".join([*complaints, GNU_END]) if complaints else ""


def busybox(*unwritable: str) -> Tar:
    return Tar(lambda name: f"tar: can't remove old file {name}: {DENIED}" if name in unwritable else "")


@pytest.mark.parametrize(
    ("complaint", "found", "named"),
    [
        pytest.param(
            f"tar: a/b: Cannot open: {EXISTS}\n{GNU_END}", {"a/b": EXISTS}, {"a/b"}, id="gnu"
        ),
        pytest.param(
            f"tar: a/\\303\\274 c: Cannot open: {DENIED}\ntar: a/n\\nl: Cannot open: {DENIED}\n"
            f"tar: a/c\\:d: Cannot open: {DENIED}",
            {"a/ü c": DENIED, "a/n\nl": DENIED, "a/c:d": DENIED}, {"a/ü c", "a/n\nl", "a/c:d"}, id="gnu-without-utf-8",
        ),
        pytest.param(
            f"tar: a/ü c: Cannot open: {DENIED}", {"a/ü c": DENIED}, {"a/ü c"}, id="gnu-with-utf-8"
        ),
        pytest.param(
            f"tar: new: Cannot mkdir: {DENIED}\ntar: new/x: Cannot open: No such file or directory",
            {"new/x": DENIED, "new/y/z": DENIED}, {"new/x"}, id="a-new-folder",
        ),
        pytest.param(
            f"tar: a/b: time stamp 2026-11-28 19:38:00 is 99 s in the future\ntar: a/b2: Cannot open: {DENIED}",
            {"a/b2": DENIED}, {"a/b2"}, id="a-clock-that-is-behind",
        ),
        pytest.param(
            "tar: a/b: Wrote only 1536 of 10240 bytes\ntar: a/b2: Cannot write: No space left on device",
            {"a/b": "Wrote only 1536 of 10240 bytes", "a/b2": "No space left on device"}, {"a/b", "a/b2"},
            id="gnu-full",
        ),
        pytest.param(
            "tar: can't open 'a/b': Is a directory", {"a/b": "Is a directory"}, {"a/b"}, id="busybox"
        ),
        pytest.param("tar: write error: No space left on device", {}, set(), id="busybox-full"),
        pytest.param(f"tar: a/b: Cannot open: {DENIED}\ntar: short read", {}, set(), id="in-doubt"),
        pytest.param("'" * 60_000, {}, set(), id="many-quotes"),
    ],
)  # fmt: skip
def test_messages_of_tar(complaint: str, found: Refused, named: set[str]) -> None:
    """Real messages: each names the files that were not written; none counts if one of them names no file."""
    paths = ["a/b", "a/b2", "a/ü c", "a/n\nl", "a/c:d", "new/x", "new/y/z"]

    assert read_refusals(complaint, paths) == (found, named)


def test_messages_of_rm() -> None:
    """GNU's and busybox's."""
    complaint = f"rm: cannot remove '/a b': {DENIED}\nrm: can't remove '/ü': {DENIED}\nrm: '/d' is a directory"
    assert read_refusals(complaint, ["/a b", "/ü", "/d", "/other"])[0] == {
        "/a b": DENIED, "/ü": DENIED, "/d": "is a directory",
    }  # fmt: skip


@pytest.mark.parametrize("unwritable", [["a/1"], ["a/2", "c/1"], ["c/2"], ["a/1", "a/2", "b/1", "c/1", "c/2"]])
def test_a_tar_that_ends_at_the_first_file_it_can_not_write(tmp_path: Path, unwritable: Collection[str]) -> None:
    """All others are written: those after the first were not. A folder that can't be written is tried once."""
    names = ["a/1", "a/2", "b/1", "c/1", "c/2"]
    # That a folder can't be written holds for all its files.
    folders = {name[0] for name in unwritable}
    closed = [name for name in names if name[0] in folders and name >= min(n for n in unwritable if n[0] == name[0])]
    tar = busybox(*closed)

    refused = unpack_in_parts(archive_of(tmp_path, *names), tmp_path / "part", tar)

    assert refused == dict.fromkeys(closed, DENIED)
    assert sorted(tar.written) == [name for name in names if name not in closed]
    assert len(tar.attempts) <= len(folders) + 1


def test_a_tar_that_continues_is_run_once(tmp_path: Path) -> None:
    tar = Tar(lambda name: f"tar: {name}: Cannot open: {EXISTS}" if name == "b" else "", continues=True)

    assert unpack_in_parts(archive_of(tmp_path, "a", "b", "c"), tmp_path / "part", tar) == {"b": EXISTS}
    assert (tar.written, len(tar.attempts)) == (["a", "c"], 1)


def test_a_message_without_a_file(tmp_path: Path) -> None:
    """The file is found by halves, as for a full disk with busybox."""
    tar = Tar(lambda name: "tar: write error: No space left on device" if name == "large" else "")

    refused = unpack_in_parts(archive_of(tmp_path, "a", "b", "large", "c", "d"), tmp_path / "part", tar)

    assert refused == {"large": "No space left on device"}
    assert set(tar.written) == {"a", "b", "c", "d"}


def test_attempts_have_a_limit(tmp_path: Path) -> None:
    """What was not tried is refused too, and comes first, so that the next time it is tried."""
    names = [f"folder-{number:02}/a" for number in range(20)]
    tar = busybox(*names)

    refused = unpack_in_parts(archive_of(tmp_path, *names), tmp_path / "part", tar)

    assert len(tar.attempts) == 8
    assert list(refused) == [*names[8:], *names[:8]]
    assert set(refused.values()) == {DENIED}
    assert tar.written == []


def test_the_last_attempt_may_succeed(tmp_path: Path) -> None:
    """What it wrote is not refused."""
    names = [f"folder-{number:02}/a" for number in range(8)]
    tar = busybox(*names[:7])

    assert unpack_in_parts(archive_of(tmp_path, *names), tmp_path / "part", tar) == dict.fromkeys(names[:7], DENIED)
    assert (tar.written, len(tar.attempts)) == ([names[7]], 8)


def test_the_tar_of_this_machine(tmp_path: Path) -> None:
    """A real program, into a folder that has a folder in the place of a file."""
    target = tmp_path / "there"
    (target / "a/full").mkdir(parents=True)
    (target / "a/full/x").touch()

    def run(archive: Path) -> str:
        with archive.open("rb") as content:
            args = ["tar", "-xf", "-", "-o", "-C", str(target)]
            return subprocess.run(args, stdin=content, capture_output=True, text=True, check=False).stderr.strip()

    found = unpack_in_parts(archive_of(tmp_path, "a/1", "a/full", "a/new/ü"), tmp_path / "part", run)
    assert list(found) == ["a/full"]
    assert (target / "a/1").read_text() == "a/1"
    assert (target / "a/new/ü").read_text() == "a/new/ü"


def test_descriptions() -> None:
    """Each reason has its files, some of them by name, and what there is to do."""
    own = "let the user of the container own the files: COPY --chown"
    refused = {**{f"/app/{name}": DENIED for name in "abcde"}, "/full": "No space left on device", "/x": "Odd"}

    assert list(describe_refusals(refused, "write")) == [
        f"can't write '/app/a', '/app/b', '/app/c' and 2 more, and tries again later: {DENIED}; {own}",
        "can't write '/full', and tries again later: No space left on device; make room in the container or its volume",
        "can't write '/x', and tries again later: Odd",
    ]  # fmt: skip
