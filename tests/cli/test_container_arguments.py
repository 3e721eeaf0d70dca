"""Arguments for a container, and what its programs answer, without a cluster."""

from __future__ import annotations

import os

import pytest

from composeplat.cli.cp import _check, _is_warning
from composeplat.dev.container_commands import Command
from composeplat.diagnostics import ComposeplatError
from tests.conftest import Project

FILE = {"compose.yaml": "services: {web: {image: busybox}}"}
ODD = os.fsdecode(b"a\xe9")


@pytest.mark.parametrize(
    ("args", "parameter"),
    [
        (("exec", "web", "cat", ODD), "COMMAND"),
        (("run", "web", "cat", ODD), "COMMAND"),
        (("run", "-e", f"A={ODD}", "web", "cat"), "--env"),
        (("run", "-w", ODD, "web", "cat"), "--workdir"),
        (("run", "--entrypoint", ODD, "web"), "--entrypoint"),
        (("up", "web", "--", "cat", ODD), "COMMAND"),
        (("up", "-e", f"A={ODD}", "web"), "--env"),
        (("cp", f"web:/{ODD}", "."), "SERVICE:PATH"),
    ],
)
def test_texts_that_are_not_utf8(project: Project, args: tuple[str, ...], parameter: str) -> None:
    """They are refused, before anything is asked of a cluster: other characters reached the container."""
    done = project(FILE).run(*args)
    assert done.status == 2
    assert f"Invalid value for {parameter}: must be UTF-8, as Kubernetes takes nothing else" in done.stderr


@pytest.mark.parametrize("command", ["run", "up"])
def test_the_value_of_a_variable_that_is_not_utf8(project: Project, command: str) -> None:
    """It comes from the shell, and may be a secret: the message has the name alone."""
    done = project(FILE).run(command, "-e", "API_TOKEN", "web", API_TOKEN=os.fsdecode(b"hidden\xe9"))
    assert done.status == 2
    assert "the value of API_TOKEN is not" in done.stderr
    assert "hidden" not in done.stderr


@pytest.mark.parametrize(
    ("status", "complaint", "is_warning"),
    [
        (1, "tar: ./log: file changed as we read it\ntar: ./tmp: File removed before we read it", True),
        (1, "tar: ./log: file changed as we read it\ntar: ./key: Cannot open: Permission denied", False),
        (2, "tar: ./log: file changed as we read it", False),
        (1, "", False),
    ],
)
def test_a_file_that_is_written_while_it_is_copied(status: int, complaint: str, *, is_warning: bool) -> None:
    """GNU tar has copied it, and ends with status 1: this failed, although all files were here."""
    assert _is_warning(status, complaint) is is_warning


def test_why_a_copy_was_not_possible() -> None:
    """A message of the link is an error already: it had the word twice."""
    container = Command(namespace="team", pod="web-1", container="web", args=(), terminal=False)
    with pytest.raises(ComposeplatError, match=r"^unable to upgrade connection$"):
        _check(1, "error: unable to upgrade connection", container)
