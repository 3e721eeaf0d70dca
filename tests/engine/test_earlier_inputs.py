"""The secrets among kept inputs, revealed by Pulumi itself from an encrypted state."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composeplat.diagnostics import MissingPiece
from composeplat.engine.earlier_inputs import reveal_inputs
from composeplat.engine.pulumi_process import PulumiRunner
from composeplat.plan.revealed import Revealed
from tests.engine.test_new_state import Pulumi

MARK = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}
OTHER = {"PULUMI_CONFIG_PASSPHRASE": "other"}
INPUTS = {
    "environment/web": {"kind": "Secret", "data": {**MARK, "plaintext": '{"TOKEN":"aHVzaC1odXNo"}'}},
    "workload/web": {"kind": "Deployment", "spec": {"args": ["a", {**MARK, "plaintext": '"hush-hush"'}]}},
}


@pytest.fixture
def state(tmp_path: Path) -> tuple[Pulumi, dict[str, Any]]:
    """A state with these inputs, which Pulumi has encrypted."""
    pulumi = Pulumi(tmp_path)
    pulumi.need("stack", "init", "team")
    resources = [
        {"urn": f"urn:pulumi:team::shop::a:b:C::{name.replace('/', '-')}", "type": "a:b:C", "inputs": inputs}
        for name, inputs in INPUTS.items()
    ]
    latest = json.loads(pulumi.need("stack", "export", "--stack", "team"))
    latest["deployment"]["resources"] = resources
    (tmp_path / "plain.json").write_text(json.dumps(latest))
    pulumi.need("stack", "import", "--stack", "team", "--file", str(tmp_path / "plain.json"))
    return pulumi, json.loads(pulumi.path("team").read_text())["checkpoint"]["latest"]


def workspace(pulumi: Pulumi, folder: Path, **more: str) -> Any:
    runner = PulumiRunner(program=Path(pulumi.program), folder=pulumi.project, variables={**pulumi.variables, **more})
    return SimpleNamespace(environment_name="shop", namespace="team", folder=folder, runner=runner)


def test_secrets_are_revealed(state: tuple[Pulumi, dict[str, Any]], tmp_path: Path) -> None:
    """Each stays marked as one; the state is not touched, and nothing is left on the disk."""
    pulumi, found = state
    inputs = dict(zip(INPUTS, (resource["inputs"] for resource in found["resources"]), strict=True))
    before = pulumi.path("team").read_bytes()
    own = tmp_path / "own"
    own.mkdir()

    revealed = reveal_inputs(workspace(pulumi, own), found, inputs)

    assert "hush" not in json.dumps(inputs)
    assert revealed == {
        "environment/web": {"kind": "Secret", "data": Revealed({"TOKEN": "aHVzaC1odXNo"})},
        "workload/web": {"kind": "Deployment", "spec": {"args": ["a", Revealed("hush-hush")]}},
    }
    assert pulumi.path("team").read_bytes() == before
    assert list(own.iterdir()) == []


def test_another_passphrase(state: tuple[Pulumi, dict[str, Any]], tmp_path: Path) -> None:
    """It is a missing piece, as for the state itself."""
    pulumi, found = state
    inputs = {"a": found["resources"][0]["inputs"]}

    with pytest.raises(MissingPiece, match="the state is encrypted with another passphrase"):
        reveal_inputs(workspace(pulumi, tmp_path, **OTHER), found, inputs)
