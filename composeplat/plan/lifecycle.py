"""The hooks of a container: commands after its start and before its stop, and the signal that stops it.

The signal is sent by a hook: ``lifecycle.stopSignal`` of Kubernetes is an alpha field that API servers drop.
A hook that needs more than one command runs in the shell of :mod:`composeplat.plan.tools`, as the image may have none.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from composeplat.compose.model import Service
from composeplat.compose.placeholders import mark_quoted
from composeplat.compose.pod_model import Hook
from composeplat.names import is_shell_name
from composeplat.plan.desired import Manifest
from composeplat.plan.process_limits import sets_limits
from composeplat.plan.tools import BUSYBOX

_KILL = "KILL"
#: Where a container sees other processes, process 1 is the pod's own or the node's. The program is the oldest process
#: in the cgroups of this container; nothing gets a signal if process 1 has the same. Field 22 of `stat` is its start.
_FIND_PROGRAM = """\
program=
read_group() { group=; while read -r line; do group="$group$line "; done; } 2>/dev/null
read_group </proc/1/cgroup
first=$group
read_group </proc/self/cgroup
own=$group
[ "$own" != "$first" ] || exit 0
for folder in /proc/[0-9]*; do
  { read_group <$folder/cgroup && read -r stat <$folder/stat; } 2>/dev/null || continue
  set -- ${stat##*) }
  if [ "$group" = "$own" ] && [ $# -gt 19 ] && { [ -z "$program" ] || [ "${20}" -lt "$start" ]; }; then
    program=${folder#/proc/} start=${20}
  fi
done
[ "$program" ] || exit 0
"""


def plan_lifecycle(service: Service) -> Manifest:
    """Plan the hooks of a container; empty without any."""
    commands = {
        "postStart": _command(service.container.post_start),
        "preStop": _command(service.container.pre_stop, _stop_script(service)),
    }
    handlers = {name: {"exec": {"command": command}} for name, command in commands.items() if command}
    return {"lifecycle": handlers} if handlers else {}


def needs_shell(service: Service) -> bool:
    """Check whether a hook of a service runs in our shell, or its limits are set in it."""
    handlers = plan_lifecycle(service).get("lifecycle", {})
    return sets_limits(service) or any(handler["exec"]["command"][0] == BUSYBOX for handler in handlers.values())


def grace_period(service: Service) -> int:
    """Return the seconds between the stop and the kill: none if the stop is to be a kill."""
    return 0 if service.container.stop_signal == _KILL else service.stop_grace_period


def _command(hooks: tuple[Hook, ...], more: str = "") -> list[str]:
    if len(hooks) == 1 and not more and not hooks[0].working_dir and not hooks[0].variables:
        return list(hooks[0].command)
    # The signal is sent even if a hook before it fails.
    script = "".join(_lines(hooks, at_failure="" if more else " || exit")) + more
    return [BUSYBOX, "sh", "-c", script] if script else []


def _lines(hooks: tuple[Hook, ...], at_failure: str) -> Iterator[str]:
    for hook in hooks:
        folder = [f"cd {_quote(hook.working_dir)}"] if hook.working_dir else []
        exports = [f'export {name}="${own}"' for name, own in hook.variables.items() if is_shell_name(name)]
        command = " ".join(["exec", *_other_variables(hook), *map(_quote, hook.command)])
        yield f"({' && '.join([*folder, *exports, command])}){at_failure}\n"


def _other_variables(hook: Hook) -> list[str]:
    """Return the start of a command with the variables that no shell can export."""
    pairs = [f'{name}="${own}"' for name, own in hook.variables.items() if not is_shell_name(name)]
    return [BUSYBOX, "env", "--", *pairs] if pairs else []


def _quote(text: str) -> str:
    return shlex.quote(mark_quoted(text))


def _stop_script(service: Service) -> str:
    """Write a script that sends the signal and waits for the end; the grace period limits it."""
    name = service.container.stop_signal
    if not name or name == _KILL:
        return ""
    sees_others = service.container.sees_processes or service.pod.shares_processes
    find = _FIND_PROGRAM if sees_others else "program=1\n"
    wait = f"while kill -0 $program 2>/dev/null; do {BUSYBOX} sleep 0.1; done\n"
    return f"{find}kill -s {name} $program || exit 0\n{wait}"
