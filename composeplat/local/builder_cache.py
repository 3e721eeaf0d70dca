"""The cache of the cluster's builder: its size, and emptying it, through buildx.

Owns how buildx is led to the builder: by a configuration of its own, so that the user's stays as it is.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from composeplat.local.clients import run_client
from composeplat.system.records import record

#: The name by which buildx knows the builder.
BUILDER_NAME = "composeplat"
_SIZE = re.compile(r"([0-9.]+)([kMGT]?)B")
_POWERS = {unit: 1000**power for power, unit in enumerate(("", "k", "M", "G", "T"))}


def buildx_instance(socket: Path) -> str:
    """The file by which buildx knows the cluster's builder."""
    node = {
        "Name": f"{BUILDER_NAME}0",
        "Endpoint": f"unix://{socket}",
        "Platforms": None,
        "DriverOpts": None,
        "Flags": None,
        "Files": None,
    }
    return json.dumps({"Name": BUILDER_NAME, "Driver": "remote", "Nodes": [node], "Dynamic": False})


@record
class BuilderCache:
    buildx: Path
    socket: Path
    environment: Mapping[str, str]

    def size(self) -> int:
        """How many bytes can be freed."""
        records = [json.loads(line) for line in self._run("du", "--format", "json").splitlines() if line.strip()]
        return sum(parse_size(record["Size"]) for record in records if record["Reclaimable"])

    def delete(self) -> None:
        self._run("prune", "--force", "--all")

    def _run(self, *args: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            instances = Path(folder) / "instances"
            instances.mkdir()
            (instances / BUILDER_NAME).write_text(buildx_instance(self.socket), encoding="utf-8")
            command = [str(self.buildx), args[0], "--builder", BUILDER_NAME, *args[1:]]
            return run_client(command, f"buildx {args[0]}", {**self.environment, "BUILDX_CONFIG": folder})


def parse_size(text: str) -> int:
    """Parse a size of buildx, such as ``10.5MB``; another text is 0."""
    found = _SIZE.fullmatch(text)
    return round(float(found[1]) * _POWERS[found[2]]) if found else 0
