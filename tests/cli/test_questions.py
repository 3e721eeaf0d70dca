"""Questions with a few possible answers: after a wrong answer there is a message, and the question comes again."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
import typer
from typer.testing import CliRunner

from composeplat.cli.destroy import _confirm
from composeplat.cli.questions import ask_name, ask_number
from tests.cli.test_progress_output import Drawn
from tests.conftest import VARIABLES, Project
from tests.terminal import Terminal

_WRONG = "Error: it must be "
_PLATFORM = (sys.executable, "-c", "from composeplat.cli.app import main; main()")
_PLUGIN = """\
#!/bin/sh
sleep 0.3
printf 'Code: ' >&2
read code < /dev/tty
echo '{"apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "t"}}'
"""
_KUBECONFIG = """\
current-context: shop
contexts: [{name: shop, context: {cluster: shop, user: ann}}]
clusters: [{name: shop, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: ann, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login}}}]
"""
_CHANGED = "services: {web: {image: nginx, hostname: x}}"


@pytest.mark.parametrize(
    ("given", "answer", "wrong"),
    [("2\n", "2", 0), ("\n", "1", 0), ("0\n4\nx\n3\n", "3", 3), ("-1\n1.5\n 2 \n", "2", 2)],
)
def test_a_number(given: str, answer: str, wrong: int) -> None:
    """It is from 1 to the number of rows; without an answer it is 1."""
    app = typer.Typer()
    app.command()(lambda: typer.echo(ask_number("Which one", 3)))

    done = CliRunner().invoke(app, input=given)
    assert done.stdout.splitlines()[-1] == answer
    assert done.stderr.count(f"{_WRONG}a number from 1 to 3") == wrong


def test_a_name() -> None:
    """It is one of the names, which the question lists."""
    app = typer.Typer()
    app.command()(lambda: typer.echo(ask_name("Ingress class", ("nginx", "traefik"))))

    done = CliRunner().invoke(app, input="apache\n\ntraefik\n")
    assert done.stdout.splitlines()[-1] == "traefik"
    assert done.stderr.startswith("Ingress class (nginx, traefik):")
    assert done.stderr.count(f"{_WRONG}one of: nginx, traefik") == 1


def test_the_end_of_the_input() -> None:
    """A terminal that is closed ends the command."""
    app = typer.Typer()
    app.command()(lambda: typer.echo(ask_number("Which one", 3)))

    ended = CliRunner().invoke(app, input="")

    assert str(ended.exception) == "no answer was given"


def test_the_end_of_the_input_before_data_is_deleted() -> None:
    """It is a no: the name was not typed."""
    app = typer.Typer()
    app.command()(lambda: _confirm("shop", "shop in namespace team", ["data"]))

    ended = CliRunner().invoke(app, input="")

    assert str(ended.exception) == "nothing was changed"


def test_ctrl_d(project: Project) -> None:
    """Ctrl-D at a question refuses, with the message of a no, on a line of its own."""
    terminal = Terminal(
        [*_PLATFORM, "init", "--offline"],
        folder=project(_CHANGED).path,
        env={**VARIABLES, "TERM": "xterm", "NO_COLOR": "1"},
    )
    terminal.until("[Y/n]:")
    terminal.end_input()

    assert terminal.rest().splitlines()[1:] == ["error: nothing was written"]
    assert terminal.status() == 1


def test_ctrl_c(project: Project) -> None:
    """Ctrl-C at a question interrupts the command, as at any other moment; the shell gets a new line."""
    terminal = Terminal(
        [*_PLATFORM, "init", "--offline"], folder=project(_CHANGED).path, env={**VARIABLES, "TERM": "xterm"}
    )
    terminal.until("[Y/n]:")
    terminal.interrupt()

    assert terminal.rest().rstrip(" ").endswith("^C\r\n")
    assert terminal.status() == 130


def test_a_question_of_a_credential_plugin(project: Project) -> None:
    """No row of a step is drawn over it while the plugin waits for the answer."""
    folder = project(_CHANGED).path
    (folder / "kubeconfig").write_text(_KUBECONFIG)
    (folder / "login").write_text(_PLUGIN)
    (folder / "login").chmod(0o755)
    terminal = Terminal(
        [*_PLATFORM, "preview"], folder=folder, env={**VARIABLES, "TERM": "xterm", "KUBECONFIG": "kubeconfig"}
    )
    before = terminal.until("Code: ")
    time.sleep(0.5)
    terminal.type("1234")
    shown = f"{before}Code: {terminal.rest()}"

    assert Drawn(80, 24).feed(shown)[-1][0] == "Code: 1234"
    assert terminal.status() == 4


@pytest.mark.parametrize(
    ("closed", "args", "message"),
    [
        ("<&-", ("init", "--offline"), "there is no terminal to confirm that on"),
        (">&-", ("init", "--offline", "--dry-run"), "can't write the result: standard output is closed"),
        (">&-", ("check", "--offline"), "can't write the result: standard output is closed"),
        (">&-", ("--help",), "can't write the result: standard output is closed"),
    ],
)
def test_a_stream_that_is_closed(project: Project, closed: str, args: tuple[str, ...], message: str) -> None:
    """A standard stream that the parent process has closed is no terminal; a message says what is missing."""
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *_PLATFORM, *args],
        cwd=project(_CHANGED).path, env=VARIABLES, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
