"""Run a Docker Compose file on Kubernetes.

This is the promise of the package: the names listed in ``__all__`` stay.
They are imported when first asked for, so that ``import composeplat`` costs nothing and loads no Pulumi.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the types of the names, for programs that use them
    from composeplat.components.children import (
        ComposeEndpoints as ComposeEndpoints,
        ComposeNetwork as ComposeNetwork,
        ComposeService as ComposeService,
        ComposeVolume as ComposeVolume,
    )
    from composeplat.components.service import Service as Service
    from composeplat.components.stack import ComposeStack as ComposeStack
    from composeplat.compose.load import Loaded as Loaded, load_definition as load_definition
    from composeplat.compose.options import Request as Request, Settings as Settings
    from composeplat.diagnostics import (
        ComposeplatError as ComposeplatError,
        Diagnostic as Diagnostic,
        InvalidDefinition as InvalidDefinition,
    )
    from composeplat.plan import Plan as Plan, make_plan as make_plan
    from composeplat.render.manifests import render_yaml as render_yaml

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


if not TYPE_CHECKING:  # a name that is not there is an error for type checkers too

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            msg = f"module 'composeplat' has no attribute {name!r}"
            raise AttributeError(msg)
        return getattr(import_module(_HOMES[name]), name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *_HOMES})
