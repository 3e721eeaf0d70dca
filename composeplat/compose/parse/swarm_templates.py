"""Templates of Docker Swarm, such as ``{{.Task.Slot}}``: recognised, with what to write instead.

Owns their grammar.
Must not report them: it is apart from the sections that do, as the table of unsupported keys needs it too.
Only Swarm fills them in, where its tasks start; Compose passes the text on as it is, and so does this project. So they
are a warning in a variable, and an error in a mount, where pods with volumes of their own would share one.
"""

from __future__ import annotations

import re

_TEMPLATE = (
    r"\{\{[^{}]*\.(Node\.(?:Hostname|ID|Platform)|Service\.(?:ID|Labels|Name)|Task\.(?:ID|Name|Slot))\b[^{}]*\}\}"
)
_OF_A_POD = "the program reads the name of its pod from HOSTNAME; with volumes it ends in a number, from 0"
_VARIABLES = {
    "Node": "the name of the node is not known in a pod; that of the pod is in HOSTNAME",
    "Service": "write the value",
    "Task": _OF_A_POD,
}
_MOUNTS = {
    "Node": "write the path in the container alone: each pod gets a volume of its own",
    "Service": "write the value",
    "Task": "write the path in the container alone: each pod gets a volume of its own",
}
HOSTNAME_FIX = f"leave it out: {_OF_A_POD}"


def find_template(text: str) -> str:
    """Return the name in the first template, such as ``Task.Slot``; empty without one."""
    found = re.search(_TEMPLATE, text)
    return found[1] if found else ""


def describe_template(text: str, *, is_mount: bool = False) -> tuple[str, str] | None:
    """Return the message about a template and what to write instead; None without one."""
    name = find_template(text)
    if not name:
        return None
    fixes = _MOUNTS if is_mount else _VARIABLES
    return f"has a template that only Docker Swarm fills in, {{{{.{name}}}}}", fixes[name.partition(".")[0]]
