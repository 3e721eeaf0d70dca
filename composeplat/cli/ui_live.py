"""An environment as the page sees it while it runs: the sources of its topics, its logs, and its actions.

Owns what is read when: the cluster is watched, files are looked at once a second, and the history is read again when an
operation ends. Each document is that of a command's ``--json``, masked like everything that a command prints.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

from composeplat import progress
from composeplat.cli.environment_view import EnvironmentView
from composeplat.cli.events import events_document, events_of, events_path
from composeplat.cli.hidden_values import hide_secrets_of
from composeplat.cli.history import history_document
from composeplat.cli.logs import follow_logs
from composeplat.cli.operations import ask_cluster, for_target, load_plan, stack_for
from composeplat.cli.selection import Choice, request_for
from composeplat.cli.status import StatusReader, status_document
from composeplat.cli.ui_actions import action_arguments
from composeplat.cli.ui_documents import changed_files, definition_document, log_row, page_document, read_stamp
from composeplat.cluster.api import Api
from composeplat.cluster.live_list import LiveList
from composeplat.cluster.logs import Follower, LogQuery
from composeplat.cluster.watching import AGE_KEPT_S
from composeplat.compose.load import Loaded
from composeplat.compose.options import UNKNOWN_DOMAIN
from composeplat.engine.history import read_history
from composeplat.engine.operation_log import OperationFollower
from composeplat.plan import Plan
from composeplat.ui.log_batches import Line
from composeplat.ui.site import Environment, LogRequest, Site
from composeplat.ui.topics import PROBLEM, Publish

_FILES_INTERVAL_S = 1.0
_STATUS_INTERVAL_S = 0.25
#: The messages of rows have ages, and some failures count only after a while: both change without any event.
_STATUS_KEPT_S = AGE_KEPT_S / 2
_EVENTS_INTERVAL_S = 1.0
_HISTORY_INTERVAL_S = 30.0
#: Only the time of a file is looked at.
_OPERATION_INTERVAL_S = 0.2
#: A reader of many services pauses this many times as long as it worked.
_PAUSE_PER_WORK = 10
_MAX_EVENTS = 500


class LiveEnvironment:
    """An environment with a definition, which may change while the page is open."""

    def __init__(self, choice: Choice, view: EnvironmentView) -> None:
        self._choice = choice
        self._view = view
        self._definition_lock = threading.Lock()
        self._operation_ended = threading.Event()
        """Set when the history may be another one."""

    def site(self, *, read_only: bool) -> Site:
        """Return a site with this environment alone."""
        environment = self._served(read_only=read_only)
        shown = {"namespace": environment.namespace, "environment": environment.name, "has_definition": True}
        return Site(
            page=lambda: page_document([shown], read_only=read_only),
            find=lambda namespace, name: environment if (namespace, name) == environment.key else None,
            sources={},
        )

    def _served(self, *, read_only: bool) -> Environment:
        """Return what the server needs of it."""
        choice = self._choice
        return Environment(
            namespace=self._view.namespace,
            name=self._view.environment,
            sources={
                "definition": self._read_definition,
                "status": self._read_status,
                "events": self._read_events,
                "history": self._read_history,
                "operation": self._read_operation,
            },
            open_logs=self._open_logs,
            arguments=None if read_only else lambda name, services: action_arguments(choice, name, services),
            read_stamp=lambda: read_stamp(*self._read_plan()),
        )

    # the definition

    def _read_plan(self) -> tuple[Loaded, Plan]:
        """Read the definition again; if it has no errors, the view is of it from now on."""
        planned = self._view.planned
        request = for_target(replace(request_for(self._choice), publishes=False), planned.target)
        if not request.default_domain:
            request = replace(request, default_domain=UNKNOWN_DOMAIN)
        answer = ask_cluster(request, planned.target)
        if answer.error is not None:
            raise answer.error
        with self._definition_lock:
            loaded, plan = load_plan(answer.complete(request))
            confidential = hide_secrets_of(loaded, plan, answer.variables, planned.target)
            if not loaded.report.errors:
                new = replace(planned, plan=plan.with_confidential(confidential), loaded=loaded)
                self._view = EnvironmentView(new, tuple(service.name for service in plan.services))
            return loaded, plan

    def _read_definition(self, publish: Publish, ended: threading.Event) -> None:
        planned, state = self._view.planned, None
        loaded, plan = planned.loaded, planned.plan
        while not ended.is_set():
            found = changed_files(loaded)
            if state not in (None, found):
                loaded, plan = self._read_plan()
            if state != found:
                strict = self._choice.strict
                publish("definition", definition_document(loaded, plan, cluster=planned.context, strict=strict))
            state = found
            ended.wait(_FILES_INTERVAL_S)

    # the cluster

    def _read_status(self, publish: Publish, ended: threading.Event) -> None:
        while not ended.is_set():
            view = self._view
            with Api(view.planned.target.access) as api:
                reader = StatusReader(view, api)
                try:
                    self._follow_status(view, reader, publish, ended)
                finally:
                    reader.stop()

    def _follow_status(
        self, view: EnvironmentView, reader: StatusReader, publish: Publish, ended: threading.Event
    ) -> None:
        """Publish the status until the definition is another one."""
        rows, snapshot, problem = reader.read(), None, ""
        read_at = 0.0
        while not ended.is_set() and view is self._view:
            began = time.monotonic()
            if reader.latest is not snapshot or began - read_at > _STATUS_KEPT_S or reader.problem != problem:
                snapshot, read_at = reader.latest, began
                rows = reader.read_again(rows)
                publish("status", _masked(status_document(view.environment, view.namespace, rows)))
            if reader.problem != problem:
                problem = reader.problem
                publish(PROBLEM, {"message": problem, "hint": ""})
            pause = _PAUSE_PER_WORK * (time.monotonic() - began)
            ended.wait(min(max(_STATUS_INTERVAL_S, pause), _STATUS_KEPT_S))

    def _read_events(self, publish: Publish, ended: threading.Event) -> None:
        changed = threading.Event()
        view = self._view
        with Api(view.planned.target.access) as api:
            live = LiveList(view.planned.target.access, events_path(view), changed)
            try:
                while not ended.is_set():
                    workloads = view.take_snapshot(api).workloads
                    found = events_of(view, live.read(api), workloads)[-_MAX_EVENTS:]
                    publish("events", _masked(events_document(view.environment, view.namespace, found)))
                    _wait(changed, ended, _EVENTS_INTERVAL_S)
                    changed.clear()
                    view = self._view
            finally:
                live.stop()

    def _read_history(self, publish: Publish, ended: threading.Event) -> None:
        view = self._view
        while not ended.is_set():
            with Api(view.planned.target.access) as api:
                revisions = read_history(api, view.namespace, view.environment)
            publish("history", _masked(history_document(view, revisions)))
            self._operation_ended.wait(_HISTORY_INTERVAL_S)
            self._operation_ended.clear()

    def _read_operation(self, publish: Publish, ended: threading.Event) -> None:
        """Follow what runs on the stack, from whichever terminal of this machine."""
        follower = OperationFollower(stack_for(self._view.planned).workspace.folder)
        while not ended.is_set():
            if follower.update():
                publish("operation", _masked(follower.document))
                if (follower.document or {}).get("state") != "running":
                    self._operation_ended.set()
            ended.wait(_OPERATION_INTERVAL_S)
        self._operation_ended.set()

    def _open_logs(self, asked: LogRequest) -> LogLines:
        view = self._view
        known = view.chosen
        chosen = tuple(name for name in known if not asked.services or name in asked.services)
        return LogLines(EnvironmentView(view.planned, chosen), LogQuery(tail=asked.tail))


class LogLines:
    """The log lines of some services, as the page shows them."""

    def __init__(self, view: EnvironmentView, asked: LogQuery) -> None:
        self._names = view.names
        self._follower: Follower = follow_logs(view, asked, lambda _: None)

    def lines(self) -> Iterator[Line]:
        for line in self._follower.lines():
            yield log_row(line, self._names)

    def stop(self) -> None:
        self._follower.stop()


def _masked(data: object) -> object:
    return progress.masked_data(data)


def _wait(changed: threading.Event, ended: threading.Event, interval_s: float) -> None:
    """Wait until something has changed, at least for the interval."""
    ended.wait(interval_s)
    while not ended.is_set() and not changed.wait(interval_s):
        pass
