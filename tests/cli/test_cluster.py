"""`platform cluster` where none runs; tests/local has the running ones."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import run
from tests.schemas import checked


def test_status_of_none(tmp_path: Path) -> None:
    """Where no cluster runs, status says how to start one, and ends with 4."""
    outcome = run("cluster", "status", folder=tmp_path, COMPOSEPLAT_CLUSTER=str(tmp_path))

    assert (outcome.status, outcome.stdout) == (4, "")
    assert outcome.stderr == "the local cluster is not running: platform cluster start\n"


def test_status_of_none_as_json(tmp_path: Path) -> None:
    """As JSON, it is data on standard output."""
    outcome = run("cluster", "status", "--json", "--simulated", folder=tmp_path, COMPOSEPLAT_CLUSTER=str(tmp_path))

    assert outcome.status == 4
    assert checked(json.loads(outcome.stdout)) == {
        "schema": "platform/cluster/1",
        "running": False,
        "kubeconfig": str(tmp_path / "simulated" / "kubeconfig"),
        "parts": {},
    }


def test_stop_of_none(tmp_path: Path) -> None:
    """To stop what does not run is no mistake."""
    outcome = run("cluster", "stop", "--simulated", folder=tmp_path, COMPOSEPLAT_CLUSTER=str(tmp_path))

    assert outcome.status == 0
    assert outcome.stderr == "the simulated cluster was not running\n"
