"""The command as a whole: help, version, usage, and what happens to errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from composeplat import __version__
from composeplat.cli.help_text import SECTIONS
from composeplat.diagnostics import Exit
from tests.conftest import ROOT, VARIABLES, Project, run, split_log_path
from tests.in_process import run_here

BROKEN = """
import composeplat.compose.load
def broken(request): raise RuntimeError('ours')
composeplat.compose.load.load = broken
from composeplat.cli.app import main; main()
"""
PRINTED = """
import composeplat.system.files
read = composeplat.system.files.read_standard_input
def told(**limit): print('reading', flush=True); return read(**limit)
composeplat.system.files.read_standard_input = told
from composeplat.cli.app import main; main()
"""
#: Something that continues when the command has ended, and says so: a thread, or what the interpreter takes apart.
LATE = {
    "threads": """
import threading, time
def late(): threading.main_thread().join(); print('late', flush=True); time.sleep(60)
threading.Thread(target=late).start()
from composeplat.cli.app import main; main()
""",
    "finalizers": """
import os, time
class Late:
    def __del__(self, write=os.write, sleep=time.sleep): write(1, b'late\\n'); sleep(2)
late = Late()
from composeplat.cli.app import main; main()
""",
}

#: A cycle, which only the garbage collector frees.
CYCLE = """
import os
class Node:
    def __del__(self, write=os.write): write(1, b'collected\\n')
node = Node()
node.itself = node
from composeplat.cli.app import main; main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="has no full device")
@pytest.mark.parametrize("args", [["--version"], ["--help"], ["deploy", "--help"]])
def test_a_full_disk(tmp_path: Path, args: list[str]) -> None:
    """Help that can't be written is an error with its reason, and no traceback."""
    command = [sys.executable, "-c", "from composeplat.cli.app import main; main()", *args]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, cwd=tmp_path, env=VARIABLES, stdout=full, stderr=subprocess.PIPE, check=False)

    assert (done.returncode, done.stderr) == (1, b"error: can't write the result: no space left on device\n")


@pytest.mark.parametrize("args", [["--version"], ["--help"], ["deploy", "--help"], ["cluster", "--help"]])
def test_a_closed_pipe(tmp_path: Path, args: list[str]) -> None:
    """Help whose reader has gone is no failure, as no other output is."""
    command = [sys.executable, "-c", "from composeplat.cli.app import main; main()", *args]
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        done = subprocess.run(command, cwd=tmp_path, env=VARIABLES, stdout=gone, stderr=subprocess.PIPE, check=False)

    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    "args", [[], ["--nope"], ["deploy", "--nope"], ["exec"], ["cluster", "nope"], ["help", "nope"]]
)
def test_a_mistake_of_use_with_a_closed_pipe(tmp_path: Path, args: list[str]) -> None:
    """A mistake in the arguments has its own status, also where nobody reads the message."""
    command = [sys.executable, "-c", "from composeplat.cli.app import main; main()", *args]
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        done = subprocess.run(command, cwd=tmp_path, env=VARIABLES, stdout=gone, stderr=gone, check=False)

    assert done.returncode == Exit.USAGE


def test_version(project: Project) -> None:
    """The version is printed."""
    outcome = project({}).run("--version").assert_success()

    assert outcome.stdout == f"{__version__}\n"


def test_version_of_the_package() -> None:
    """It is the package's."""
    assert f'version = "{__version__}"\n' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help(project: Project, option: str) -> None:
    """Help lists the commands, one line each."""
    outcome = run_here(option, folder=project({}).path).assert_success()

    assert outcome.stdout.startswith("Usage: platform [OPTIONS] COMMAND [ARGS]...\n")
    assert {name for names in SECTIONS.values() for name in names} <= set(outcome.stdout.split())


def test_no_command(project: Project) -> None:
    """Without a command help is shown, and that is a mistake of use."""
    outcome = run_here(folder=project({}).path)

    assert outcome.status == 2
    assert "Usage: platform [OPTIONS] COMMAND [ARGS]..." in outcome.stdout + outcome.stderr


def test_unknown_command(project: Project) -> None:
    """An unknown command is a mistake of use."""
    outcome = run_here("rendr", folder=project({}).path)

    assert (outcome.status, outcome.stdout) == (2, "")
    assert outcome.stderr.splitlines()[-1].startswith("Error: No such command 'rendr'.")


