"""Which BuildKit builds images: the user's builder, or the local cluster's.

Owns the one file that tells buildx of the local cluster's, in a folder of our own: a user's builders stay as they are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from composeplat.engine.home import Home, write_private
from composeplat.engine.target import Target

#: The variable that carries the builder's name to the program.
BUILDER = "COMPOSEPLAT_BUILDER"
_NAME = "composeplat"


def builder_variables(environment: Mapping[str, str], target: Target, home: Home) -> dict[str, str]:
    named = environment.get("BUILDX_BUILDER", "")
    if named or target.layout is None:
        return {BUILDER: named}
    folder = home.folder / "buildx"
    endpoint = f"unix://{target.layout.buildkit_socket}"
    node = {"Name": f"{_NAME}0", "Endpoint": endpoint, "Platforms": None, "DriverOpts": None, "Flags": None,
            "Files": None}  # fmt: skip
    instance = {"Name": _NAME, "Driver": "remote", "Nodes": [node], "Dynamic": False}
    for folder_name in ("instances", "defaults", "activity"):
        os.makedirs(folder / folder_name, exist_ok=True)
    write_private(folder / "instances" / _NAME, json.dumps(instance))
    return {BUILDER: _NAME, "BUILDX_CONFIG": str(folder)}
