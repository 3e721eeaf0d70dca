"""Questions with a few possible answers: after a wrong answer there is a message, and the question comes again."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from composeplat.cli.questions import ask_name, ask_number

_WRONG = "Error: it must be "


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

    assert CliRunner().invoke(app, input="").exit_code == 1
