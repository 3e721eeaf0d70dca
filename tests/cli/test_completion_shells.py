"""Tab, pressed in a real bash, zsh and fish: what the line has become.

``test_completion.py`` tests the answers; this module tests what each shell makes of them. So the shells share
their cases, but for what only some of them can show.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_completion import KUBECONFIG, SHOP
from tests.conftest import ROOT, Folder
from tests.terminal import Terminal

FILES = {
    "compose.yaml": SHOP,
    "kube.yaml": KUBECONFIG,
    "other.yaml": "services: {other: {}}",
    "a b.yaml": "services: {blank: {}}",
    "out folder/x": "",
}

#: How a shell is started with nothing of the user's or the machine's in it.
STARTS = {
    "bash": ["--norc", "--noprofile"],
    "zsh": ["-f"],
    "fish": ["--no-config", "--private"],
}
#: How the shell is asked to print the line and to forget it, instead of running it, when Enter is pressed.
SHOWS = {
    "bash": """show() { echo; echo "<$READLINE_LINE>"; READLINE_LINE=; }; bind -x '"\\C-j": show'""",
    "zsh": """show() { print; print -r -- "<$BUFFER>"; BUFFER=; }; zle -N show; bindkey '^J' show""",
    "fish": """function show; echo; echo '<'(commandline)'>'; commandline ''; end; bind \\cj show""",
}
#: How its users let it read the script when it starts.
SOURCED = {
    "bash": "source <(platform completion bash)",
    "zsh": "autoload -U compinit; compinit -u -D; source <(platform completion zsh)",
    "fish": "platform completion fish | source",
}
#: How it finds the script in a file when it wants to complete, and that file in the home directory.
FOUND = {
    "zsh": ("functions/_platform", "fpath=(~/functions $fpath); autoload -U compinit; compinit -u -D"),
    "fish": ("completions/platform.fish", "set -p fish_complete_path ~/completions"),
}


def found(name: str) -> str:
    """The program of a shell."""
    program = shutil.which(name)
    if not program:
        pytest.skip(f"needs {name}: make extras")
    return program


def is_stable(home: Path) -> dict[str, str]:
    """Put `platform` into a home directory, and give the variables of a shell that lives there."""
    platform = home / "platform"
    platform.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from composeplat.cli.app import main; main()" "$@"\n')
    platform.chmod(0o755)
    path = f"{home}:{os.defpath}"
    return {"HOME": str(home), "PATH": path, "PYTHONPATH": str(ROOT), "TERM": "dumb", "LANG": "C.UTF-8"}


class Shell:
    """A shell that has done a line of setup, in a home directory of its own."""

    def __init__(self, name: str, setup: str, *, folder: Path, home: Path) -> None:
        args = [found(name), *STARTS[name], "-i"]
        self._terminal = Terminal(args, folder=folder, env=is_stable(home), columns=500, rows=50)
        self._terminal.type(f"{setup}; {SHOWS[name]}; echo is-r''eady")
        self._terminal.until("is-ready\r\n")

    def tab(self, line: str) -> str:
        """What a line has become when Tab was pressed at its end."""
        self._terminal.type(f"{line}\t")
        return self._terminal.find("\r\n<(.*)>\r\n")

    def listed(self, line: str) -> str:
        """What is shown when Tab was pressed at the end of a line that has several endings."""
        self._terminal.type(f"{line}\t")
        return self._terminal.find("(.*)\r\n<.*>\r\n")

    def close(self) -> None:
        self._terminal.kill()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Folder(tmp_path_factory.mktemp("demo")).write(FILES).path


@pytest.fixture(scope="module", params=SOURCED)
def shell(request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    made = Shell(request.param, SOURCED[request.param], folder=folder, home=tmp_path_factory.mktemp("home"))
    yield made
    made.close()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("platform dep", "platform deploy ", id="command"),
        pytest.param("platform deploy d", "platform deploy db ", id="service"),
        pytest.param("platform deploy w", "platform deploy w", id="several services"),
        pytest.param("platform deploy -f other.yaml ", "platform deploy -f other.yaml other ", id="of a file"),
        pytest.param("platform deploy -f 'a b.yaml' ", "platform deploy -f 'a b.yaml' blank ", id="of a quoted file"),
        pytest.param("platform deploy 'd", "platform deploy 'db' ", id="open quote"),
        pytest.param("platform deploy -f oth", "platform deploy -f other.yaml ", id="file"),
        pytest.param("platform deploy --file=oth", "platform deploy --file=other.yaml ", id="file, equals sign"),
        pytest.param("platform deploy -f a\\ ", "platform deploy -f a\\ b.yaml ", id="file, typed blank"),
        pytest.param("platform deploy -f 'a b", "platform deploy -f 'a b.yaml' ", id="file, open quote"),
        pytest.param("platform deploy -f ~/pl", "platform deploy -f ~/platform ", id="file at home"),
        pytest.param("platform render -o out", "platform render -o out\\ folder/", id="folder"),
        pytest.param(
            "platform render --output=out", "platform render --output=out\\ folder/", id="folder, equals sign"
        ),
        pytest.param("platform render -o oth", "platform render -o oth", id="no file where a folder is meant"),
        pytest.param("platform deploy --progress=pl", "platform deploy --progress=plain ", id="choice"),
        pytest.param(
            "platform status --kubeconfig=kube.yaml --context arn:aws:e",
            "platform status --kubeconfig=kube.yaml --context arn:aws:eks:one:7:cluster/x ",
            id="context with colons",
        ),
        pytest.param(
            "platform status --kubeconfig=kube.yaml --context=arn:aws:e",
            "platform status --kubeconfig=kube.yaml --context=arn:aws:eks:one:7:cluster/x ",
            id="context with colons, equals sign",
        ),
        pytest.param("platform cp d", "platform cp db:", id="service to copy from"),
        pytest.param("platform cp other.yaml d", "platform cp other.yaml db:", id="service to copy to"),
        pytest.param("platform cp db:/x oth", "platform cp db:/x other.yaml ", id="file to copy to"),
        pytest.param("platform cp ./oth", "platform cp ./other.yaml ", id="file to copy from"),
        pytest.param("platform cp out", "platform cp out\\ folder/", id="folder to copy from"),
        pytest.param("platform cp db:/x", "platform cp db:/x", id="path in a container"),
        pytest.param("platform cp db:/et", "platform cp db:/et", id="path in a container like one here"),
        pytest.param("platform deploy oth", "platform deploy oth", id="no file where a service is meant"),
        pytest.param("platform nonsense oth", "platform nonsense oth", id="unknown command"),
    ],
)
def test_tab(shell: Shell, line: str, expected: str) -> None:
    """Tab completes a line, and leaves one alone for which nothing is known."""
    assert expected == shell.tab(line)


@pytest.mark.parametrize("name", FOUND)
def test_script_in_a_file(name: str, folder: Path, tmp_path: Path) -> None:
    """A shell that finds the script where it looks for one reads it when Tab is first pressed."""
    file, setup = FOUND[name]
    (tmp_path / file).parent.mkdir()
    made = Shell(name, f"platform completion {name} > ~/{file}; {setup}", folder=folder, home=tmp_path)

    with contextlib.closing(made) as shell:
        assert shell.tab("platform dep") == "platform deploy "


MEANINGS = {
    "start": "Start the local cluster, and wait until it can be used.",
    "status": "Show whether the local cluster runs, its parts, addresses and disk use.",
    "stop": "Stop the local cluster; its data stays.",
}


@pytest.mark.parametrize("shell", ["zsh"], indirect=True)
def test_meanings_in_zsh(shell: Shell) -> None:
    """Several commands are listed by zsh with what they mean."""
    rows = [row.partition(" -- ") for row in shell.listed("platform cluster st").splitlines()]

    assert {name.rstrip(): meaning.rstrip() for name, dashes, meaning in rows if dashes} == MEANINGS


def test_meanings_in_fish(folder: Path, tmp_path: Path) -> None:
    """What several commands mean is known to fish, which lists nothing on a terminal as simple as the tests'."""
    args = [found("fish"), *STARTS["fish"], "-c", f"{SOURCED['fish']}; complete -C 'platform cluster st'"]
    done = subprocess.run(args, cwd=folder, env=is_stable(tmp_path), capture_output=True, text=True, check=True)

    assert [row.split("\t") for row in done.stdout.splitlines()] == [[*meaning] for meaning in MEANINGS.items()]
