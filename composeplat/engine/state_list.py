"""The environments of a backend.

Owns the form of Pulumi's list of stacks. It is apart from the state of one stack, of which it needs a runner alone.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

from composeplat.engine.pulumi_errors import explain
from composeplat.engine.state_store import StateStore

_PARTS = 2


def list_stacks(store: StateStore) -> list[tuple[str, str]]:
    """List the environments of the backend of a store: names and namespaces."""
    # In a project's folder, Pulumi shortens the names of its stacks.
    with tempfile.TemporaryDirectory(prefix="composeplat-") as folder:
        done = replace(store.runner(), folder=Path(folder)).query("stack", "ls", "--all", "--json")
    if done.status:
        raise explain(done.output)
    names = [str(row["name"]).split("/")[-_PARTS:] for row in json.loads(done.output)]
    return sorted((name[0], name[1]) for name in names if len(name) == _PARTS)
