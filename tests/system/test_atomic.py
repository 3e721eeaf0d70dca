"""Files and folders are whole or not there, private where they must be, and nothing stays beside them."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from composeplat.system.atomic import (
    WritableByOthers,
    create_private,
    make_private_folder,
    make_protected_folder,
    remove_leftovers,
    replace_folder,
    replace_link,
    write_file,
    write_private,
)
from tests.conftest import ROOT

#: Runs a writer in a process that is killed in the moment before it renames or links.
KILLED = """
import os, signal, sys
from pathlib import Path
from composeplat.system import atomic
os.replace = os.link = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
path = Path(sys.argv[1])
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def run_killed(script: str, path: Path) -> None:
    """Run a writer that is killed when it has written and not yet renamed."""
    done = subprocess.run([sys.executable, "-c", KILLED + script, str(path)], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL


# files ----------------------------------------------------------------------------------------------------------------


def test_write_private(tmp_path: Path) -> None:
    """A file is written for its owner alone, with the folders it needs, and nothing stays beside it."""
    path = tmp_path / "a" / "b"

    write_private(path, "grüße")

    assert path.read_bytes() == "grüße".encode()
    assert mode(path) == 0o600
    assert [path] == list(path.parent.iterdir())


def test_write_private_replaces_a_public_file(tmp_path: Path) -> None:
    """What is written takes the place of what was there, and is private."""
    path = tmp_path / "a"
    path.write_text("before")
    path.chmod(0o644)

    write_private(path, "after")

    assert (path.read_text(), mode(path)) == ("after", 0o600)


def test_write_private_is_never_public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is private from the moment it exists, not only once it has its name."""
    modes: list[int] = []
    replaced = Path.replace

    def replace(staged: Path, target: Path) -> Path:
        modes.append(mode(staged))
        return replaced(staged, target)

    monkeypatch.setattr(Path, "replace", replace)
    write_private(tmp_path / "a", "secret")

    assert modes == [0o600]


def test_write_private_does_not_follow_a_link(tmp_path: Path) -> None:
    """A link in the place of the file is replaced, and what it points to is left alone."""
    (tmp_path / "other").write_text("of somebody")
    (tmp_path / "a").symlink_to(tmp_path / "other")

    write_private(tmp_path / "a", "secret")

    assert (tmp_path / "other").read_text() == "of somebody"
    assert not (tmp_path / "a").is_symlink()


@pytest.mark.parametrize("writer", ["write_private", "write_file"])
def test_a_kill_before_the_rename_leaves_the_old_file(tmp_path: Path, writer: str) -> None:
    """A writer that is killed when all is written but the name leaves the old file; the next one replaces it."""
    path = tmp_path / "a"
    path.write_text("before")

    run_killed(f"atomic.{writer}(path, 'after')", path)

    assert path.read_text() == "before"
    write_file(path, "after")
    assert path.read_text() == "after"


def test_a_kill_leaves_no_half_new_file(tmp_path: Path) -> None:
    """A writer of a new file that is killed leaves no file of that name, and its text for nobody else to read."""
    path = tmp_path / "a"

    run_killed("atomic.create_private(path, 'secret')", path)

    assert not path.exists()
    assert [mode(left) for left in tmp_path.iterdir()] == [0o600]


@pytest.mark.parametrize("write", [write_private, write_file])
def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, write: Callable[[Path, str], None]) -> None:
    """What can't be written leaves what was there, and nothing beside it."""
    path = tmp_path / "a"
    path.write_text("before")

    with pytest.raises(UnicodeEncodeError):
        write(path, "\udc00")

    assert path.read_text() == "before"
    assert [path] == list(tmp_path.iterdir())


def refuse_links(*_: object, **__: object) -> None:
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


@pytest.mark.parametrize("has_links", [True, False], ids=["ext4", "FAT"])
def test_create_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_links: bool) -> None:
    """A file is created once; the second writer is reported, the first text stays, and nothing stays beside it."""
    path = tmp_path / "a"
    if not has_links:
        monkeypatch.setattr("os.link", refuse_links)

    assert create_private(path, "first")
    assert not create_private(path, "second")

    assert (path.read_text(), mode(path)) == ("first", 0o600)
    assert [path] == list(tmp_path.iterdir())


