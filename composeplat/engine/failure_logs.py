"""Failures with their logs: the last lines of a build or of a container.

Owns asking for these lines where they are kept: the API server, or BuildKit's history; and the fix that they show.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from composeplat.cluster.api import Api
from composeplat.cluster.cause import Cause
from composeplat.cluster.probes import read_last_lines
from composeplat.codes.causes import CauseCode
from composeplat.components.build_contexts import folder_for_builder
from composeplat.compose.load.build_inputs import secrets_of_files
from composeplat.diagnostics import printable
from composeplat.engine.build_failures import confidential, read_failure
from composeplat.engine.build_history import find_record
from composeplat.engine.builder import BUILDER
from composeplat.engine.events import Events
from composeplat.engine.failure_causes import find_blocked, find_refusals
from composeplat.engine.monitor import Monitor
from composeplat.engine.outcomes import Failure
from composeplat.engine.pulumi_process import PulumiResult
from composeplat.engine.stack import Stack
from composeplat.plan.desired import ImageBuild
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import BUILDX

#: Of runc, where the program exists: one that does not is an error before the start.
_NO_INTERPRETER = re.compile(r"exec (/\S+): no such file or directory")


def note_refusals(stack: Stack, monitor: Monitor, events: Events, result: PulumiResult) -> None:
    """Record the failures of a run, service by service."""
    if not result.status:
        return

    def why_not_built(image: ImageBuild, text: str) -> Cause:
        return _cause_of_build(stack, image, text)

    for name, cause in find_refusals(events, monitor.plan, monitor.chosen, why_not_built):
        monitor.fail(name, cause)
    still_to_come = monitor.chosen - monitor.causes.keys() - monitor.applied.keys()
    for name, cause in find_blocked(monitor.plan, monitor.causes.keys(), still_to_come).items():
        monitor.fail(name, cause)


def _cause_of_build(stack: Stack, image: ImageBuild, text: str) -> Cause:
    builder = stack.workspace.builder.get(BUILDER, "")
    buildx = Toolchain(stack.variables).find(BUILDX)
    variables = stack.workspace.runner.variables
    context = folder_for_builder(image.build.context, stack.variables)
    record = find_record(buildx.path, builder, variables, text, context) if buildx else None
    hidden = confidential(image.build, secrets_of_files(image.build))
    failure = read_failure(text, record, hidden=hidden, builder=builder)
    origin = ("image",) if image.derived else failure.origin
    return Cause(
        code=CauseCode.BUILD,
        message=failure.message,
        hint=failure.hint,
        origin=origin,
        lines=failure.lines,
        has_subject=failure.has_subject,
    )


def failures_of(monitor: Monitor, api: Api | None = None) -> list[Failure]:
    """All that failed, with the last lines that show why: first what failed itself, then what only waited for it."""
    found = [failure_of(name, cause, monitor.plan.namespace, api) for name, cause in monitor.causes.items()]
    return sorted(found, key=lambda failure: failure.cause.code is CauseCode.DEPENDENCY)


def with_logged_fix(cause: Cause, lines: Sequence[str]) -> Cause:
    """Add the fix that the log shows, if the cause has none: the runtime writes there why a script can't begin."""
    found = _NO_INTERPRETER.fullmatch(lines[-1].strip()) if lines and not cause.hint else None
    if found is None:
        return cause
    hint = (
        f"{printable(found[1])} is there, but not the program in its first line: install that, or save the script with"
        " line ends of Linux (LF)"
    )
    return replace(cause, hint=hint)


def failure_of(service: str, cause: Cause, namespace: str, api: Api | None) -> Failure:
    if cause.lines:
        return Failure(service=service, cause=cause, lines=cause.lines, source="the build")
    lines: list[str] = []
    if api and cause.logs and cause.pod:
        lines = read_last_lines(api, namespace, cause.pod, cause.container, previous=cause.previous)
    return Failure(service=service, cause=with_logged_fix(cause, lines), lines=tuple(lines), source=cause.pod)
