"""One Ctrl-C is enough at any time: it ends the command with 130 and without a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from composeplat.cli.interrupts import is_interrupt
from tests.deploy.conftest import PLATFORM

#: What a command may be at when a press comes; each said "reading", and continued as if nothing had been.
LOST = {
    "waiting": """
def press():
    # As if it had come just before the main thread began to wait: that thread hears nothing of it.
    time.sleep(0.3); signal.pthread_kill(threading.get_ident(), signal.SIGINT)
def told(**limit): threading.Thread(target=press, daemon=True).start(); forever()
def forever():
    lock = threading.Lock(); lock.acquire(); lock.acquire()
""",
    "finalizing": """
class Late:
    def __del__(self): signal.raise_signal(signal.SIGINT)
def told(**limit): Late(); time.sleep(60)
""",
    "importing": """
class Field:
    def __set_name__(self, *_): signal.raise_signal(signal.SIGINT)
def told(**limit): type("Made", (), {"field": Field()}); time.sleep(60)
""",
}
HEAD = "import signal, threading, time, composeplat.system.files\n"
TAIL = "composeplat.system.files.read_standard_input = told\nfrom composeplat.cli.app import main; main()\n"


@pytest.mark.parametrize("at", LOST)
def test_a_press_is_not_lost(tmp_path: Path, at: str) -> None:
    """A press while the main thread waits, finalizes or imports was not handled, dropped, or a traceback."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", HEAD + LOST[at] + TAIL, "render", "-f", "-"], cwd=tmp_path, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(("handler", "status"), [(signal.SIG_DFL, 128 + signal.SIGHUP), (signal.SIG_IGN, 0)])
def test_a_terminal_that_is_closed(handler: signal.Handlers, status: int) -> None:
    """It ends a command, unless that was started by nohup, which is to continue."""
    script = (
        "import signal, sys; from composeplat.cli.interrupts import ended_by_signals\n"
        "signal.signal(signal.SIGHUP, signal.Handlers(int(sys.argv[1])))\n"
        "with ended_by_signals(): signal.raise_signal(signal.SIGHUP)\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(int(handler))], check=False).returncode == status


def chained(*, cause: BaseException | None = None, context: BaseException | None = None) -> RuntimeError:
    error = RuntimeError()
    error.__cause__, error.__context__ = cause, context
    return error


def test_which_exceptions_are_a_press() -> None:
    """A Ctrl-C that became another exception is one, however that is chained; an error of its own is none."""
    assert is_interrupt(KeyboardInterrupt())
    assert is_interrupt(chained(cause=KeyboardInterrupt()))
    assert is_interrupt(chained(context=chained(cause=KeyboardInterrupt())))
    assert not is_interrupt(chained(cause=RuntimeError()))


def test_a_press_while_the_commands_are_imported(tmp_path: Path) -> None:
    """Before a command runs, a press that became another exception ends the process as interrupted, too."""
    script = (
        "import sys; from types import ModuleType; from composeplat.cli import app\n"
        "class Commands(ModuleType):\n"
        "    def __getattr__(self, name):\n"
        "        try: raise KeyboardInterrupt\n"
        "        except KeyboardInterrupt as error: raise RuntimeError('in a class') from error\n"
        "sys.modules['composeplat.cli.commands'] = Commands('commands'); app.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_press_while_its_handler_is_imported(tmp_path: Path) -> None:
    """In a finalizer, Python drops its exception, and the command continued."""
    script = (
        "import signal, sys, time; from composeplat.cli import app\n"
        "class Late:\n"
        "    def __del__(self): signal.raise_signal(signal.SIGINT)\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'composeplat.cli.interrupts': Late()\n"
        "        if name == 'composeplat.cli.commands': time.sleep(20)\n"
        "sys.meta_path.insert(0, Finder()); app.main()\n"
    )
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    assert time.monotonic() - began < 15


def test_a_press_at_any_moment(tmp_path: Path) -> None:
    """Pressed once, at many offsets from the start on, a command ends as interrupted, or had said all it had to say."""
    (tmp_path / "compose.yaml").write_text("services: {web: {image: nginx}}\n")
    whole = platform(tmp_path, None)
    ends = [platform(tmp_path, number * 0.02) for number in range(25)]

    assert whole[:1] == (0,)
    for status, stdout, stderr in ends:
        assert (
            (status, stderr) == (130, "")
            or (status, stdout, stderr) == whole
            or began_as_python(status, stdout, stderr)
        )


def began_as_python(status: int, stdout: str, stderr: str) -> bool:
    """Return whether a press came before any of our code ran: then the interpreter shows of it in its own words."""
    return status in (-signal.SIGINT, 1) and not stdout and "_run_command" not in stderr


def platform(folder: Path, press_after: float | None) -> tuple[int, str, str]:
    with subprocess.Popen(
        [PLATFORM, "config"], cwd=folder, env={**os.environ}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        if press_after is not None:
            time.sleep(press_after)
            process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    return process.returncode, stdout, stderr
