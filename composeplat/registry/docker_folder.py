"""The folder of Docker's configuration on this machine: logins, builders, contexts and plugins.

Owns where it is. Must not read it. It is apart because all who read something there must look in the same place.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from composeplat.system.folders import home_folder


def docker_folder(environment: Mapping[str, str]) -> Path:
    """``DOCKER_CONFIG``, else ``.docker`` in the home folder, also where ``HOME`` is not set."""
    named = environment.get("DOCKER_CONFIG")
    return Path(named) if named else home_folder(environment) / ".docker"
