"""The data of an exported page: what each command's ``--json`` prints, once.

Owns what is left out where the cluster can't be read: an export for a pull request need not reach one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from composeplat import progress
from composeplat.cli.built_users import read_built_users
from composeplat.cli.console import show_report
from composeplat.cli.environment_view import EnvironmentView, view_environment
from composeplat.cli.events import events_document, events_of, events_path
from composeplat.cli.hidden_values import hide_secrets_of
from composeplat.cli.history import history_document
from composeplat.cli.logs import select_pods
from composeplat.cli.operations import load_plan, plan_for, stack_for
from composeplat.cli.policies import pulumi_variables
from composeplat.cli.preview import preview_document
from composeplat.cli.selection import Choice, request_for
from composeplat.cli.status import StatusReader, status_document
from composeplat.cli.ui_documents import definition_document, log_row, page_document
from composeplat.cluster.api import Api
from composeplat.cluster.logs import LogQuery, read_logs
from composeplat.compose.options import UNKNOWN_DOMAIN
from composeplat.diagnostics import ComposeplatError, Exit
from composeplat.engine.history import read_history
from composeplat.engine.operations.preview import preview
from composeplat.engine.outcomes import DeployOptions

#: Of each container.
_LOG_LINES = 200
_PARTS = ("status", "events", "history", "logs", "preview")

Data = dict[str, object]


def export_data(choice: Choice) -> Data | None:
    """Return the data of the page; None if the definition has errors, which are then shown."""
    try:
        view = view_environment(choice, ())
    except ComposeplatError as error:
        # A cluster that does not answer, or a login for it that is not on this machine.
        if error.exit_code != Exit.MISSING:
            raise
        return _without_cluster(choice, f"no cluster was read: {error}")
    return _with_cluster(choice, view) if view else None


def _without_cluster(choice: Choice, note: str) -> Data | None:
    request = request_for(choice)
    loaded, plan = load_plan(replace(request, default_domain=request.default_domain or UNKNOWN_DOMAIN))
    hide_secrets_of(loaded, plan)
    if show_report(loaded.report, strict=choice.strict, as_json=choice.json_diagnostics):
        return None
    definition = definition_document(loaded, plan, cluster="", strict=choice.strict)
    return _page(plan.environment, plan.namespace, [note], {"definition": definition})


def _with_cluster(choice: Choice, view: EnvironmentView) -> Data:
    planned = view.planned
    definition = definition_document(planned.loaded, planned.plan, cluster=planned.context, strict=choice.strict)
    found: Data = {"definition": definition}
    notes: list[str] = []
    with Api(planned.target.access) as api:
        readers: Mapping[str, Callable[[], object]] = {
            "status": lambda: _status(view, api),
            "events": lambda: _events(view, api),
            "history": lambda: _history(view, api),
            "logs": lambda: _logs(view, api),
            "preview": lambda: _preview(choice),
        }
        for part, read in readers.items():
            try:
                found[part] = progress.masked_data(read())
            except ComposeplatError as error:
                notes.append(f"{part} could not be read: {error}")
    return _page(view.environment, view.namespace, notes, found)


def _page(environment: str, namespace: str, notes: list[str], found: Data) -> Data:
    page = page_document(
        [{"namespace": namespace, "environment": environment, "has_definition": True}],
        exported=True,
        read_only=True,
        written=datetime.now(UTC).isoformat(timespec="seconds"),
        notes=[progress.masked_text(note) for note in notes],
    )
    return {"page": page, **dict.fromkeys(_PARTS), **found}


def _status(view: EnvironmentView, api: Api) -> object:
    return status_document(view.environment, view.namespace, StatusReader(view, api).read())


def _events(view: EnvironmentView, api: Api) -> object:
    return events_document(view.environment, view.namespace, events_of(view, api, api.items(events_path(view))))


def _history(view: EnvironmentView, api: Api) -> object:
    revisions = read_history(api, view.namespace, view.environment)
    return history_document(view.environment, view.namespace, revisions)


def _logs(view: EnvironmentView, api: Api) -> object:
    names = view.names
    pods = select_pods(view.take_snapshot(api).pods, names)
    return [log_row(line, names) for line in read_logs(api, view.namespace, pods, LogQuery(tail=_LOG_LINES))]


def _preview(choice: Choice) -> object:
    """Return what a deploy would change. It needs all that a deploy needs, such as a domain."""
    planned = plan_for(choice)
    complete = read_built_users(planned, choice) if planned else None
    if complete is None:
        raise ComposeplatError("the definition can't be deployed as it is", "platform preview says why")
    stack = stack_for(complete, pulumi_variables(choice))
    return preview_document(complete, preview(stack, complete.plan, DeployOptions()))
