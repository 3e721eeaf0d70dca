"""Who deploys, and from which commit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from composeplat.compose.load.repository import Commit, find_commit
from composeplat.engine.deployer import Deployer, find_deployer, find_user, start_git_status
from tests.compose.test_repository import git, repository

PATH = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}


@pytest.mark.parametrize(
    ("variables", "who"),
    [
        ({}, "ann@laptop"),
        ({"SUDO_USER": "bob"}, "bob@laptop"),
        ({"GITHUB_ACTOR": "cleo", "SUDO_USER": "bob"}, "cleo (GitHub Actions)"),
        ({"GITLAB_USER_LOGIN": "cleo"}, "cleo (GitLab CI)"),
        ({"CIRCLE_USERNAME": "cleo"}, "cleo (CircleCI)"),
        ({"BUILDKITE_BUILD_CREATOR": "Cleo C."}, "Cleo C. (Buildkite)"),
        ({"BUILD_REQUESTEDFOR": "Cleo C."}, "Cleo C. (Azure Pipelines)"),
        ({"GITHUB_ACTOR": ""}, "ann@laptop"),
    ],
)
def test_who(variables: dict[str, str], who: str) -> None:
    """The user of the machine, before `sudo`; in a job of a CI system, the user who started it."""
    assert find_user(variables, "ann", "laptop") == who


def test_a_commit_and_its_branch(tmp_path: Path) -> None:
    """With the answer of git about changes: a file that it does not know counts, one that it ignores does not."""
    tree = repository(tmp_path / "shop")
    git(tree, "checkout", "-q", "-b", "feature/cart")
    (tree / ".gitignore").write_text("*.log\n")
    git(tree, "add", ".")
    git(tree, "commit", "-q", "-m", "second")
    (tree / "a.log").touch()

    found = find_deployer(PATH, tree, "ann", "laptop")

    commit = find_commit(tree)
    assert commit
    assert found == Deployer(who="ann@laptop", commit=commit.hash, branch="feature/cart")
    assert found.find_dirty() is False
    (tree / "new").touch()
    assert find_deployer(PATH, tree, "ann", "laptop").find_dirty() is True


@pytest.mark.parametrize(
    ("variables", "branch"),
    [
        ({"GITHUB_REF_NAME": "main"}, "main"),
        ({"GITHUB_HEAD_REF": "cart", "GITHUB_REF_NAME": "3/merge"}, "cart"),
        ({"CI_COMMIT_REF_NAME": "cart"}, "cart"),
        ({"CIRCLE_BRANCH": "cart"}, "cart"),
        ({"BUILDKITE_BRANCH": "cart"}, "cart"),
        ({"BUILD_SOURCEBRANCHNAME": "cart"}, "cart"),
        ({}, ""),
    ],
)
def test_the_branch_of_a_job(variables: dict[str, str], branch: str, tmp_path: Path) -> None:
    """A CI system checks out a commit, and has the branch in a variable."""
    tree = repository(tmp_path / "shop")
    git(tree, "checkout", "-q", "--detach")

    assert find_deployer({**PATH, **variables}, tree, "ann", "x").branch == branch


def test_outside_of_a_repository(tmp_path: Path) -> None:
    """There is no commit, and nothing is asked of git."""
    assert find_deployer(PATH, None, "ann", "laptop") == Deployer(who="ann@laptop")
    git(tmp_path, "init", "-q")
    found = find_deployer(PATH, tmp_path, "ann", "laptop")
    assert found == Deployer(who="ann@laptop")
    assert found.find_dirty() is None


def test_git_that_does_not_answer(tmp_path: Path) -> None:
    """Without git, or where it fails, it is not known whether there are changes."""
    tree = repository(tmp_path / "shop")

    assert start_git_status(tree, {"PATH": str(tmp_path)})() is None
    (tree / ".git" / "index").write_text("broken")
    assert start_git_status(tree, PATH)() is None


def test_no_program_of_the_repository_runs(tmp_path: Path) -> None:
    """A repository may configure a monitor of its files, and a hook of git may name another repository."""
    tree = repository(tmp_path / "shop")
    monitor = tmp_path / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    monitor.chmod(0o755)
    git(tree, "config", "core.fsmonitor", str(monitor))

    assert start_git_status(tree, {**PATH, "GIT_DIR": str(tmp_path / "nowhere")})() is False
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "header",
    ['[filter "ours"]', "[Filter.ours]", '[core] [filter "ours"]', "[include]\npath = ../more\n[x]"],
    ids=["section", "older-form", "same-line", "included"],
)
def test_no_filter_of_the_repository_runs(tmp_path: Path, header: str) -> None:
    """A filter converts each file that git reads; whether there are changes is then not known."""
    tree = repository(tmp_path / "shop")
    (tree / "a").write_text("text\n")
    git(tree, "add", ".")
    git(tree, "commit", "-q", "-m", "second")
    (tree / ".gitattributes").write_text("* filter=ours\n")
    command = f"clean = touch '{tmp_path / 'ran'}'\n"
    (tree / "more").write_text(f'[filter "ours"]\n{command}')
    with (tree / ".git" / "config").open("a") as config:
        config.write(f"{header}\n{command}")
    # Git reads a file again whose time differs.
    os.utime(tree / "a", (1, 1))

    assert start_git_status(tree, PATH)() is None
    assert not (tmp_path / "ran").exists()


def test_a_configuration_that_is_not_read(tmp_path: Path) -> None:
    """Git reads one of any size: one that is too large to be read first may name programs."""
    tree = repository(tmp_path / "shop")
    with (tree / ".git" / "config").open("a") as config:
        config.write("#" * 1024 * 1024)

    assert start_git_status(tree, PATH)() is None


def test_no_program_of_a_submodule_runs(tmp_path: Path) -> None:
    """A submodule has a configuration of its own: other changes are found, and without any it is not known."""
    tree, part = repository(tmp_path / "shop"), repository(tmp_path / "shop" / "part")
    (part / "a").write_text("text\n")
    (part / ".gitattributes").write_text("* filter=ours\n")
    git(part, "add", ".")
    git(part, "commit", "-q", "-m", "second")
    (tree / ".gitmodules").write_text('[submodule "part"]\npath = part\nurl = ./part\n')
    git(tree, "add", ".")
    git(tree, "commit", "-q", "-m", "second")
    git(part, "config", "filter.ours.clean", f"touch '{tmp_path / 'ran'}'")
    os.utime(part / "a", (1, 1))

    assert start_git_status(tree, PATH)() is None
    (tree / "new").touch()
    assert start_git_status(tree, PATH)() is True
    assert not (tmp_path / "ran").exists()


def test_no_program_of_a_partial_clone_runs(tmp_path: Path) -> None:
    """A clone that lacks objects names the program that gets them."""
    tree = repository(tmp_path / "shop")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{tmp_path / 'ran'}'\n")
    program.chmod(0o755)
    settings = {"url": str(tmp_path), "promisor": "true", "uploadpack": str(program)}
    for name, value in settings.items():
        git(tree, "config", f"remote.origin.{name}", value)
    hash_ = head(tree)
    (tree / ".git" / "objects" / hash_[:2] / hash_[2:]).unlink()

    assert start_git_status(tree, PATH)() is None
    assert not (tmp_path / "ran").exists()


def test_a_folder_above_is_not_asked(tmp_path: Path) -> None:
    """A folder with a broken repository may lie in a repository that names programs."""
    repository(tmp_path)
    tree = repository(tmp_path / "shop")
    (tree / ".git" / "config").write_text("broken [")
    git(tmp_path, "config", "core.fsmonitor", "false")
    (tree / ".git" / "objects").rename(tmp_path / "objects")

    assert start_git_status(tree, PATH)() is None


# commits, by git's own files ------------------------------------------------------------------------------------------


def head(tree: Path) -> str:
    found = find_commit(tree)
    assert found
    return found.hash


def test_a_packed_branch(tmp_path: Path) -> None:
    """Git packs branches that are not used for a while."""
    tree = repository(tmp_path / "shop")
    before = find_commit(tree)
    git(tree, "pack-refs", "--all")

    assert before is not None
    assert not (tree / ".git" / "refs" / "heads" / before.branch).exists()
    assert find_commit(tree) == before


def test_a_linked_work_tree(tmp_path: Path) -> None:
    """A further work tree has a commit and branch of its own."""
    tree = repository(tmp_path / "shop")
    git(tree, "worktree", "add", "-q", "-b", "second", str(tmp_path / "second"))
    git(tmp_path / "second", "commit", "-q", "--allow-empty", "-m", "second")

    found = find_commit(tmp_path / "second")

    assert found is not None
    assert found.branch == "second"
    assert found.hash != head(tree)


@pytest.mark.parametrize(
    "text", ["", "ref: ../../secret", "ref: refs/../../../secret", "ref: refs/heads/none", "x" * 40, "ref:"]
)
def test_a_head_that_names_no_commit(tmp_path: Path, text: str) -> None:
    """A repository of others may have anything there."""
    tree = repository(tmp_path / "shop")
    (tmp_path / "secret").write_text("a" * 40)
    (tree / ".git" / "HEAD").write_text(text)

    assert find_commit(tree) is None


def test_no_branch(tmp_path: Path) -> None:
    """A commit may be checked out without a branch; a folder in no repository has none."""
    tree = repository(tmp_path / "shop")
    before = head(tree)
    git(tree, "checkout", "-q", "--detach")

    assert find_commit(tree) == Commit(before)
    assert find_commit(tmp_path) is None
