"""Reveal the secrets among inputs that were kept of an earlier state.

Pulumi itself decrypts them, whichever provider of secrets the state has: it exports a state that holds nothing else,
from a backend in a folder of its own.
Owns that folder, in which the secrets are encrypted; in plain text they are in this process alone.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from composeplat.diagnostics import ComposeplatError
from composeplat.engine.backend import writing
from composeplat.engine.backend_url import URL_VARIABLE, file_url
from composeplat.engine.pulumi_errors import explain
from composeplat.engine.recorded_plan import Inputs, reveal
from composeplat.engine.workspace import Workspace
from composeplat.system.atomic import write_private

_TYPE = "composeplat:index:Earlier"


def reveal_inputs(workspace: Workspace, state: Mapping[str, Any], inputs: Inputs) -> Inputs:
    """Return inputs as a plan has them; ``state`` is the present one, with the provider of the secrets."""
    name, namespace = workspace.environment_name, workspace.namespace
    with writing(workspace.folder), tempfile.TemporaryDirectory(dir=workspace.folder, prefix="earlier-") as made:
        folder = Path(made)
        stacks = folder / ".pulumi" / "stacks" / name
        stacks.mkdir(parents=True)
        write_private(folder / ".pulumi" / "meta.yaml", "version: 1\n")
        write_private(stacks / f"{namespace}.json", _state_of(name, namespace, state, inputs))
        variables = {**workspace.runner.variables, URL_VARIABLE: file_url(folder)}
        runner = replace(workspace.runner, variables=variables)
        exported = runner.query("stack", "export", "--show-secrets", "--stack", namespace)
    if exported.status:
        raise explain(exported.output)
    (resource,) = json.loads(exported.output)["deployment"]["resources"]
    revealed = {key: reveal(found) for key, found in resource["inputs"].items()}
    if revealed.keys() != inputs.keys():
        raise ComposeplatError("Pulumi did not return all objects of the revision")
    return revealed


def _state_of(name: str, namespace: str, state: Mapping[str, Any], inputs: Inputs) -> str:
    """The text of a state with one resource, whose inputs are all of these."""
    resource = {
        "urn": f"urn:pulumi:{namespace}::{name}::{_TYPE}::{name}",
        "custom": False,
        "type": _TYPE,
        "inputs": inputs,
    }
    kept = {key: state[key] for key in ("manifest", "secrets_providers", "metadata") if key in state}
    stack = {"stack": f"organization/{name}/{namespace}", "latest": {**kept, "resources": [resource]}}
    return json.dumps({"version": 3, "checkpoint": stack})
