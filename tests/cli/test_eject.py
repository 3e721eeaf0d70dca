"""``platform eject``: the variables that a shell reads, and folders that it does not write into."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Seam
from tests.cluster.objects import Answer
from tests.conftest import Outcome
from tests.in_process import run_here

ODD = "kübe $HOME `x`"


@pytest.fixture
def folder(seam: Seam) -> Path:
    """A folder with a definition, and a kubeconfig whose path has characters that a shell gives a meaning."""
    (seam.folder / "compose.yaml").write_text("services: {web: {image: example/web}}\n")
    (seam.folder / "kubeconfig").rename(seam.folder / ODD)
    seam.server.answers["/api/v1/namespaces/kube-system"] = Answer(b'{"metadata": {"uid": "one"}}')
    return seam.folder


def eject(folder: Path, place: str, *args: str, inside: str = ".", **variables: str) -> Outcome:
    given = {"KUBECONFIG": str(folder / ODD), "COMPOSEPLAT_DATA": f"{folder}/data", **variables}
    return run_here("eject", "-o", place, *args, folder=folder / inside, **given)


def configuration(folder: Path) -> dict[str, Any]:
    """What the stack's file configures, by the names of the settings."""
    config = json.loads((folder / "Pulumi.team.yaml").read_text())["config"]
    return {name.removeprefix("composeplat:"): value for name, value in config.items()}


def test_a_folder_by_a_link(folder: Path) -> None:
    """Where the way to the folder has a link, the paths in it lead from where it really is to the definition."""
    place = folder.parent / "far" / "away"
    place.mkdir(parents=True)
    (folder / "link").symlink_to(place)
    eject(folder, "link/plain").assert_success()

    (path,) = configuration(place / "plain")["files"]
    assert (place / "plain" / path).resolve() == (folder / "compose.yaml").resolve()


@pytest.mark.parametrize(
    ("args", "variables", "expected"),
    [
        pytest.param((), {}, ["../../.env", "../.env"], id="of-the-current-folder"),
        pytest.param(("-f", "../compose.yaml"), {}, None, id="beside-the-definition"),
        pytest.param(("--env-file", "../b.env"), {"COMPOSE_ENV_FILES": "c.env"}, ["../../b.env"], id="by-the-option"),
        pytest.param((), {"COMPOSE_ENV_FILES": "c.env,../b.env"}, ["../c.env", "../../b.env"], id="by-the-variable"),
        pytest.param((), {"COMPOSE_DISABLE_ENV_FILE": "1"}, None, id="none"),
    ],
)
def test_env_files(folder: Path, args: tuple[str, ...], variables: dict[str, str], expected: list[str] | None) -> None:
    """The configuration names the env files of the command in their order, unless the program reads them anyway."""
    (folder / "deep").mkdir()
    for name in (".env", "b.env", "deep/.env", "deep/c.env"):
        (folder / name).write_text("A=1\n")
    eject(folder, "plain", *args, inside="deep", **variables).assert_success()

    assert configuration(folder / "deep/plain").get("envFiles") == expected


def test_an_env_file_that_is_a_pipe(folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(writer)
    outcome = eject(folder, "plain", "--env-file", f"/dev/fd/{reader}")
    os.close(reader)

    message = "error: an env file that is a pipe can't be ejected"
    hint = "  hint: name a file with --env-file, or set its variables in the shell"
    assert (outcome.status, outcome.stderr.splitlines()[-2:]) == (1, [message, hint])


def test_a_shell_reads_the_variables(folder: Path) -> None:
    """A shell gets each value as it is."""
    exported = eject(folder, "plain").assert_success().stdout
    script = f'set -eu; {exported} printf %s "$KUBECONFIG"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == str(folder / ODD)


def test_a_file_in_the_place_of_the_folder(folder: Path) -> None:
    (folder / "plain").touch()
    outcome = eject(folder, "plain")

    assert (outcome.status, outcome.stderr.splitlines()[-2:]) == (
        1, ["error: can't write into 'plain': not a directory", "  hint: choose another folder with -o"]
    )  # fmt: skip


def test_no_state_to_continue_from(folder: Path) -> None:
    """Before the first deploy plain Pulumi finds no stack: a message names the commands that create it."""
    note = (
        "there is no state of shop in namespace team yet: 'platform deploy' creates it, or 'pulumi stack init team'\n"
    )
    assert eject(folder, "new", "--name", "shop").assert_success().stderr.endswith(note)

    state = folder / "data/state/one/.pulumi/stacks/shop/team.json"
    state.parent.mkdir(parents=True)
    state.write_text("{}")
    assert note not in eject(folder, "later", "--name", "shop").assert_success().stderr


def test_events_for_a_program(folder: Path) -> None:
    """With --progress json, standard error has no line of text among its JSON; the variables are the result."""
    outcome = eject(folder, "new", "--progress", "json").assert_success()

    assert [line for line in outcome.stderr.splitlines() if not line.startswith("{")] == []
    assert outcome.stdout.startswith("export ")
