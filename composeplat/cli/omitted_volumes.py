"""What a failing service lacks in its container that the definition gives it: host volumes of a service that is built.

Owns which failures may come from that: those of a container that ran or could not be started.
"""

from __future__ import annotations

from collections.abc import Mapping

from composeplat.cluster.failure_causes import Cause
from composeplat.codes import CauseCode
from composeplat.compose.check import check_omitted_mounts
from composeplat.compose.load import Loaded
from composeplat.compose.origins import Checker
from composeplat.diagnostics import Report, dotted

_OF_CONTAINERS = (
    CauseCode.CRASH_LOOP,
    CauseCode.JOB_FAILED,
    CauseCode.JOB_RETRIED,
    CauseCode.NOT_STARTED,
    CauseCode.TIMEOUT,
    CauseCode.UNHEALTHY,
    CauseCode.WRONG_PORT,
)


def left_out(loaded: Loaded, service: str, cause: Cause) -> Report:
    """What was left out of a failing service's container, each with its place; nothing where that can't be why."""
    report = Report()
    if cause.code in _OF_CONTAINERS and service in loaded.project.services:
        check_omitted_mounts(Checker(loaded.project, loaded.origins, report), loaded.project.services[service])
    return report


def left_out_lines(loaded: Loaded, service: str, cause: Cause) -> list[str]:
    """The same, as lines below a reason."""
    return [f"  {left_out_line(row)}" for row in left_out_rows(loaded, service, cause)]


def left_out_line(row: Mapping[str, object]) -> str:
    return f"left out of its container: {row['path']} ({row['file']}:{row['line']}:{row['column']})"


def left_out_rows(loaded: Loaded, service: str, cause: Cause) -> list[dict[str, object]]:
    return [
        {
            "path": dotted(one.path),
            "file": one.span.source.name,
            "line": one.span.line,
            "column": one.span.column,
        }
        for one in left_out(loaded, service, cause).sorted()
    ]
