"""``platform status``: how each service stands, for people and programs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from composeplat import progress
from composeplat.cli.console import show_result, wants_color
from composeplat.cli.environment_view import EnvironmentView, fit_table, terminal_width, view_environment
from composeplat.cli.omitted_volumes import left_out_line, left_out_rows
from composeplat.cli.operations import Mask, document, to_json
from composeplat.cli.selection import Choice
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.failure_causes import Cause
from composeplat.cluster.status import StatusRow, age, short_image, status_rows
from composeplat.cluster.watching import Watcher, read_last_lines
from composeplat.diagnostics import Exit, printable

_EVERY = 1.0
#: So many of the last lines of what fails are on the screen; 'platform logs' has all.
_MOST_LINES = 5
_COLORS = {"ready": "32", "completed": "32", "failing": "31", "starting": "33", "started": "33", "in-development": "36"}
#: What a narrow terminal does without, first of all the first.
_SPARE = ("IMAGE", "KIND", "AGE", "RESTARTS")
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


def run(choice: Choice, services: Sequence[str], *, watch: bool, as_json: bool) -> Exit:
    view = view_environment(choice, services)
    if view is None:
        return Exit.INVALID
    watcher = Watcher(view.planned.target.access, view.namespace, view.environment)
    mask = Mask(view.planned.plan.confidential)
    shown = ""
    with Api(view.planned.target.access) as api:
        reasons = Reasons(api, view.namespace)
        while True:
            try:
                snapshot = watcher.take_snapshot(api)
                addresses = view.addresses(api)
            except ApiError as error:
                if not shown or error.status:
                    raise
                progress.note(f"{error}; trying again")
                time.sleep(_EVERY)
                continue
            now = datetime.now(UTC)
            rows = status_rows(view.wanted(snapshot.workloads, addresses), snapshot, now)
            rows = [_with_reason(row, view, reasons) for row in rows]
            if as_json:
                found = status_document(view.environment, view.namespace, rows)
                show_result(to_json(mask.clean_data(found)))
                return Exit.DONE
            before, shown = (
                shown,
                mask.clean(
                    status_screen(
                        view.environment,
                        view.namespace,
                        rows,
                        now,
                        width=terminal_width(),
                        color=wants_color(sys.stdout),
                    )
                ),
            )
            clear = _CLEAR if watch and sys.stdout.isatty() else ""
            if (shown != before and not show_result(clear + shown)) or not watch:
                break
            time.sleep(_EVERY)
    if all(row.state == "absent" for row in rows):
        view.tell_absent()
    return Exit.DONE


@dataclass(slots=True)
class Reasons:
    """The last lines of what fails: asked for once for each end of a container, however often it is shown."""

    api: Api
    namespace: str
    _known: dict[Cause, tuple[str, ...]] = field(default_factory=dict)

    def lines(self, cause: Cause) -> tuple[str, ...]:
        if not cause.logs or not cause.pod:
            return ()
        if cause not in self._known:
            found = read_last_lines(self.api, self.namespace, cause.pod, cause.container, previous=cause.previous)
            self._known[cause] = tuple(found)
        return self._known[cause]


def _with_reason(row: StatusRow, view: EnvironmentView, reasons: Reasons) -> StatusRow:
    if row.cause is None or not row.problem:
        return row
    missing = left_out_rows(view.planned.loaded, row.service, row.cause)
    return replace(row, lines=reasons.lines(row.cause), left_out=tuple(missing))


def status_document(environment: str, namespace: str, rows: Iterable[StatusRow]) -> dict[str, object]:
    services = [
        {
            "service": row.service,
            "kind": row.kind,
            "state": row.state,
            "ready": row.ready,
            "desired": row.wanted,
            "restarts": row.restarts,
            "image": row.image,
            "created": row.created,
            "urls": list(row.urls),
            "problem": row.problem,
            "hint": row.hint,
            "pods": list(row.pods),
            "log_lines": list(row.lines),
            "omitted_volumes": list(row.left_out),
        }
        for row in rows
    ]
    return document("status", environment, namespace, services=services)


def status_screen(
    environment: str, namespace: str, rows: Sequence[StatusRow], now: datetime, *, width: int | None, color: bool
) -> str:
    """All that a person is shown; a table is cut to the width, messages and addresses are not."""
    head = ("SERVICE", "KIND", "STATE", "READY", "RESTARTS", "AGE", "IMAGE")
    cells = [
        (
            row.service,
            row.kind,
            row.state,
            f"{row.ready}/{row.wanted}",
            str(row.restarts),
            age(row.created, now) if row.created else "-",
            short_image(row.image) or "-",
        )
        for row in rows
    ]
    lines = fit_table([head, *cells], width, _SPARE).splitlines()
    if color:
        lines = [lines[0], *(_colored(line, row) for line, row in zip(lines[1:], rows, strict=True))]
    told = [line for row in rows if row.problem for line in _problem(row)]
    urls = [f"  {url}" for url in dict.fromkeys(url for row in rows for url in row.urls)]
    parts = [f"{environment} in namespace {namespace}", "", *lines]
    parts += ["", "Problems", *told] if told else []
    parts += ["", "Addresses", *urls] if urls else []
    return "\n".join(parts) + "\n"


def _problem(row: StatusRow) -> Iterable[str]:
    yield _one_line(f"  {row.service}: {row.problem}" + (f" ({row.hint})" if row.hint else ""))
    for line in row.lines[-_MOST_LINES:]:
        yield _one_line(f"    {line}")
    for one in row.left_out:
        yield _one_line(f"    {left_out_line(one)}")


def _one_line(text: str) -> str:
    return printable(text).replace("\n", " ")


def _colored(line: str, row: StatusRow) -> str:
    color = _COLORS.get(row.state)
    if not color:
        return line
    # A service may be called as a state is: what comes first in a line is its name.
    name, word, rest = line[: len(row.service)], f" {row.state} ", line[len(row.service) :]
    return name + rest.replace(word, f" \x1b[{color}m{row.state}\x1b[0m ", 1)
