"""``platform watch``: copy what changes here into the running containers, build and restart, by ``develop.watch``."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli.arguments import App
from composeplat.cli.console import show_report
from composeplat.cli.deploy import deploy
from composeplat.cli.help_text import Guide
from composeplat.cli.interrupts import ended_by_signals
from composeplat.cli.operations import Planned, failure_summary, plan_for, report_publications, show_failures, stack_for
from composeplat.cli.selection import READING, WORKING, Choice, with_choice
from composeplat.cluster.api import Api
from composeplat.compose.model import HostFile, Service
from composeplat.compose.origins import Checker
from composeplat.dev.watch_copy import Event
from composeplat.dev.watch_paths import find_watched_folders
from composeplat.dev.watch_rules import WatchedFolder
from composeplat.dev.watch_session import PodWork, WatchSession
from composeplat.diagnostics import ComposeplatError, Exit, Report, format_count, printable
from composeplat.engine.operations import restart as restart_operation
from composeplat.engine.outcomes import DeployOptions
from composeplat.engine.preflight import api_path, belongs_to
from composeplat.plan import make_plan
from composeplat.publication import watch_publication
from composeplat.system.records import record

app = App()
_EXAMPLE = "add some: develop: {watch: [{action: sync, path: ./src, target: /app/src}]}"


def run(choice: Choice, services: Sequence[str], *, deploy_first: bool) -> int:
    planned = plan_for(choice, start=True)
    if planned is None:
        return int(Exit.INVALID)
    watched = _choose(planned, services)
    folders = _folders(planned, watched, choice)
    if folders is None:
        return int(Exit.INVALID)
    stack_for(planned).check_project("watch")
    _report_copied(planned, watched, folders)
    if deploy_first or not _are_deployed(planned, watched):
        deployed = deploy(
            planned, choice, DeployOptions(services=tuple(services), timeout=choice.timeout), as_json=False
        )
        if deployed is not Exit.DONE:
            return int(deployed)
    plans = {service.name: service for service in planned.plan.services}
    session = WatchSession(
        folders=folders,
        cluster_names={service.name: plans[service.name].cluster_name for service in watched},
        namespace=planned.plan.namespace,
        environment_name=planned.plan.environment,
        target=planned.target,
        environment=planned.environment,
        work=Engine(planned, choice),
        on_event=WatchReporter(planned).emit,
    )
    with ended_by_signals():
        session.run()
    return int(Exit.DONE)


def _choose(planned: Planned, names: Sequence[str]) -> list[Service]:
    """Choose the services with rules among those that are named, or among all."""
    planned.plan.select_services(names)
    if not planned.loaded.settings.full:
        fix = "platform watch --full, or x-platform: {full: true} in the Compose file"
        raise ComposeplatError("develop.watch is read in full mode alone, which is off", fix)
    services = planned.loaded.project.services
    without = [name for name in names if not services[name].watch]
    if without:
        raise ComposeplatError(f"service '{without[0]}' has no rules in develop.watch", _EXAMPLE)
    found = [service for name, service in services.items() if service.watch and (not names or name in names)]
    if not found:
        raise ComposeplatError("no service has rules in develop.watch", _EXAMPLE)
    return found


def _folders(planned: Planned, services: Sequence[Service], choice: Choice) -> list[WatchedFolder] | None:
    """Return the folders to watch; none, once the errors are shown, if one of them must not be."""
    report, loaded = Report(), planned.loaded
    checker = Checker(loaded.project, loaded.origins, report)
    folder = str(loaded.folder)
    found = [each for s in services for each in find_watched_folders(checker, s, loaded.root, folder)]
    if show_report(report, as_json=choice.json_diagnostics):
        return None
    if not found:
        raise ComposeplatError("no rule in develop.watch can have an effect", "the warnings say why")
    return found


def _report_copied(planned: Planned, services: Sequence[Service], folders: Sequence[WatchedFolder]) -> None:
    sent = []
    for service in services:
        rules = [f.rule for f in folders if f.service == service.name and f.rule.target]
        if rules:
            namespace = planned.plan.namespace
            sent.append(watch_publication(planned.loaded, service, namespace, rules, context=planned.context))
    report_publications(planned, sent)


def _are_deployed(planned: Planned, services: Sequence[Service]) -> bool:
    names = {service.name for service in services}
    with Api(planned.target.access) as api:
        workloads = [
            api.find(api_path(found.workload_kind, planned.plan.namespace, found.workload_name))
            for found in planned.plan.services
            if found.name in names
        ]
    return all(found is not None and belongs_to(found, planned.plan.environment) for found in workloads)


@record
class Engine(PodWork):
    """Builds, deploys and restarts services of a watch."""

    planned: Planned
    choice: Choice

    def rebuild(self, services: Sequence[str], files: Mapping[str, tuple[HostFile, ...]]) -> bool:
        return self._deploy(services, files)

    def replace_pods(self, services: Sequence[str], files: Mapping[str, tuple[HostFile, ...]]) -> bool:
        return self._deploy(services, files, build=False)

    def _deploy(
        self, services: Sequence[str], files: Mapping[str, tuple[HostFile, ...]], *, build: bool | None = None
    ) -> bool:
        options = DeployOptions(services=tuple(services), timeout=self.choice.timeout, build=build)
        return deploy(with_files(self.planned, files), self.choice, options, as_json=False) is Exit.DONE

    def restart(self, services: Sequence[str]) -> bool:
        plan, stack = self.planned.plan, stack_for(self.planned)
        with progress.work(f"restarting {', '.join(services)}"):
            outcome = restart_operation.restart(stack, plan, services, wait=True, timeout=self.choice.timeout)
        show_failures(outcome.failures, self.planned, as_json=self.choice.json_diagnostics)
        if outcome.failures:
            progress.conclude(failure_summary(outcome))
        return not outcome.failures


def with_files(planned: Planned, files: Mapping[str, tuple[HostFile, ...]]) -> Planned:
    """Return the plan with files that pods get besides those of the definition."""
    loaded = planned.loaded
    services = {
        name: replace(service, synced_files=files.get(name, ())) for name, service in loaded.project.services.items()
    }
    project = replace(loaded.project, services=services)
    plan = make_plan(project, loaded.settings, loaded.origins, Report())
    return replace(
        planned, loaded=replace(loaded, project=project), plan=plan.with_confidential(planned.plan.confidential)
    )


# events ---------------------------------------------------------------------------------------------------------------


@record
class WatchReporter:
    """Emits the events of a watch."""

    planned: Planned

    def emit(self, event: Event) -> None:
        message = printable(progress.masked_text(watch_message(event, str(self.planned.loaded.folder))))
        is_important = event["event"] == "watch-problem" or bool(event.get("status")) or event.get("done") is False
        progress.emit(progress.SessionEvent(event, message, is_important))


def watch_message(event: Event, folder: str) -> str:
    """Return the message of an event, with paths relative to a folder."""
    match event["event"]:
        case "watching":
            return f"{event['service']}: watching {os.path.relpath(event['path'], folder)} ({event['action']})"
        case "copied":
            return _copied_message(event)
        case "executed":
            if not event["status"]:
                return f"{event['service']}: the command of sync+exec ran in {event['pod']}"
            output = f": {event['output']}" if event["output"] else ""
            return f"{event['service']}: the command failed in {event['pod']} with status {event['status']}{output}"
        case "replaced-pods":
            names = ", ".join(event["services"])
            return "" if event["done"] else f"{names}: {event['action']} failed; a change tries it again"
        case _:
            path = os.path.relpath(event["path"], folder) if event["path"] else ""
            return f"{event['service']}: {f'{path}: ' if path else ''}{event['reason']}"


def _copied_message(event: Event) -> str:
    if not event["pods"]:
        return ""
    parts = [f"copied {format_count(event['files'], 'file')}"] if event["files"] else []
    parts += [f"deleted {format_count(event['deleted'], 'file')}"] if event["deleted"] else []
    pods: Collection[str] = event["pods"]
    where = next(iter(pods)) if len(pods) == 1 else f"{len(pods)} pods"
    kind = ", which is new" if event["new_pods"] else ""
    return f"{event['service']}: {' and '.join(parts)} in {where}{kind}, {event['seconds']:.1f} s"


@app.command(
    "watch",
    guide=Guide(
        {
            "The services with rules, until Ctrl-C": "platform watch --full",
            "One of them, deployed first": "platform watch --full --deploy web",
        },
        "developing.md",
    ),
)
@with_choice("domain", "registry", "allow_providers", "builder", "pull_secret", "timeout", *READING, *WORKING)
def watch_command(
    choice: Choice,
    services: Annotated[list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Only these.")] = None,
    deploy_first: Annotated[
        bool, typer.Option("--deploy", help="Deploy first, even if the services are deployed.")
    ] = False,
) -> int:
    """Watch files by the rules of develop.watch: copy them into containers, build, restart."""
    return run(choice, tuple(services or ()), deploy_first=deploy_first)
