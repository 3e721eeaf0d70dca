"""The endpoints of a definition: the part of the model for its key ``endpoints``.

Owns their dataclasses. An endpoint from a published port is planned alone, and not part of the model.
Must not know YAML or Kubernetes, as :mod:`composeplat.compose.model`, which has them as a field of a project.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from composeplat.compose.extension_model import Patch
from composeplat.system.records import record


@record(kw_only=True)
class Route:
    path: str
    service: str
    port: int


@record(kw_only=True)
class Endpoint:
    name: str
    """Empty for the endpoint with the environment's name."""
    routes: tuple[Route, ...]
    patches: tuple[Patch, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