def test_write_file_has_the_usual_mode(tmp_path: Path) -> None:
    """A file that is no secret has the mode that any new file has; a long name is no hindrance."""
    (tmp_path / "usual").touch()
    path = tmp_path / ("n" * 255)

    write_file(path, "\udcff", errors="backslashreplace")

    assert mode(path) == mode(tmp_path / "usual")
    assert path.read_text() == r"\udcff"


# links and folders ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_write_file_keeps_the_mode(tmp_path: Path, mode: int) -> None:
    """A file that its owner has closed to others stays closed when it is replaced."""
    path = tmp_path / "own.yaml"
    path.touch()
    path.chmod(mode)
    write_file(path, "new")

    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", mode)


def test_replace_link(tmp_path: Path) -> None:
    """A link is made, and then points elsewhere, without a moment in which there is none."""
    link = tmp_path / "link"

    for target in (tmp_path / "a", tmp_path / "b"):
        replace_link(link, target)
        assert link.readlink() == target

    assert [link] == list(tmp_path.iterdir())


def test_make_private_folder(tmp_path: Path) -> None:
    """A folder is made private; one that exists stays as it is."""
    tmp_path.chmod(0o755)

    make_private_folder(tmp_path)
    make_private_folder(tmp_path / "a")

    assert (mode(tmp_path), mode(tmp_path / "a")) == (0o755, 0o700)


@pytest.mark.parametrize("before", [0o777, 0o1777, 0o720])
def test_make_protected_folder(tmp_path: Path, before: int) -> None:
    """A folder that is made is private; one that others can write in is refused, and stays as it is."""
    folder = tmp_path / "a"
    make_protected_folder(folder)
    made = mode(folder)
    folder.chmod(before)

    with pytest.raises(WritableByOthers) as caught:
        make_protected_folder(folder)

    assert caught.value.filename == str(folder)
    assert (made, mode(folder)) == (0o700, before)


def test_replace_folder(tmp_path: Path) -> None:
    """A folder takes the place of the one before when it is complete; it is private where that is wanted."""
    folder = tmp_path / "deep" / "a"
    for private, expected in ((True, 0o700), (False, 0o755)):
        with replace_folder(folder, private=private) as staged:
            (staged / str(private)).touch()
        assert mode(folder) == expected

    assert [path.name for path in folder.iterdir()] == ["False"]
    assert [folder] == list(folder.parent.iterdir())


def test_replace_folder_that_fails(tmp_path: Path) -> None:
    """A block that fails leaves the folder as it was, and nothing beside it."""
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "before").touch()

    def fail() -> None:
        with replace_folder(folder) as staged:
            (staged / "half").touch()
            raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        fail()

    assert [path.name for path in folder.iterdir()] == ["before"]
    assert [folder] == list(tmp_path.iterdir())


def test_replace_a_folder_with_closed_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of a user's folders, which may be read-only, is replaced each time, and nothing is left beside it."""
    tmp_path.chmod(0o777)
    monkeypatch.chdir(tmp_path)
    folder, user = Path("folder"), os.geteuid()
    # Root could remove all of it anyway.
    os.seteuid(user or 65534)
    try:
        for text in ("one", "two"):
            with replace_folder(folder) as staged:
                (staged / "closed" / "deep").mkdir(parents=True)
                (staged / "closed" / "deep" / "file").write_text(text)
                (staged / "closed" / "deep").chmod(0o555)
                (staged / "closed").chmod(0o555)
        found = (folder / "closed" / "deep" / "file").read_text()
    finally:
        os.seteuid(user)

    assert found == "two"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_remove_leftovers(tmp_path: Path) -> None:
    """What killed writers left of a folder goes; other folders stay."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    run_killed("import shutil\nwith atomic.replace_folder(path) as staged: (staged / 'half').touch()", tmp_path / "a")
    assert len(list(tmp_path.iterdir())) == 2

    remove_leftovers(tmp_path / "a")

    assert [path.name for path in tmp_path.iterdir()] == ["b"]
