"""The commands and arguments of containers, in which Kubernetes expands variables of the pod.

Owns how text stays as it is there, and which fields Compose's keys become. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_EXPANSION = re.compile(r"\$\$+(?:\()?|\$\(")


def escape(arg: str) -> str:
    """Escape an argument: Kubernetes expands ``$(X)``, and replaces ``$$`` with ``$``."""
    return _EXPANSION.sub(lambda found: found[0].replace("$", "$$"), arg)


def plan_command(entrypoint: tuple[str, ...] | None, command: Iterable[str] | None) -> dict[str, list[str]]:
    """Map Compose's entrypoint to Kubernetes's command, and Compose's command to its args."""
    fields = {"command": list(map(escape, entrypoint or ())), "args": list(map(escape, command or ()))}
    if entrypoint == ():
        # Kubernetes can't clear an image's entrypoint, so that the command takes its place.
        fields = {"command": fields["args"]}
    return {key: args for key, args in fields.items() if args}
