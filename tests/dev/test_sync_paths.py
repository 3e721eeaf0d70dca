"""What the disk says of sync paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from composeplat.compose.model import HOST, Mount, Service
from composeplat.dev.sync_paths import find_link, sync_paths
from composeplat.dev.sync_rules import SyncPath
from composeplat.diagnostics import ComposeplatError


@pytest.mark.parametrize(
    ("local", "link"),
    [
        pytest.param("real/data", "", id="none"),
        pytest.param("link", "link", id="itself"),
        pytest.param("link/data", "link", id="on-the-way"),
        pytest.param("real/nowhere", "real/nowhere", id="dangling"),
        pytest.param("", "", id="the-folder-itself"),
    ],
)
def test_a_link_in_the_project_is_found(tmp_path: Path, local: str, link: str) -> None:
    """A container replaced what was mounted from a synced folder by a link, which the next session followed."""
    (tmp_path / "real" / "data").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "nowhere").symlink_to("../none")
    path = SyncPath(local=str(tmp_path / local).rstrip("/"), remote="/app", within=str(tmp_path))
    assert find_link(path) == (str(tmp_path / link) if link else "")


def test_a_link_on_the_way_to_the_project_is_the_users(tmp_path: Path) -> None:
    """Only below the project, or what is synced, can a container have put one."""
    (tmp_path / "real" / "app").mkdir(parents=True)
    (tmp_path / "home").symlink_to("real")
    service = Service(name="web", mounts=(Mount(kind=HOST, source=str(tmp_path / "home" / "app"), target="/app"),))
    (path,) = sync_paths(service, (str(tmp_path / "home"),))
    assert (path.within, find_link(path)) == (str(tmp_path / "home"), "")
    (outside,) = sync_paths(service)
    assert (outside.within, find_link(outside)) == (str(tmp_path / "home" / "app"), "")


@pytest.mark.parametrize(("size", "is_read"), [(1024 * 1024, True), (1024 * 1024 + 1, False)])
def test_the_largest_ignore_file(tmp_path: Path, size: int, *, is_read: bool) -> None:
    """An ignore file of 1 MiB is read; a larger one is refused by its name."""
    (tmp_path / ".dockerignore").write_text("x\n".ljust(size, "#"))
    service = Service(name="web", mounts=(Mount(kind=HOST, source=str(tmp_path), target="/app"),))

    if is_read:
        assert len(sync_paths(service)) == 1
    else:
        with pytest.raises(ComposeplatError, match=r"^the ignore file '.*/\.dockerignore' "):
            sync_paths(service)


def synced(folder: Path, **texts: str) -> SyncPath:
    """Return the sync path of a folder with ignore files, by their names without the dot."""
    for name, text in texts.items():
        (folder / f".{name}").write_text(text)
    (path,) = sync_paths(Service(name="web", mounts=(Mount(kind=HOST, source=str(folder), target="/app"),)))
    return path


def test_an_ignore_file_that_includes_another(tmp_path: Path) -> None:
    """Its patterns are in the place of the line, the first that matches wins, and the container can't change it."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "all.txt").write_text("\ufeff!keep.log\n#include more.txt\n")
    (tmp_path / "rules" / "more.txt").write_text("*.tmp\n")
    path = synced(tmp_path, stignore="*.bak\n  #include rules/all.txt \n*.log\n")

    at = path.ignores.index("**/*.log")
    assert path.ignores[at : at + 4] == ("**/*.log", "**/*.tmp", "!**/keep.log", "**/*.bak")
    assert path.ignores[-2:] == ("[rR][uU][lL][eE][sS]/[aA][lL][lL].[tT][xX][tT]",
                                 "[rR][uU][lL][eE][sS]/[mM][oO][rR][eE].[tT][xX][tT]")  # fmt: skip


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param("#include", "names no file", id="none"),
        pytest.param("#include .", "names no file", id="the-folder"),
        pytest.param("#include a\0b", "names no file", id="nul"),
        pytest.param("#include none.txt", "names a file that does not exist", id="missing"),
        pytest.param("#include ../secret", "leads out of the folder, or to a link", id="outside"),
        pytest.param("#include link", "leads out of the folder, or to a link", id="link"),
        pytest.param("#include .stignore", "names a file that is included already", id="itself"),
        pytest.param("#include /a\n#include b/../a", "names a file that is included already", id="twice"),
        pytest.param("#include loop", "names a file that is included already", id="loop"),
    ],
)
def test_an_ignore_file_that_includes_what_is_not_read(tmp_path: Path, line: str, problem: str) -> None:
    """What another file excludes would be synced without a word."""
    folder = tmp_path / "app"
    folder.mkdir()
    (tmp_path / "secret").write_text("x")
    (folder / "link").symlink_to("../secret")
    (folder / "a").write_text("x")
    (folder / "loop").write_text("#include .stignore")

    with pytest.raises(ComposeplatError, match=rf"^line \d of the ignore file '.*' {problem}: '#include"):
        synced(folder, stignore=f"*.log\n{line}\n")
