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


def test_an_ignore_file_that_includes_another(tmp_path: Path) -> None:
    """What the other one excludes would be synced."""
    (tmp_path / ".stignore").write_text("*.log\n  #include .stglobalignore\n")
    service = Service(name="web", mounts=(Mount(kind=HOST, source=str(tmp_path), target="/app"),))

    expected = r"line 2 of the ignore file '.*/\.stignore' .* '#include .stglobal"
    with pytest.raises(ComposeplatError, match=expected) as failed:
        sync_paths(service)
    assert failed.value.hint == "copy the patterns of that file into .stignore"
