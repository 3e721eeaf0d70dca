"""``platform eject``: the variables that a shell reads, and folders that it does not write into."""

from __future__ import annotations

import json
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


def eject(folder: Path, place: str) -> Outcome:
    return run_here(
        "eject", "-o", place, folder=folder, KUBECONFIG=str(folder / ODD), COMPOSEPLAT_DATA=f"{folder}/data"
    )


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
