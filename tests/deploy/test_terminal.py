"""Every command as a terminal shows it: narrow and wide, without colors, without UTF-8, and with nobody reading.

One environment that is deployed already is looked at by all of them; those that change things find nothing to change.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest

from composeplat.local.cluster import LocalCluster
from tests.deploy.conftest import SLEEP, STAY, Environment, an_environment
from tests.schemas import checked, checked_event
from tests.terminal import Terminal

TEXT = f"""\
x-app: &app {{image: 'busybox:1.37', stop_grace_period: 0s}}
services:
  web:
    <<: *app
    command: [sh, -c, "httpd -p 80; echo 'grüße, 世界'; printf '\\\\033[31mred\\\\033[0m\\\\n'; {STAY}"]
    ports: ['8080:80']
    environment: {{GREETING: 'grüße'}}
  a-service-with-quite-a-long-name: {{<<: *app, command: "{SLEEP}", scale: 2}}
"""
#: Those that print tables, which fit any width.
TABLES = (["status"], ["events"], ["ps", "web"])
#: Those whose lines are for reading: they fit an ordinary terminal, and a narrow one wraps them.
PROSE = (["preview"], ["deploy"], ["refresh", "--preview"], ["endpoints"], ["build"], ["wake"], ["down", "web"])
#: Those that print what someone else wrote, as it is.
TEXTS = (["logs", "--tail", "2"], ["config"], ["render", "--domain", "example.com"], ["variables", "list"],
         ["config", "--variables"], ["exec", "web", "echo", "hi"])  # fmt: skip
EVERY = (*TABLES, *PROSE, *TEXTS)
#: A locale of ASCII alone, with what Python does about it turned off.
POSIX = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
WORKING = (["preview"], ["deploy"], ["refresh"], ["sleep"], ["wake"])

_MOVES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def shop(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    folder = tmp_path_factory.mktemp("shop")
    with an_environment(cluster, folder, tmp_path_factory.mktemp("private")) as made:
        made.deploy(TEXT, "--domain", "localhost").expect()
        yield made


def command_line(shop: Environment, command: Sequence[str]) -> list[str]:
    name, *rest = command
    if name == "variables":
        return [shop.command_line()[0], *command, "--namespace", shop.namespace]
    domain = ["--domain", "localhost"] if name in ("deploy", "preview") else []
    return [shop.command_line()[0], name, *shop.command_line()[1:], *domain, *rest]


def on_terminal(
    shop: Environment, command: Sequence[str], more: Mapping[str, str] = MappingProxyType({}), *, columns: int = 80
) -> str:
    """What a command writes to a terminal of so many columns."""
    variables = {k: v for k, v in shop.variables.items() if k not in ("CI", "NO_COLOR")}
    env = {"LC_ALL": "C.UTF-8", "TERM": "xterm", **variables, **more}
    terminal = Terminal(command_line(shop, command), folder=shop.folder, env=env, columns=columns, within=100)
    written = terminal.rest()
    assert terminal.status() == 0, f"{command}: {written}"
    return written


def lines(written: str) -> list[str]:
    """The lines that stood on the terminal, however often they were drawn."""
    return _MOVES.sub("", written).replace("\r", "").split("\n")


def is_wide(line: str, columns: int) -> bool:
    """A path is of use only whole."""
    return len(line) > columns and not line.startswith("log of this run: ")


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_width(shop: Environment, columns: int) -> None:
    """No table is wider than the terminal, and no sentence is wider than an ordinary one."""
    asked = TABLES if columns < 80 else (*TABLES, *PROSE)

    wide = {
        " ".join(command): [
            line for line in lines(on_terminal(shop, command, columns=columns)) if is_wide(line, columns)
        ]
        for command in asked
    }

    assert {name: found for name, found in wide.items() if found} == {}


def test_colors(shop: Environment) -> None:
    """A terminal that may has colors; the message without them says the same."""
    for command in (["status"], ["logs", "--tail", "2"], ["deploy"]):
        assert _COLOR.search(on_terminal(shop, command)), command


@pytest.fixture(scope="module")
def bare(shop: Environment) -> dict[str, str]:
    """What commands write to a terminal that has no UTF-8, for someone who wants no colors."""
    return {" ".join(command): on_terminal(shop, command, {**POSIX, "NO_COLOR": "1"}) for command in EVERY}


def test_no_color(bare: dict[str, str]) -> None:
    """With NO_COLOR no command colors anything, and what a container wrote can't either."""
    assert [name for name, written in bare.items() if _COLOR.search(written)] == []


