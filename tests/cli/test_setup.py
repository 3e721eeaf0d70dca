"""`platform setup`: what is there, and what is missing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from composeplat.system.processes import start_time
from composeplat.toolchain.tools import PULUMI
from tests.cluster.objects import until
from tests.conftest import VARIABLES, run
from tests.schemas import checked
from tests.toolchain.test_setup import fake

CLUSTER_ALONE = ["kube", "coredns", "registry", "frontdoor", "mirror", "kwok"]


def check(tmp_path: Path, *args: str) -> tuple[int, dict[str, list[dict[str, str]]]]:
    """Ask for a check with an empty cache."""
    outcome = run("setup", "--check", "--json", *args, folder=tmp_path, COMPOSEPLAT_CACHE=str(tmp_path / "cache"))
    return outcome.status, checked(json.loads(outcome.stdout))


def test_a_check_lists_missing_programs(tmp_path: Path) -> None:
    """With nothing there every program is named, the exit status is 4, and nothing was made."""
    status, found = check(tmp_path)
    names = {row["name"]: row["source"] for row in found["programs"]}

    assert status == 4
    assert names["pulumi-resource-kubernetes"] == "missing"
    assert not set(CLUSTER_ALONE) & set(names)
    assert not (tmp_path / "cache").exists()


def test_a_check_for_the_cluster_names_its_programs_too(tmp_path: Path) -> None:
    """With --cluster the local cluster's programs are part of it."""
    _, found = check(tmp_path, "--cluster")

    assert set(CLUSTER_ALONE) <= {row["name"] for row in found["programs"]}


def test_a_check_for_people_is_a_table(tmp_path: Path) -> None:
    """Without --json it is a table with a row for each program."""
    outcome = run("setup", "--check", folder=tmp_path, COMPOSEPLAT_CACHE=str(tmp_path / "cache"))
    rows = outcome.stdout.splitlines()

    assert rows[0].split("  ")[0] == "PROGRAM"
    assert rows[1].startswith("pulumi ")
    assert "missing" in rows[1]


def test_a_check_names_unused_programs(tmp_path: Path) -> None:
    """A program on PATH of another version is named, for people and for programs."""
    path = fake(tmp_path / "bin", PULUMI, "v3.100.0")
    cache, search = str(tmp_path / "cache"), f"{path}:/usr/bin:/bin"
    expected = f"also found pulumi 3.100.0 at {path}/pulumi, not the pinned {PULUMI.version}"

    output = run("setup", "--check", folder=tmp_path, COMPOSEPLAT_CACHE=cache, PATH=search)
    rows = checked(
        json.loads(run("setup", "--check", "--json", folder=tmp_path, COMPOSEPLAT_CACHE=cache, PATH=search).stdout)
    )["programs"]

    assert output.stderr == f"{expected}\n"
    assert (rows[0]["source"], rows[0]["ignored"]) == ("missing", expected)


def test_options_that_go_together(tmp_path: Path) -> None:
    """An option without the one it goes with is a mistake of use."""
    for args, output in ((("--install",), "goes with --cluster"), (("--json",), "goes with --check")):
        outcome = run("setup", *args, folder=tmp_path)

        assert outcome.status == 2
        assert output in outcome.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_setup_that_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    """SIGTERM and SIGHUP end the build too: it ran for minutes, on all processors, and nobody waited for it."""
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    about = "[ $1 = env ] && exec printf '%s\\n' go1.99.0 linux amd64"
    go.write_text(f"#!/bin/sh\n{about}\necho $$ > {tmp_path}/pid\nexec sleep 50\n")
    go.chmod(0o755)
    variables = {**VARIABLES, "COMPOSEPLAT_CACHE": str(tmp_path / "cache"), "COMPOSEPLAT_DOWNLOADS": "off"}
    command = [str(Path(sys.executable).with_name("platform")), "setup"]
    search = f"{go.parent}:/usr/bin:/bin"

    with subprocess.Popen(command, env={**variables, "PATH": search}, stderr=subprocess.DEVNULL) as process:
        until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        time.sleep(0.3)  # the build runs before its start is over for the process
        process.send_signal(number)
        assert process.wait(timeout=60) == 128 + number

    assert start_time(int((tmp_path / "pid").read_text())) is None
