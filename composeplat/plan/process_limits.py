"""The limits of a program's processes: a shell sets them, and becomes the program.

The shell is that of :mod:`composeplat.plan.tools`, as the image may have none; it needs the program's entrypoint, which
must be in the definition: only a registry knows that of an image.
"""

from __future__ import annotations

from collections.abc import Iterator

from composeplat.compose.model import Service
from composeplat.compose.origins import Checker
from composeplat.compose.pod_model import LIMITS, UNLIMITED, ProcessLimit
from composeplat.plan.arguments import escape
from composeplat.plan.desired import Manifest
from composeplat.plan.tools import BUSYBOX

#: Sets the hard limit where it may, then the soft one, then the hard one that was below the old soft one.
_SCRIPT = """\
limit() {
  ulimit -H -$2 $4 2>/dev/null
  ulimit -S -$2 $3 2>/dev/null || ulimit -S -$2 "$(ulimit -H -$2)"
  ulimit -H -$2 $4 2>/dev/null || echo "ulimits: $1 can't be $6: the hard limit here is $(($(ulimit -H -$2) * $5))" >&2
}
"""


def sets_limits(service: Service) -> bool:
    """Check whether a service has limits, and the program to set them for is known."""
    return bool(service.container.limits and (service.entrypoint or (service.entrypoint == () and service.command)))


def with_limits(service: Service, fields: Manifest) -> Manifest:
    """Return the command and arguments of a container with the shell that sets its limits before them."""
    if not sets_limits(service):
        return fields
    script = _SCRIPT + "".join(_lines(service.container.limits)) + 'exec "$@"\n'
    return {**fields, "command": [BUSYBOX, "sh", "-c", escape(script), "ulimits", *fields["command"]]}


def _lines(limits: tuple[ProcessLimit, ...]) -> Iterator[str]:
    """Yield a line for each limit: name, option, soft and hard value in the shell's unit, unit, and hard value."""
    for limit in limits:
        option, unit = LIMITS[limit.name]
        values = ((limit.soft, unit), (limit.hard, unit), (limit.hard, 1))
        soft, hard, written = ("unlimited" if value == UNLIMITED else -(-value // per) for value, per in values)
        yield f"limit {limit.name} {option} {soft} {hard} {unit} {written}\n"


def check_process_limits(checker: Checker, service: Service) -> None:
    if service.container.limits and not sets_limits(service):
        message = "has no effect without 'entrypoint': the shell that sets the limits must know the program to start"
        hint = "give the entrypoint of the image: docker inspect --format '{{.Config.Entrypoint}}' IMAGE"
        checker.add("no-effect", ("services", service.name, "ulimits"), message, hint)
