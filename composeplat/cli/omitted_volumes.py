"""The host volumes that a built service does not get in the cluster, listed with a failure that they may cause.

Owns which failures those are: failures of a container that ran or could not be started.
"""

from __future__ import annotations

from collections.abc import Mapping

from composeplat.cli.console import place_row
from composeplat.cluster.cause import Cause
from composeplat.codes.causes import CauseCode
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
    """Report the mounts that the container of a failing service lacks; none if they can't be the reason."""
    report = Report()
    if cause.code in _OF_CONTAINERS and service in loaded.project.services:
        check_omitted_mounts(Checker(loaded.project, loaded.origins, report), loaded.project.services[service])
    return report


def left_out_lines(loaded: Loaded, service: str, cause: Cause) -> list[str]:
    """List the same as lines, to be printed below a reason."""
    return [f"  {left_out_line(row)}" for row in left_out_rows(loaded, service, cause)]


def left_out_line(row: Mapping[str, object]) -> str:
    return f"left out of its container: {row['path']} ({row['file']}:{row['line']}:{row['column']})"


def left_out_rows(loaded: Loaded, service: str, cause: Cause) -> list[dict[str, object]]:
    missing = left_out(loaded, service, cause).sorted()
    return [{"path": dotted(mount.path), **place_row(mount.span)} for mount in missing]
