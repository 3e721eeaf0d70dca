"""What help says, how it looks, and the message about a mistake on the command line."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

from composeplat.cli.commands import app, load_guides
from composeplat.cli.help_pages import page_for
from composeplat.cli.help_text import SECTIONS
from tests.conftest import ROOT, VARIABLES, run
from tests.in_process import run_here

GROUP: Any = typer.main.get_command(app)
GUIDES = load_guides()
GROUPS = [name for name, command in GROUP.commands.items() if hasattr(command, "commands")]
COMMANDS = [
    *(name for name, command in GROUP.commands.items() if not command.hidden),
    *(f"{group} {name}" for group in GROUPS for name in GROUP.commands[group].commands),
]
EXAMPLES = [pytest.param(line, id=line) for guide in GUIDES.values() for line in guide.examples.values()]


def help_of(args: str, folder: Path, *, columns: int = 80) -> str:
    """Help as a terminal of so many columns shows it."""
    return run_here(*args.split(), "--help", folder=folder, COLUMNS=str(columns)).assert_success().stdout


# commands -------------------------------------------------------------------------------------------------------------


def test_every_command_is_in_one_group() -> None:
    """Help lists each command once, under what it is for."""
    listed = [name for names in SECTIONS.values() for name in names]

    assert sorted(listed) == sorted(name for name, command in GROUP.commands.items() if not command.hidden)


def test_commands_are_listed_in_groups(tmp_path: Path) -> None:
    """The groups are in their order, each with its commands in theirs."""
    _, _, listing = help_of("", tmp_path).partition("\nDeploy:\n")

    rows = re.findall(r"^  ([a-z-]+)  +\S", listing.partition("Examples:")[0], re.MULTILINE)
    assert rows == [name for names in SECTIONS.values() for name in names]
    assert re.findall(r"^(\S.*):$", listing, re.MULTILINE) == list(SECTIONS)[1:]


def test_descriptions_are_whole(tmp_path: Path) -> None:
    """What a command does is reported to the end, also where that takes a second line."""
    assert [line for line in help_of("", tmp_path).splitlines() if line.endswith("...")] == [
        "Usage: platform [OPTIONS] COMMAND [ARGS]..."
    ]


def test_commands_that_are_not_listed(tmp_path: Path) -> None:
    """`ps` is a second name of `status`, and not listed."""
    assert "\n  ps " not in help_of("", tmp_path)
    assert help_of("ps", tmp_path).startswith("Usage: platform ps [OPTIONS] [SERVICE]...\n")


@pytest.mark.parametrize("args", ["", *GROUPS])
def test_without_a_command(tmp_path: Path, args: str) -> None:
    """A command line that ends too early shows what may follow, and is a mistake of use."""
    outcome = run_here(*args.split(), folder=tmp_path)

    assert (outcome.stdout, outcome.status) == ("", 2)
    assert outcome.stderr == help_of(args, tmp_path)


# examples -------------------------------------------------------------------------------------------------------------


def test_every_command_has_examples() -> None:
    """One to three examples for each command, and for the whole."""
    assert sorted(GUIDES) == sorted(["platform", *COMMANDS])
    assert {len(guide.examples) for guide in GUIDES.values()} <= {1, 2, 3}


@pytest.mark.parametrize("name", [name for name in GUIDES if name != "platform"])
def test_help_ends_with_examples(tmp_path: Path, name: str) -> None:
    """Each example stands as it is typed, under what it does; the last line names a page."""
    guide = GUIDES[name]
    lines = [line for what, args in guide.examples.items() for line in (f"    # {what.rstrip(':')}", f"    {args}")]

    shown = help_of(name, tmp_path)

    assert shown.endswith("\n".join(("", "  Examples:", *lines, "", f"  See docs/{guide.page}.", "")))
    assert (ROOT / "docs" / guide.page).is_file()


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_fits(tmp_path: Path, name: str) -> None:
    """Help is at most as wide as a terminal of 80 columns."""
    assert [line for line in help_of(name, tmp_path).splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_on_a_narrow_terminal(tmp_path: Path, name: str) -> None:
    """Where a terminal is narrow the text is too, and no example is broken."""
    lines = help_of(name, tmp_path, columns=40).splitlines()

    examples = GUIDES[name or "platform"].examples.items()
    kept = [f"    {line}" for what, args in examples for line in (f"# {what.rstrip(':')}", args)]
    assert [line for line in lines if len(line) > 40 and line not in kept] == []
    assert [line for line in kept if line not in lines] == []


def test_texts_stand_under_their_options(tmp_path: Path) -> None:
    """On a narrow terminal a text has the whole width, under what it explains."""
    shown = run("down", "--help", folder=tmp_path, COLUMNS="40").assert_success().stdout

    assert "\n  --env-file FILE\n    Read variables from here instead\n    of .env; may repeat.\n" in shown


def test_help_in_no_width(tmp_path: Path) -> None:
    """A terminal that is hardly there is taken for one of 30 columns and its margin."""
    shown = help_of("cluster", tmp_path, columns=1)

    assert help_of("cluster", tmp_path, columns=32) == shown
    assert "\n  Start, stop and inspect the\n  local cluster.\n" in shown


@pytest.mark.parametrize("columns", [40, 80, 120])
@pytest.mark.parametrize("name", ["", "ps", *COMMANDS])
def test_written_pages_are_the_commands_own(tmp_path: Path, name: str, columns: int) -> None:
    """A line that asks for help alone is answered from the file, any other by the command, and both say the same."""
    by_command = help_of(f"{name} --help", tmp_path, columns=columns)

    assert page_for([*name.split(), "--help"]) is not None
    assert page_for([*name.split(), "--help", "--help"]) is None
    assert help_of(name, tmp_path, columns=columns) == by_command


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(["deploy"], id="without the option"),
        pytest.param(["deploy", "--json", "--help"], id="another option"),
        pytest.param(["deploy", "--help", "web"], id="not last"),
        pytest.param(["deploy", "web", "--help"], id="an argument"),
        pytest.param(["cluster start", "--help"], id="two words in one"),
        pytest.param(["nope", "--help"], id="no such command"),
        pytest.param([], id="nothing"),
    ],
)
def test_lines_that_the_commands_read(args: list[str]) -> None:
    """Lines that ask for more than the help of a command are not answered from the file."""
    assert page_for(args) is None


@pytest.mark.parametrize("name", ["", "deploy", "cluster start"])
def test_help_as_a_command(tmp_path: Path, name: str) -> None:
    """`platform help deploy` is `platform deploy --help`, as with kubectl and Docker."""
    outcome = run_here("help", *name.split(), folder=tmp_path).assert_success()

    assert outcome.stdout == help_of(name, tmp_path)


def test_help_of_no_command(tmp_path: Path) -> None:
    """A name that no command has is a mistake there, too."""
    outcome = run_here("help", "deplyo", folder=tmp_path)

    assert (outcome.stdout, outcome.status) == ("", 2)
    assert outcome.stderr.splitlines()[-1] == "Error: No such command 'deplyo'. Did you mean 'deploy'?"


def test_help_imports_no_command(tmp_path: Path) -> None:
    """Help is shown without the modules of the command, the longest part of its start."""
    code = (
        "import sys; sys.argv = ['platform', 'deploy', '--help']; from composeplat.cli.app import main\n"
        "try: main()\n"
        "finally: print(*(name for name in sys.modules if name.startswith('composeplat.')), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=VARIABLES, capture_output=True, text=True, check=True
    )

    assert done.stdout.startswith("Usage: platform deploy [OPTIONS] [SERVICE]...\n")
    loaded = set(done.stderr.split())
    assert "composeplat.cli.help_pages" in loaded
    assert not loaded & {"composeplat.cli.deploy", "composeplat.compose.load", "composeplat.cluster.api"}


@pytest.mark.parametrize("line", EXAMPLES)
def test_examples_are_understood(line: str) -> None:
    """Each example is a command line that the commands take."""
    args = shlex.split(re.split(r" [<>|] |\)", line[line.index("platform ") :])[0])[1:]
    command, context = GROUP, GROUP.make_context("platform", ["deploy"])
    while hasattr(command, "commands"):
        name = args.pop(0)
        command = command.commands[name]
        is_group = hasattr(command, "commands")
        context = command.make_context(name, [*args], parent=context, resilient_parsing=is_group)

    assert context.command is command


# mistakes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        pytest.param("deplyo", "No such command 'deplyo'. Did you mean 'deploy'?", id="command"),
        pytest.param("cluster strat", "No such command 'strat'. Did you mean 'start', 'status'?", id="of a cluster"),
        pytest.param("variables lst", "No such command 'lst'. Did you mean 'list', 'set'?", id="of variables"),
        pytest.param("quux", "No such command 'quux'.", id="like no command"),
        pytest.param("deploy --tmeout 5", "No such option: --tmeout (Possible options: --timeout)", id="option"),
        pytest.param(
            "cluster stop --delete-dat",
            "No such option: --delete-dat (Possible options: --delete-data)",
            id="option of a cluster",
        ),
        pytest.param(
            "variables list --jsn", "No such option: --jsn (Possible options: --json)", id="option of variables"
        ),
        pytest.param("--verison", "No such option: --verison (Possible options: --version)", id="option of the whole"),
        pytest.param(
            "deploy --progress plian",
            "Invalid value for '--progress': 'plian' is not one of 'auto', 'tty', 'plain', 'quiet', 'json'.",
            id="choice",
        ),
        pytest.param("config --format xml", "Invalid value for --format: must be yaml or json", id="form"),
        pytest.param(
            "completion csh",
            "Invalid value for 'bash|zsh|fish': 'csh' is not one of 'bash', 'zsh', 'fish'.",
            id="shell",
        ),
    ],
)
def test_a_mistake_is_reported_with_valid_values(tmp_path: Path, args: str, expected: str) -> None:
    """A wrong command, option or value is reported with those that are meant, or may be."""
    outcome = run_here(*args.split(), folder=tmp_path)

    assert (outcome.stdout, outcome.status) == ("", 2)
    assert outcome.stderr.splitlines()[-1] == f"Error: {expected}"


# arguments that no command takes --------------------------------------------------------------------------------------


def reads_files(command: str) -> bool:
    return any(param.name == "file" for param in GROUP.commands[command].params) if " " not in command else False


def takes_arguments(command: str) -> bool:
    return any(param.param_type_name == "argument" for param in GROUP.commands[command].params)


READING = [command for command in COMMANDS if reads_files(command)]


@pytest.mark.parametrize("command", [command for command in READING if not takes_arguments(command)])
def test_a_compose_file_without_its_option(command: str, tmp_path: Path) -> None:
    """A Compose file that is by itself is refused, and the whole command is reported that was meant."""
    needed = ["-o", "x"] if command == "eject" else []

    outcome = run_here(command, *needed, "my own.yml", "x", folder=tmp_path)

    assert (outcome.status, outcome.stdout) == (2, "")
    assert outcome.stderr.endswith(
        "\nError: Got unexpected arguments 'my own.yml', 'x'\n"
        f"  hint: name a Compose file with -f: platform {command} -f 'my own.yml'\n"
    )


def test_a_compose_file_for_a_service_without_another(tmp_path: Path) -> None:
    """Where no Compose file is found either, the hint is the option, as where one is found."""
    (tmp_path / "my.yml").write_text("services: {a: {image: x}}\n")
    outcomes = [run_here("config", name, folder=tmp_path) for name in ("my.yml", "web")]

    assert [outcome.stderr.splitlines()[1] for outcome in outcomes] == [
        "  hint: use an option for a Compose file: --file my.yml",
        "  hint: name one with -f, or go to the folder that has one",
    ]


def test_which_commands_take_a_compose_file_for_a_service() -> None:
    """The others take services, and say it of the service that there is none of: a new command belongs to either."""
    assert sorted(command for command in READING if takes_arguments(command)) == [
        "build", "config", "cp", "deploy", "down", "events", "exec", "graph", "history", "images", "logs", "open",
        "port", "preview", "render", "restart", "rollback", "run", "status", "top", "up", "watch",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("argument", "hint"),
    [
        pytest.param("compose", " -f compose", id="a file that is there"),
        pytest.param("-", " -f -", id="standard input"),
        pytest.param("web", "", id="no file"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_names_of_compose_files(argument: str, hint: str, tmp_path: Path) -> None:
    """A file by its ending, or as it is there; anything else is only unexpected."""
    (tmp_path / "compose").write_text("")

    outcome = run_here("refresh", argument, folder=tmp_path)

    assert outcome.status == 2
    assert f"Error: Got unexpected argument '{argument}'\n" in outcome.stderr
    assert outcome.stderr.endswith(f"-f: platform refresh{hint}\n" if hint else f"'{argument}'\n")


def test_a_command_that_reads_no_compose_file(tmp_path: Path) -> None:
    """No option is advised that a command does not have, and no control character is shown."""
    outcome = run_here("setup", "foo.yml\x1b", folder=tmp_path)

    assert outcome.status == 2
    assert outcome.stderr.endswith("Error: Got unexpected argument 'foo.yml\\x1b'\n")
