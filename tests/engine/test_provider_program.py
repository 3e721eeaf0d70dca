"""The programs of providers: what they may say, how long they may take, and what is left of them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from composeplat.engine.provider_program import (
    MAX_OUTPUT_BYTES,
    Message,
    Metadata,
    Program,
    ProviderError,
    ProviderInterrupted,
    find_program,
)
from composeplat.system.signals import handle_signals
from tests.engine.fakes import comes_true

SAY = """\
import json
def say(kind, text):
    print(json.dumps({"type": kind, "message": text}), flush=True)
"""


def make(folder: Path, body: str) -> Path:
    path = folder / "awesome"
    path.write_text(f"#!/usr/bin/env -S python3 -IS\nimport os, signal, subprocess, sys, time\n{SAY}{body}\n")
    path.chmod(0o755)
    return path


def program(
    folder: Path, body: str, *, timeout_s: float = 20, is_interrupted: Callable[[], bool] = lambda: False
) -> Program:
    path = make(folder, body)
    return Program(path=path, environment=os.environ, timeout_s=timeout_s, is_interrupted=is_interrupted)


def messages(folder: Path, body: str) -> list[tuple[str, str, str]]:
    found: list[Message] = []
    program(folder, body).run(["up"], found.append)
    return [(message.type, message.name, message.text) for message in found]


def reason(folder: Path, body: str, *, timeout_s: float = 20) -> str:
    with pytest.raises(ProviderError) as caught:
        program(folder, body, timeout_s=timeout_s).run(["up"], lambda _: None)
    return str(caught.value)


def test_messages(tmp_path: Path) -> None:
    """Each line is a message; of a variable the name ends at the first '='."""
    body = (
        'say("info", "a"); print(); say("setenv", "A=b=c"); say("rawsetenv", "B="); say("debug", ""); say("new", "x")'
    )

    assert messages(tmp_path, body) == [
        ("info", "", "a"),
        ("setenv", "A", "b=c"),
        ("rawsetenv", "B", ""),
        ("debug", "", ""),
        ("new", "", "x"),
    ]


def test_its_arguments_and_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the variables of the shell, but none of Pulumi's."""
    body = "say(\"info\", f\"{sys.argv[1:]} {os.environ.get('MINE')} {os.environ.get('PULUMI_X')}\")"

    monkeypatch.setenv("MINE", "1")
    monkeypatch.setenv("PULUMI_X", "2")

    assert messages(tmp_path, body) == [("info", "", "['compose', 'up'] 1 None")]


def test_answers(tmp_path: Path) -> None:
    """Each is a line of its input, also a long one; nothing comes without a question."""
    found: list[str] = []
    answer = "é" * 200_000
    body = (
        'say("ask", ""); a = sys.stdin.readline(); say("ask", ""); say("ask", ""); b = sys.stdin.readline()\n'
        'say("info", str([len(a), a == b, a[-2:], sys.stdin.readline() == a]))'
    )

    def handle(message: Message) -> str | None:
        if message.type == "ask":
            return answer
        found.append(message.text)
        return None

    program(tmp_path, body).run(["up"], handle)

    assert found == ["[200001, True, 'é\\n', True]"]


@pytest.mark.parametrize("body", ["sys.stdin.close(); os.close(0)", "os.close(1); os.close(2); sys.stdin.read()", ""])
def test_an_answer_that_nobody_reads(tmp_path: Path, body: str) -> None:
    """The program may close its input, wait for the end of it once it has closed its output, or end."""
    asks = f'say("ask", "")\n{body}\n'

    program(tmp_path, asks).run(["up"], lambda _: "x" * 200_000)


def test_answers_that_are_not_read_have_a_limit(tmp_path: Path) -> None:
    """A program can't fill the memory with them."""
    asks = 'for number in range(1000): say("ask", "")\ntime.sleep(60)'

    with pytest.raises(ProviderError, match="does not read the answers that it asks for"):
        program(tmp_path, asks).run(["up"], lambda _: "x" * 65536)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('print("usage")', "wrote a line to its output that is no JSON object with a type: line 1"),
        ('say("info", ""); print("[1]")', "wrote a line to its output that is no JSON object with a type: line 2"),
        ('print("[" * 9999)', "wrote a line to its output that is no JSON object with a type: line 1"),
        ('say("info", 3)', "wrote a message that is no text: line 1"),
        (
            'say("setenv", "A")',
            "set a variable that is not NAME=VALUE, or has a name that Kubernetes refuses: line 1",
        ),
        (
            'say("rawsetenv", "1 2=x")',
            "set a variable that is not NAME=VALUE, or has a name that Kubernetes refuses: line 1",
        ),
        (
            'say("setenv", "A=\\0")',
            "set a variable that is not NAME=VALUE, or has a name that Kubernetes refuses: line 1",
        ),
        (
            'say("setenv", "A=\\ud800")',
            "set a variable that is not NAME=VALUE, or has a name that Kubernetes refuses: line 1",
        ),
        ("sys.exit(3)", "ended with status 3"),
        ("os.kill(os.getpid(), 9)", "was killed by signal 9"),
        ('print("x" * 70000); time.sleep(60)', "wrote a line of more than 64 KiB"),
        ('while True: say("info", "x" * 9999)', f"wrote more than {MAX_OUTPUT_BYTES // 1024} KiB to its output"),
    ],
)
def test_what_breaks_the_protocol(tmp_path: Path, body: str, expected: str) -> None:
    """It ends the program, with a reason that has no value."""
    assert reason(tmp_path, body) == expected


