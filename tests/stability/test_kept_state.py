"""The resources of this version against a state that the release before left: without a cluster and its history."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]

from composeplat.components.program import declare
from tests.components.test_stack import run
from tests.conftest import Folder
from tests.stability.kept_state import comparable, read_state
from tests.stability.test_promises import HERE, urns

#: The inputs that this version changes in place, by the name of the resource, and why.
CHANGED: dict[str, str] = {}


def registered(folder: Path) -> dict[str, Any]:
    """The inputs that this version gives Pulumi for the same environment, by URN."""
    copy = folder / "environment"
    shutil.copytree(HERE / "environment", copy)
    more = {"name": "env", "namespace": "team", "registry": "localhost:5000", "domain": "localhost"}
    plan = Folder(copy, {"TOKEN": "planted-token"}).read("compose.yaml", **more).plan
    assert plan is not None
    requests = run(partial(declare, plan, cluster="here", gate=None, builder=""), preview=True).requests
    inputs = [MessageToDict(request.object) for request in requests]
    resources = [{"urn": urn, "inputs": found} for urn, found in zip(urns(requests, "env"), inputs, strict=True)]
    return comparable(resources, {})


def test_no_resource_is_renamed(tmp_path: Path) -> None:
    """Types and URNs are those of the state: another one would be a new resource, and the old one deleted."""
    assert sorted(registered(tmp_path)) == sorted(read_state())


def test_inputs_are_the_same(tmp_path: Path) -> None:
    """Each object has the inputs of the state, so that a deploy changes nothing; each exception has its reason."""
    before, after = read_state(), registered(tmp_path)

    changed = {urn.rpartition("::")[2] for urn in before if before[urn] != after[urn]}
    assert changed == set(CHANGED), {
        name: (before[urn], after[urn]) for urn in before for name in changed if urn.endswith(name)
    }