def test_no_utf8(bare: dict[str, str]) -> None:
    """A terminal of another encoding gets nothing that it can't show, from any command."""
    assert [name for name, written in bare.items() if not written.isascii()] == []


def test_programs_get_utf8(shop: Environment) -> None:
    """What is no terminal gets UTF-8 whatever the locale."""
    done = subprocess.run(
        command_line(shop, ["logs", "--no-prefix", "web"]), cwd=shop.folder, capture_output=True, check=True,
        env={**shop.variables, **POSIX},
    )  # fmt: skip

    assert done.stdout.decode() == "grüße, 世界\nred\n"


@pytest.mark.parametrize(
    ("stream", "commands"),
    [
        pytest.param("stdout", (["deploy"], ["preview", "--diff"], *TABLES, *TEXTS[:-1]), id="results"),
        pytest.param("stderr", (["deploy"], ["refresh"], ["endpoints"], ["down", "web"]), id="what-is-told"),
    ],
)
def test_nobody_reads(shop: Environment, stream: str, commands: Sequence[list[str]]) -> None:
    """Where the reader has gone a command does its work and ends as it would, without a word about it."""
    for command in commands:
        reader, writer = os.pipe()
        os.close(reader)
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: writer}
        done = subprocess.run(  # type: ignore[call-overload]
            command_line(shop, command), cwd=shop.folder, env=shop.variables, check=False, timeout=100, **streams
        )
        os.close(writer)

        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert "pipe" not in (done.stderr or b"").decode()


@pytest.mark.parametrize("command", WORKING, ids=" ".join)
def test_events(shop: Environment, command: list[str]) -> None:
    """With ``--progress json`` all that is reported is JSON, and the last of it is what ``--json`` prints."""
    done = subprocess.run(
        command_line(shop, [*command, "--progress", "json", "--json"]), cwd=shop.folder, env=shop.variables,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    *events, last = [checked_event(line) for line in done.stderr.splitlines()]

    assert all(event["event"] in ("step", "service", "note") for event in events)
    assert last.pop("event") == "result"
    assert checked(json.loads(done.stdout)) == last


def test_plain(shop: Environment) -> None:
    """``--progress plain`` moves nothing, on a terminal too."""
    assert _MOVES.findall(on_terminal(shop, ["deploy", "--progress", "plain"])) == []


def test_quiet(shop: Environment) -> None:
    """``--quiet`` leaves the result and the addresses."""
    written = on_terminal(shop, ["deploy", "--quiet"])

    assert re.fullmatch(
        rf"deployed env in namespace {shop.namespace}: nothing changed, [0-9.]+ s\r\nhttps://\S+\r\n", written
    )


def test_a_file_with_errors(shop: Environment, tmp_path: Path) -> None:
    """A message fits no width, and its excerpt fits any: it is cut around the place."""
    (tmp_path / "compose.yaml").write_text(f"services: {{web: {{image: x, labels: [{'a=b, ' * 60}1], scale: no}}}}\n")
    env = {**shop.variables, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    terminal = Terminal([shop.command_line()[0], "config", "-q"], folder=tmp_path, env=env, columns=40)
    excerpts = [line for line in lines(terminal.rest()) if re.match(r" *\d* \| ", line)]

    assert len(excerpts) >= 2
    assert [line for line in excerpts if len(line) > 50] == []
