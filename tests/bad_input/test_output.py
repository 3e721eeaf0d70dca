"""Output: whole or not at all, and quiet where nobody reads it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from tests.conftest import VARIABLES, Folder, Project

GOOD = "services: {web: {image: nginx}}\n"
BAD = "services: {web: {image: nginx, scale: many}}\n"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def start(folder: Folder, *args: str, **streams: int | IO[Any]) -> subprocess.Popen[bytes]:
    """Start the command with streams of our choice."""
    child: subprocess.Popen[bytes] = subprocess.Popen(
        [sys.executable, "-c", "from composeplat.cli.app import main; main()", *args],
        cwd=folder.path,
        env=VARIABLES,
        **streams,  # type: ignore[call-overload]
    )
    return child


def shell(folder: Folder, command: str) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell, in which ``platform`` is the command."""
    platform = f"platform() {{ '{sys.executable}' -c 'from composeplat.cli.app import main; main()' \"$@\"; }}"
    return subprocess.run(
        ["/bin/bash", "-c", f"{platform}; set -o pipefail; {command}"],
        cwd=folder.path,
        env=VARIABLES,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# into a folder --------------------------------------------------------------------------------------------------------


def test_nothing_is_written_of_an_invalid_definition(project: Project) -> None:
    """The folder is not even made."""
    folder = project(BAD)

    folder.run("render", "-o", "out").assert_invalid()

    assert names(folder.path) == ["compose.yaml"]


def test_what_was_written_before_stays_of_an_invalid_definition(project: Project) -> None:
    """What a sound definition wrote is left as it is by one that is not."""
    folder = project(GOOD)
    folder.run("render", "-o", "out").assert_success()
    before = (folder.path / "out" / "service-web.yaml").read_bytes()

    folder.write({"compose.yaml": BAD}).run("render", "-o", "out").assert_invalid()

    assert names(folder.path / "out") == ["service-web.yaml"]
    assert before == (folder.path / "out" / "service-web.yaml").read_bytes()


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("compose.yaml", "file exists"),
        ("compose.yaml/out", "not a directory"),
        ("pipe", "file exists"),
        ("/dev/null", "file exists"),
        ("/proc/out", "no such file or directory"),
        ("a" * 300, "file name too long"),
        ("loop", "file exists"),
    ],
)
def test_a_folder_that_can_be_none(target: str, reason: str, project: Project) -> None:
    """What can't be a folder is an error, and the status says that the run failed."""
    folder = project(GOOD)
    os.mkfifo(folder.path / "pipe")
    (folder.path / "loop").symlink_to("loop")

    outcome = folder.run("render", "-o", target)

    expected = f"error: can't write into '{target}': {reason}\n  hint: choose another folder with -o\n"
    assert expected == outcome.stderr
    assert outcome.status == 1
    assert outcome.stdout == ""


def test_a_file_that_can_not_be_replaced(project: Project) -> None:
    """Where one file can't be put in its place, no half of one is left beside it."""
    folder = project({"compose.yaml": GOOD, "out/service-web.yaml/a": ""})

    outcome = folder.run("render", "-o", "out")

    assert outcome.status == 1
    assert outcome.stderr.startswith("error: can't write into 'out': is a directory\n")
    assert names(folder.path / "out") == ["service-web.yaml"]


def test_what_is_not_ours_stays(project: Project) -> None:
    """Files of other upstreams stay, whatever they are; those of services that are gone go."""
    folder = project({"compose.yaml": GOOD, "out/mine.yaml": "a: b\n", "out/junk.yaml": b"\xff\0"})
    folder.run("render", "-o", "out").assert_success()
    os.mkfifo(folder.path / "out" / "pipe.yaml")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(folder.path / "out" / "s.yaml"))

    folder.write({"compose.yaml": GOOD.replace("web", "db")}).run("render", "-o", "out", timeout=60).assert_success()

    assert names(folder.path / "out") == ["junk.yaml", "mine.yaml", "pipe.yaml", "s.yaml", "service-db.yaml"]


