"""Run a Docker Compose file on Kubernetes.

This is the promise of the package: the names listed in ``__all__`` stay.
They are imported when first asked for, so that ``import composeplat`` costs nothing and loads no Pulumi.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

#: Promised name -> its home; no name is that of a module, which would hide it once imported.
_HOMES = {
    "ComposeEndpoints": "composeplat.components.children",
    "ComposeNetwork": "composeplat.components.children",
    "ComposeService": "composeplat.components.children",
    "ComposeStack": "composeplat.components.stack",
    "ComposeVolume": "composeplat.components.children",
    "ComposeplatError": "composeplat.diagnostics",
    "Diagnostic": "composeplat.diagnostics",
    "InvalidDefinition": "composeplat.diagnostics",
    "Loaded": "composeplat.compose.load",
    "Plan": "composeplat.plan",
    "Request": "composeplat.compose.options",
    "Service": "composeplat.components.service",
    "Settings": "composeplat.compose.options",
    "load_definition": "composeplat.compose.load",
    "make_plan": "composeplat.plan",
    "render_yaml": "composeplat.render.manifests",
}

__all__ = ["__version__", *sorted(_HOMES)]  # noqa: PLE0604 -- the table above is the one list


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        msg = f"module 'composeplat' has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(_HOMES[name]), name)
