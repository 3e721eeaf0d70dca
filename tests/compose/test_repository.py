"""The repository a folder is in, by git's own files, as git itself writes them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from composeplat.compose.load.repository import Repository, find_repository, parse_remotes

URL = "https://github.com/acme/shop.git"


def git(folder: Path, *args: str) -> None:
    """Run git without anybody's configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    author = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *author, *args], cwd=folder, env=environment, check=True, capture_output=True)


def repository(folder: Path, remote: str = URL) -> Path:
    git(folder, "init", "-q")
    git(folder, "remote", "add", "origin", remote)
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def test_in_a_work_tree(tmp_path: Path) -> None:
    """A folder anywhere in a work tree is of that repository."""
    tree = repository(tmp_path / "shop")
    (tree / "a" / "b").mkdir(parents=True)

    assert find_repository(tree) == find_repository(tree / "a" / "b") == Repository(tree, URL)


def test_by_a_link(tmp_path: Path) -> None:
    """What a link leads to is what counts."""
    tree = repository(tmp_path / "shop")
    (tmp_path / "link").symlink_to(tree)

    assert find_repository(tmp_path / "link") == Repository(tree, URL)


def test_no_repository(tmp_path: Path) -> None:
    """A folder in no work tree has none, and nor has one that is not there; an empty `.git` is none."""
    (tmp_path / ".git").mkdir()

    assert find_repository(tmp_path) is None
    assert find_repository(tmp_path / "not-there") is None
    assert find_repository(Path("a\0b")) is None


def test_a_linked_work_tree(tmp_path: Path) -> None:
    """A further work tree has the remotes of its repository."""
    tree = repository(tmp_path / "shop")
    git(tree, "worktree", "add", "-q", str(tmp_path / "second"))

    assert find_repository(tmp_path / "second") == Repository(tmp_path / "second", URL)


def test_a_submodule(tmp_path: Path) -> None:
    """A submodule is a repository of its own."""
    tree = repository(tmp_path / "shop")
    repository(tmp_path / "part", "https://example.com/part")
    git(tree, "submodule", "add", "-q", str(tmp_path / "part"), "inner")

    assert find_repository(tree / "inner") == Repository(tree / "inner", str(tmp_path / "part"))


def test_other_remotes(tmp_path: Path) -> None:
    """Without an `origin` the first by name counts; without any there is none."""
    git(tmp_path, "init", "-q")
    assert find_repository(tmp_path) == Repository(tmp_path, "")

    for name in ("b", "a"):
        git(tmp_path, "remote", "add", name, f"https://example.com/{name}")
    assert find_repository(tmp_path) == Repository(tmp_path, "https://example.com/a")


@pytest.mark.parametrize(
    ("text", "remotes"),
    [
        ("", {}),
        ("url = x\n[core]\nurl = y\n", {}),
        ('[remote "origin"]\n\turl = x ; comment\n\turl = second\n', {"origin": "x"}),
        ('[Remote "origin"]\r\n\tURL=x\r\n', {"origin": "x"}),
        ('[remote "a\\"b"]\nurl = "x#y" # comment\n', {'a"b': "x#y"}),
        ('[remote "a"]\nurl = x\\\ny\n', {"a": "xy"}),
        ('[remote "a"]\nurl = x\n[branch "a"]\nurl = y\n', {"a": "x"}),
        ('[remote "a"]\nurl\n', {}),
        ("[remote]\nurl = x\n", {}),
    ],
)
def test_configuration(text: str, remotes: dict[str, str]) -> None:
    """Remotes are read as git reads them; whatever else is there is passed by."""
    assert parse_remotes(text) == remotes


def test_a_pipe_for_a_configuration(tmp_path: Path) -> None:
    """A hostile repository can't make a deploy hang."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").touch()
    os.mkfifo(tmp_path / ".git" / "config")

    assert find_repository(tmp_path) == Repository(tmp_path, "")