def test_a_program_that_hangs(tmp_path: Path) -> None:
    """It has its time, also if it has closed its output, and ignores a request to end."""
    began = time.monotonic()

    assert reason(tmp_path, "time.sleep(60)", timeout_s=0.5) == "did not end within 0.5 s"
    assert reason(tmp_path, "os.close(1); os.close(2); time.sleep(60)", timeout_s=0.5) == "did not end within 0.5 s"
    assert time.monotonic() - began < 10


def test_the_last_lines_of_a_failure(tmp_path: Path) -> None:
    """They are the last ones of standard error, of which there may be any number."""
    body = "for n in range(9999): print(f'line {n}', file=sys.stderr)\nsys.exit(1)"
    with pytest.raises(ProviderError) as caught:
        program(tmp_path, body).run(["up"], lambda _: None)

    assert caught.value.lines == tuple(f"line {n}" for n in range(9994, 9999))


def test_an_interrupt_ends_all_that_it_started(tmp_path: Path) -> None:
    """The program is asked to end, and is then killed with its children."""
    mark, ended = tmp_path / "pid", tmp_path / "ended"
    body = f"""
signal.signal(signal.SIGTERM, lambda *_: (open({str(ended)!r}, "w").close(), sys.exit(0)))
child = subprocess.Popen(["sleep", "60"])
open({str(mark)!r}, "w").write(str(child.pid))
time.sleep(60)
"""
    with pytest.raises(ProviderInterrupted):
        program(tmp_path, body, is_interrupted=lambda: mark.exists() and bool(mark.read_text())).run(["up"], print)

    child = Path("/proc") / mark.read_text() / "cmdline"
    assert ended.exists()
    assert comes_true(lambda: not child.exists() or not child.read_text())


class SecondInterrupt(BaseException):
    """Raised by a signal, wherever the program is waited for."""


def test_a_second_interrupt_ends_it_at_once(tmp_path: Path) -> None:
    """It comes while a program that ignores the first one is waited for: the program must not run on."""
    pid = tmp_path / "pid"
    note = f"open({str(pid)!r}, 'w').write(str(os.getpid()))"
    body = f"signal.signal(signal.SIGTERM, signal.SIG_IGN); {note}; time.sleep(60)"

    def interrupt(*_: object) -> None:
        raise SecondInterrupt

    def is_interrupted() -> bool:
        if not pid.exists() or not pid.read_text():
            return False
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        return True

    with handle_signals({signal.SIGALRM: interrupt}), pytest.raises(SecondInterrupt):
        program(tmp_path, body, is_interrupted=is_interrupted).run(["up"], lambda _: None)

    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_child_that_keeps_the_output_open(tmp_path: Path) -> None:
    """What a program leaves running, such as a tunnel, runs on, and is not waited for."""
    mark = tmp_path / "pid"
    body = f'say("info", "a")\nopen({str(mark)!r}, "w").write(str(subprocess.Popen(["sleep", "5"]).pid))'
    began = time.monotonic()

    assert messages(tmp_path, body) == [("info", "", "a")]
    assert time.monotonic() - began < 4
    os.kill(int(mark.read_text()), 9)


def test_metadata(tmp_path: Path) -> None:
    """It says the options of each command; without a good answer there is none."""
    known = (
        '{"description": "x", "up": {"parameters": [{"name": "size", "required": true}, {"name": "b"}, 3]}, "down": 1}'
    )
    found = Metadata(
        known={"up": frozenset(("size", "b")), "down": frozenset()},
        required={"up": frozenset(("size",)), "down": frozenset()},
    )

    assert program(tmp_path, f"print({known!r})").metadata() == found
    for answer in ("print('{}')", "print('x')", "sys.exit(1)", "print('[]')"):
        assert program(tmp_path, answer).metadata() is None


def test_where_it_is_looked_for(tmp_path: Path) -> None:
    """A plugin of Docker comes first, then the path, without folders that depend on the current one."""
    plugins, folder = tmp_path / "docker" / "cli-plugins", tmp_path / "bin"
    plugins.mkdir(parents=True)
    folder.mkdir()
    path = make(folder, "")
    environment = {"PATH": f".:bin::{folder}", "DOCKER_CONFIG": str(tmp_path / "docker"), "HOME": str(tmp_path)}

    assert find_program("awesome", environment) == path
    assert find_program("awesome", {**environment, "PATH": ".:bin:"}) is None
    path.chmod(0o644)
    assert find_program("awesome", environment) is None
    plugin = make(plugins, "").rename(plugins / "docker-awesome")
    assert find_program("awesome", environment) == plugin