def test_windows() -> None:
    """Windows itself lacks what the commands import: the message says where it runs, and there is no traceback."""
    script = (
        "import sys; sys.platform = 'win32'; sys.modules['fcntl'] = None; from composeplat.cli.app import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", script, "render"], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: platform runs on Linux and macOS, not on Windows itself\n  hint: ")
    assert "WSL 2" in done.stderr


def test_help_of_a_command_needs_no_definition(project: Project) -> None:
    """A command's help is shown wherever one stands."""
    outcome = project({}).run("render", "--help").assert_success()

    assert outcome.stdout.startswith("Usage: platform render [OPTIONS] [SERVICE]...\n")
    assert outcome.stderr == ""


@pytest.mark.parametrize("seconds", ["nan", "inf", "0"])
def test_a_timeout_is_a_number_of_seconds(project: Project, seconds: str) -> None:
    """A wait has an end, so what is no number of seconds is refused."""
    outcome = project("services: {web: {image: nginx}}").run("wake", "--timeout", seconds)

    assert outcome.status == Exit.USAGE
    assert "Invalid value for '--timeout'" in outcome.stderr


def test_an_installed_command(project: Project) -> None:
    """The package installs the command under its name."""
    done = subprocess.run(
        [sys.executable, "-c", "from importlib.metadata import entry_points as e; print(*e(name='platform'))"],
        capture_output=True,
        text=True,
        check=True,
        cwd=project({}).path,
    )

    assert "value='composeplat.cli.app:main', group='console_scripts'" in done.stdout


def test_no_garbage_is_looked_for_at_the_end(project: Project) -> None:
    """The kernel frees the memory of a process, sooner than the interpreter could look through it."""
    done = subprocess.run(
        [sys.executable, "-c", CYCLE, "--version"], cwd=project({}).path, capture_output=True, text=True, check=True
    )

    assert done.stdout == f"{__version__}\n"


#: The process aborts where the C library ends.
ENDING = """
import ctypes, threading, time
from composeplat.cli.app import main
library = ctypes.CDLL(None)
library.on_exit(library.abort, None)
"""
THREAD = "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the C library of Linux has on_exit")
@pytest.mark.parametrize(("begins", "status"), [("", -signal.SIGABRT), (THREAD, 0)], ids=["alone", "with-a-thread"])
def test_threads_at_the_end(tmp_path: Path, begins: str, status: int) -> None:
    """The C library does not end under a thread that still runs: OpenSSL crashed the process then."""
    done = subprocess.run(
        [sys.executable, "-c", f"{ENDING}{begins}main()", "--version"], cwd=tmp_path, capture_output=True, check=False
    )

    assert (done.returncode, done.stdout.decode()) == (status, f"{__version__}\n")


def test_our_mistakes_keep_their_traceback(project: Project) -> None:
    """What is no mistake of the user's is not dressed up as one."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            BROKEN,
            "render",
        ],
        cwd=project("services: {web: {image: nginx}}").path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert split_log_path(done.stderr)[0].endswith("RuntimeError: ours\n")


def test_interrupt(project: Project) -> None:
    """Ctrl-C ends with 130 and without a traceback."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            PRINTED,
            "render",
            "-f",
            "-",
        ],
        cwd=project({}).path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"reading\n"
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=60)

    assert process.returncode == 130
    assert b"Traceback" not in messages


@pytest.mark.parametrize("late", LATE)
@pytest.mark.parametrize(("args", "status"), [(["--version"], 0), (["nonsense"], 2)])
def test_interrupt_when_all_is_reported(tmp_path: Path, late: str, args: list[str], status: int) -> None:
    """A Ctrl-C that comes while the process ends changes neither status nor output, and ends it."""
    with subprocess.Popen(
        [sys.executable, "-c", LATE[late], *args], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        while process.stdout.readline() not in (b"late\n", b""):
            pass
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=60)

    assert time.monotonic() - begun < 30  # The thread would continue for a minute.
    assert status == process.returncode
    assert (b"No such command" in messages, b"Traceback" in messages) == (status == 2, False)


def test_a_run_sees_only_its_own_environment(project: Project) -> None:
    """The fixture that runs the command gives it no variable that the test did not name."""
    folder = project("services: {web: {image: nginx, command: '${HOME:-none} ${GIVEN}'}}")

    outcome = run("config", folder=folder.path, GIVEN="x").assert_success()

    assert "command: none x\n" in outcome.stdout
