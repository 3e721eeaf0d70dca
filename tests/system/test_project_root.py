"""Which folder a project is, and which paths lie in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from composeplat.system.project_root import ProjectRoot, find_project_root, is_inside, resolve


@pytest.mark.parametrize(
    ("root", "path", "expected"),
    [
        pytest.param("/a/b", "/a/b", True, id="the folder itself"),
        pytest.param("/a/b", "/a/b/c/d", True, id="below it"),
        pytest.param("/a/b", "/a", False, id="above it"),
        pytest.param("/a/b", "/a/bc", False, id="a name that begins with its name"),
        pytest.param("/", "/a", True, id="the whole machine"),
    ],
)
def test_inside(root: str, path: str, expected: bool) -> None:  # noqa: FBT001 -- the expected value
    """A path is inside where it is the folder or lies below it."""
    assert expected is is_inside(root, path)


def test_the_enclosing_work_tree(tmp_path: Path) -> None:
    """The project is the git work tree that a folder is in: a clone, a worktree or a submodule; else the folder."""
    inner = tmp_path / "repository" / "deploy"
    inner.mkdir(parents=True)
    assert find_project_root(inner, "/home/ann") == str(inner)

    (tmp_path / "repository" / ".git").mkdir()
    assert find_project_root(inner, "/home/ann") == str(tmp_path / "repository")

    (inner / ".git").write_text("gitdir: elsewhere\n")
    assert find_project_root(inner, "/home/ann") == str(inner)


def test_a_home_folder_under_git(tmp_path: Path) -> None:
    """A home folder whose settings are kept in git does not make all of it one project."""
    (tmp_path / ".git").mkdir()
    inner = tmp_path / "shop"
    inner.mkdir()

    assert find_project_root(inner, str(tmp_path)) == str(inner)


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root: run the tests as root")
def test_a_work_tree_of_someone_else(tmp_path: Path) -> None:
    """A neighbour who makes a work tree in a folder for all does not make it a part of ours."""
    (tmp_path / ".git").mkdir()
    os.chown(tmp_path / ".git", 12345, 12345)
    inner = tmp_path / "shop"
    inner.mkdir()

    assert find_project_root(inner, "/home/ann") == str(inner)


def test_links_are_followed_first(tmp_path: Path) -> None:
    """What counts is where a path leads: through links, and where nothing is there yet."""
    inner = tmp_path / "shop"
    inner.mkdir()
    (inner / "out").symlink_to(tmp_path)
    (tmp_path / "in").symlink_to(inner)
    root = ProjectRoot(str(inner))

    assert root.allows(tmp_path / "in" / "later")
    assert root.allows(inner / "out" / "shop" / "a")
    assert not root.allows(inner / "out" / "a")
    assert not root.allows(inner / "later" / ".." / ".." / "a")
    assert ProjectRoot(str(inner), allow_outside=True).allows("/anywhere")


def test_no_possible_path() -> None:
    """A text that can be no path is no error here: who opens it says so."""
    assert resolve("/a\0b") == "/ab"
