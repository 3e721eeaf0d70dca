"""Who deploys, and from which commit, for the history of an environment.

Owns the variables of CI systems that name these, and asking git whether a work tree has changes.
Must not need git: without it, the commit is known from git's own files, and whether there are changes is not known.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path

from composeplat.compose.load.repository import find_commit, may_name_programs
from composeplat.system.records import record

#: The variables in which CI systems name the user who started a job.
_CI_USERS = {
    "GITHUB_ACTOR": "GitHub Actions",
    "GITLAB_USER_LOGIN": "GitLab CI",
    "CIRCLE_USERNAME": "CircleCI",
    "BUILDKITE_BUILD_CREATOR": "Buildkite",
    "BUILD_REQUESTEDFOR": "Azure Pipelines",
}
#: They check out a commit, not a branch.
_CI_BRANCHES = (
    "GITHUB_HEAD_REF",
    "GITHUB_REF_NAME",
    "CI_COMMIT_REF_NAME",
    "CIRCLE_BRANCH",
    "BUILDKITE_BRANCH",
    "BUILD_SOURCEBRANCHNAME",
)
#: A work tree with a million files takes longer; then it is not known.
_GIT_TIMEOUT_S = 10.0
#: A monitor of the file system is a program, and a repository without a work tree may lie in one.
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit")
_STATUS = ("status", "--porcelain", "--no-renames", "--ignore-submodules=dirty")


def _unknown() -> bool | None:
    return None


@record(kw_only=True)
class Deployer:
    who: str
    commit: str = ""
    """Empty outside of a git repository."""
    branch: str = ""
    find_dirty: Callable[[], bool | None] = field(default=_unknown, compare=False)
    """Waits for the answer of git."""


def find_user(environment: Mapping[str, str], user: str, host: str) -> str:
    """Return who deploys: the user who started a job of a CI system, else the user of a machine."""
    for variable, system in _CI_USERS.items():
        if environment.get(variable):
            return f"{environment[variable]} ({system})"
    return f"{environment.get('SUDO_USER') or user}@{host}"


def find_deployer(environment: Mapping[str, str], work_tree: Path | None, user: str, host: str) -> Deployer:
    """Find who deploys from a work tree; git is asked meanwhile."""
    who = find_user(environment, user, host)
    commit = find_commit(work_tree) if work_tree is not None else None
    if work_tree is None or commit is None:
        return Deployer(who=who)
    branch = commit.branch or next((environment[name] for name in _CI_BRANCHES if environment.get(name)), "")
    dirty = start_git_status(work_tree, environment)
    return Deployer(who=who, commit=commit.hash, branch=branch, find_dirty=dirty)


def start_git_status(work_tree: Path, environment: Mapping[str, str]) -> Callable[[], bool | None]:
    """Let git look for changes; the result waits until it has, and is None if git can't say.

    Git is not asked where it would run programs that the repository names: it may come from a stranger.
    """
    answers: list[bool] = []

    def ask() -> None:
        try:
            if may_name_programs(work_tree):
                return
            done = subprocess.run(
                [*_GIT, "-C", str(work_tree), *_STATUS],
                env=_git_variables(environment, work_tree),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_GIT_TIMEOUT_S,
                check=False,
            )
        except (OSError, ValueError, subprocess.SubprocessError):
            return
        # Changes in submodules are not known: each has a configuration of its own.
        if done.returncode == 0 and (done.stdout or not os.path.lexists(work_tree / ".gitmodules")):
            answers.append(bool(done.stdout))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()

    def wait() -> bool | None:
        thread.join(_GIT_TIMEOUT_S)
        return answers[0] if answers else None

    return wait


def _git_variables(environment: Mapping[str, str], work_tree: Path) -> dict[str, str]:
    # A hook of git sets variables that name another repository.
    variables = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    return {
        **variables,
        # Locks are for writing the index, after which a hook runs.
        "GIT_OPTIONAL_LOCKS": "0",
        # A partial clone fetches what it lacks, through programs that it names.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "",
        # If this is no repository for git, a folder above it may be one.
        "GIT_CEILING_DIRECTORIES": str(work_tree.parent),
    }
