"""The environment here as the page sees it: the sources of its topics, its logs, and its actions.

Owns the definition, which may change while the page is open: its files are looked at once a second.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from composeplat import progress
from composeplat.cli.environment_view import EnvironmentView
from composeplat.cli.events import events_document, events_of
from composeplat.cli.hidden_values import hide_secrets_of
from composeplat.cli.operations import ask_cluster, for_target, load_plan, stack_for
from composeplat.cli.selection import Choice, request_for
from composeplat.cli.status import StatusReader
from composeplat.cli.ui_actions import action_arguments
from composeplat.cli.ui_documents import changed_files, definition_document, page_document, read_stamp, with_errors
from composeplat.cli.ui_sources import (
    LogLines,
    Place,
    follow_events,
    follow_history,
    follow_status,
    latest_events,
    open_logs,
)
from composeplat.cluster.api import Api
from composeplat.cluster.snapshot import Object
from composeplat.compose.load import Loaded
from composeplat.compose.options import UNKNOWN_DOMAIN
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.operation_document import OperationState
from composeplat.engine.operation_log import OperationFollower
from composeplat.plan import Plan
from composeplat.ui.actions import Name
from composeplat.ui.site import Environment, LogRequest, Site
from composeplat.ui.topics import NO_PROBLEM, PROBLEM, Publish

_FILES_INTERVAL_S = 1.0
#: Only the time of a file is looked at.
_OPERATION_INTERVAL_S = 0.2
_START_AGAIN = "start platform ui again for it"


class LiveEnvironment:
    """An environment with a definition, which may change while the page is open."""

    def __init__(self, choice: Choice, view: EnvironmentView) -> None:
        self._choice = _of_the_shown(choice, view)
        self._view = view
        self._place = Place(view.planned.target.access, view.namespace, view.environment)
        self._definition_lock = threading.Lock()
        self._loaded = view.planned.loaded
        """That of the files as they are now, with errors or without."""
        self._files_state = changed_files(self._loaded)
        self._definition = self._good_definition = self._document(self._loaded, view.planned.plan)
        self._problem = ""
        """Why the definition is not shown as it is now; its errors are in its document."""
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
        return Environment(
            namespace=self._place.namespace,
            name=self._place.environment,
            sources={
                "definition": self._read_definition,
                "status": self._read_status,
                "events": self._read_events,
                "history": self._read_history,
                "operation": self._read_operation,
            },
            open_logs=self._open_logs,
            arguments=None if read_only else self._arguments,
            read_stamp=self._read_stamp,
        )

    def _arguments(self, action: str, services: Sequence[str]) -> Sequence[str]:
        # A deploy with a name on its command line may take over the environment of another project.
        is_by_name = action not in (Name.PREVIEW, Name.DEPLOY)
        choice = replace(self._choice, name=self._place.environment) if is_by_name else self._choice
        return action_arguments(choice, action, services)

    def _read_stamp(self) -> str:
        loaded, plan = self._read_plan()
        if problem := self._other_environment(plan):
            raise ComposeplatError(problem, _START_AGAIN)
        return read_stamp(loaded, plan)

    def _other_environment(self, plan: Plan) -> str:
        """Return a message if the definition is now of another environment than the page; empty if it is not."""
        is_other = plan.environment != self._place.environment
        return f"the definition is now of the environment '{plan.environment}'" if is_other else ""

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
            if not loaded.report.errors and not self._other_environment(plan):
                new = replace(planned, plan=plan.with_confidential(confidential), loaded=loaded)
                self._view = EnvironmentView(new, tuple(service.name for service in plan.services))
            return loaded, plan

    def _read_definition(self, publish: Publish, ended: threading.Event) -> None:
        self._publish_definition(publish)
        while not ended.is_set():
            state = changed_files(self._loaded)
            if state != self._files_state:
                self._definition, self._problem = self._read_again()
                self._files_state = state
                self._publish_definition(publish)
            ended.wait(_FILES_INTERVAL_S)

    def _publish_definition(self, publish: Publish) -> None:
        publish("definition", self._definition)
        publish(PROBLEM, {"message": self._problem, "hint": _START_AGAIN} if self._problem else NO_PROBLEM)

    def _read_again(self) -> tuple[dict[str, object], str]:
        """Return the document of the changed files, and what keeps it from being shown.

        With errors, and of another environment, it is the last good one with the files as they are now.
        """
        self._loaded, plan = self._read_plan()
        problem = "" if self._loaded.report.errors else self._other_environment(plan)
        if self._loaded.report.errors or problem:
            return with_errors(self._good_definition, self._loaded, strict=self._choice.strict), problem
        self._good_definition = self._document(self._loaded, plan)
        return self._good_definition, ""

    def _document(self, loaded: Loaded, plan: Plan) -> dict[str, object]:
        context, strict = self._view.planned.context, self._choice.strict
        return definition_document(loaded, plan, cluster=context, strict=strict)

    # the cluster

    def _read_status(self, publish: Publish, ended: threading.Event) -> None:
        while not ended.is_set():
            view = self._view
            with Api(view.planned.target.access) as api:
                is_current = functools.partial(self._is_of, view)
                follow_status(self._place, StatusReader(view, api), publish, ended, is_current)

    def _is_of(self, view: EnvironmentView) -> bool:
        return view is self._view

    def _read_events(self, publish: Publish, ended: threading.Event) -> None:
        follow_events(self._place, self._events_document, publish, ended)

    def _events_document(self, api: Api, listed: list[Object]) -> dict[str, object]:
        view = self._view
        found = events_of(view, api, listed)
        return events_document(view.environment, view.namespace, latest_events(found))

    def _read_history(self, publish: Publish, ended: threading.Event) -> None:
        follow_history(self._place, publish, ended, self._operation_ended)

    def _read_operation(self, publish: Publish, ended: threading.Event) -> None:
        """Follow what runs on the stack, from whichever terminal of this machine."""
        follower = OperationFollower(stack_for(self._view.planned).workspace.folder)
        while not ended.is_set():
            if follower.update():
                publish("operation", progress.masked_data(follower.document))
                if (follower.document or {}).get("state") != OperationState.RUNNING:
                    self._operation_ended.set()
            ended.wait(_OPERATION_INTERVAL_S)

    def _open_logs(self, asked: LogRequest) -> LogLines:
        names = _LogNames(lambda: self._view, asked.services)
        return open_logs(self._place, names, names, asked.tail)


def _of_the_shown(choice: Choice, view: EnvironmentView) -> Choice:
    """Name the cluster and the namespace that are shown: the kubeconfig's current context may become another one."""
    context = "" if choice.local else view.planned.target.access.context
    return replace(choice, context=context, namespace=view.namespace)


class _LogNames(Mapping[str, str]):
    """The services whose logs are followed, by their names in the cluster; those that the definition gets later too."""

    def __init__(self, read_view: Callable[[], EnvironmentView], services: tuple[str, ...]) -> None:
        """Take the names of some services, or of all if none is given."""
        self._read_view, self._services = read_view, services
        self._view: EnvironmentView | None = None
        self._found: dict[str, str] = {}

    @property
    def _names(self) -> dict[str, str]:
        view = self._read_view()
        if view is not self._view:
            chosen = {key: name for key, name in view.names.items() if not self._services or name in self._services}
            # A service that the definition no longer has runs until the next deploy.
            self._found |= chosen
            self._view = view
        return self._found

    def __getitem__(self, key: str) -> str:
        return self._names[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