# to streams that are full, closed or have no reader -------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "platform render | head -1",
        "platform render --json | head -c 1",
        "platform config | head -1",
        "platform config --format json | true",
        "platform --help | head -1",
        "platform render | true",
    ],
)
def test_a_reader_that_closes_the_pipe(command: str, project: Project) -> None:
    """A reader that has seen enough is no mistake, and nothing is reported about it."""
    services = "".join(f"  web{i}: {{image: nginx, environment: {{A: {'b' * 500}}}}}\n" for i in range(200))

    done = shell(project("services:\n" + services), command)

    assert done.stderr == ""
    assert done.returncode == 0


def test_a_reader_of_messages_that_goes(project: Project) -> None:
    """Where nobody reads the messages the status still shows."""
    folder = project(BAD)

    done = shell(folder, "platform render 2>&1 >/dev/null | true")

    assert done.stderr == ""
    assert done.returncode == 3


def test_standard_output_that_is_full(project: Project) -> None:
    """A disk that is full is an error with its reason."""
    with Path("/dev/full").open("wb") as full:
        child = start(project(GOOD), "render", stdout=full, stderr=subprocess.PIPE)
        _, errors = child.communicate(timeout=60)

    assert errors == b"error: can't write the result: no space left on device\n"
    assert child.returncode == 1


@pytest.mark.parametrize("command", ["platform render >&-", "platform config >&-"])
def test_standard_output_that_is_closed(command: str, project: Project) -> None:
    """A closed output is an error too."""
    done = shell(project(GOOD), command)

    assert done.stderr == "error: can't write the result: standard output is closed\n"
    assert done.returncode == 1


@pytest.mark.parametrize(("text", "status"), [(GOOD, 0), (BAD, 3)])
def test_standard_error_that_is_closed(text: str, status: int, project: Project) -> None:
    """Where nothing can be said the result is still written, or the status shows."""
    done = shell(project(text), "platform render 2>&-")

    assert status == done.returncode
    assert (done.stdout != "") == (status == 0)


def test_standard_input_that_is_closed(project: Project) -> None:
    """A closed input is an error with its name."""
    done = shell(project(GOOD), "platform render -f - <&-")

    assert done.stderr == "<stdin>:1:1: error: '<stdin>' is closed [unreadable-file]\n1 error\n"
    assert done.returncode == 3


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16", "cp1252"])
def test_a_locale_of_other_letters(encoding: str, project: Project) -> None:
    """A result is UTF-8 whatever the locale is, as programs read it."""
    folder = project("services: {web: {image: nginx, labels: {a: 日本 é}}}")

    outcome = folder.run("render", PYTHONIOENCODING=f"{encoding}:strict").assert_success()

    assert '\n    a: "日本 é"\n' in outcome.stdout


def test_a_folder_that_is_gone(project: Project) -> None:
    """A current folder that was removed is an error, not a mistake of ours."""
    done = shell(project(GOOD), "mkdir gone; cd gone; rmdir ../gone; platform render")

    assert done.stderr == ("error: the current folder does not exist any more\n  hint: change to another folder\n")
    assert done.returncode == 1


@pytest.mark.parametrize(
    "text",
    ["contexts: 5", "contexts: {a: b}", "contexts: [1, [], {context: 2}]", "[]", "a: *b", "\0", "current-context: [a]"],
)
def test_a_kubeconfig_of_another_shape(text: str, project: Project) -> None:
    """What is no kubeconfig names no namespace, and rendering does not need it."""
    folder = project({"compose.yaml": GOOD, "kubeconfig": text})

    assert folder.run("render", KUBECONFIG="kubeconfig").assert_success().stderr == ""


def test_a_variable_that_is_no_text(project: Project) -> None:
    """Bytes of a variable that are not UTF-8 are marked, as neither YAML nor JSON could hold them."""
    folder = project("services: {web: {image: nginx, environment: [A], labels: {a: '$A'}}}")
    value = os.fsdecode(b"a\xffb")

    for args in (("render",), ("render", "--json"), ("config",), ("config", "--variables")):
        outcome = folder.run(*args, A=value).assert_success()
        assert outcome.stderr == ""
    assert "a\ufffdb" in folder.run("config", "--variables", A=value).stdout
