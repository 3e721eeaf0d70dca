"""The arguments of containers, in which Kubernetes expands variables of the pod.

Owns how text stays as it is there. Pure.
"""

from __future__ import annotations

import re

_EXPANSION = re.compile(r"\$\$+(?:\()?|\$\(")


def escape(arg: str) -> str:
    """Escape an argument: Kubernetes expands ``$(X)``, and replaces ``$$`` with ``$``."""
    return _EXPANSION.sub(lambda found: found[0].replace("$", "$$"), arg)
