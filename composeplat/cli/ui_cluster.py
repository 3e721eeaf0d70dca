"""All environments of a cluster as the page sees them, by the labels of their objects.

Owns what the page has without a definition: no files, no preview and no actions.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from composeplat.cli.events import events_document
from composeplat.cli.status import Reasons
from composeplat.cli.ui_documents import page_document
from composeplat.cli.ui_sources import (
    LogLines,
    Place,
    follow_events,
    follow_history,
    follow_status,
    latest_events,
    open_logs,
)
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.endpoints import find_addresses
from composeplat.cluster.environment_list import EnvironmentList
from composeplat.cluster.environments import DeployedEnvironment, find_environments
from composeplat.cluster.events import read_events
from composeplat.cluster.live_lists import Lists, LiveLists
from composeplat.cluster.snapshot import Object, Snapshot
from composeplat.cluster.status import ServiceQuery, StatusRow, status_rows
from composeplat.cluster.watching import Watcher
from composeplat.engine.target import Target
from composeplat.names import is_dns_label
from composeplat.ui.site import Environment, LogRequest, Site
from composeplat.ui.topics import PROBLEM, Publish

_DEFAULT_NAMESPACE = "default"


class ClusterSite:
    """The environments of a cluster."""

    def __init__(self, target: Target, namespaces: Collection[str]) -> None:
        """Make a site; ``namespaces`` are those that are shown if the user may not list all."""
        self._target = target
        self._namespaces = namespaces or (target.namespace or _DEFAULT_NAMESPACE,)

    def site(self) -> Site:
        # The list of environments is a topic: it changes while the page is open.
        return Site(
            page=lambda: page_document([], read_only=True),
            find=self._find,
            sources={"environments": self._read_environments},
        )

    def _read_environments(self, publish: Publish, ended: threading.Event) -> None:
        listed = EnvironmentList(self._target.access, self._namespaces)
        try:
            with Api(self._target.access) as api:
                while not ended.is_set():
                    found = listed.read(api)
                    publish("environments", [_environment_row(environment) for environment in found])
                    publish(PROBLEM, {"message": listed.notice, "hint": ""})
                    listed.wait()
        finally:
            listed.stop()

    def _find(self, namespace: str, name: str) -> Environment | None:
        if not (is_dns_label(namespace) and is_dns_label(name)):
            return None
        found = ClusterEnvironment(self._target, Place(self._target.access, namespace, name))
        return Environment(
            namespace=namespace,
            name=name,
            sources={
                "status": found.read_status,
                "events": found.read_events,
                "history": found.read_history,
            },
            open_logs=found.open_logs,
        )


def _environment_row(found: DeployedEnvironment) -> dict[str, object]:
    counts = found.count_states(datetime.now(UTC))
    return {"namespace": found.namespace, "environment": found.environment, "services": counts}


class ClusterEnvironment:
    """An environment without a definition."""

    def __init__(self, target: Target, place: Place) -> None:
        self._target, self._place = target, place

    def read_status(self, publish: Publish, ended: threading.Event) -> None:
        with Api(self._place.access) as api:
            follow_status(self._place, ClusterStatus(self._target, self._place, api), publish, ended)

    def read_events(self, publish: Publish, ended: threading.Event) -> None:
        def to_document(api: Api, listed: list[Object]) -> Mapping[str, object]:
            services = services_of(_watcher(self._place).take_snapshot(api), self._place)
            found = latest_events(read_events(listed, services, {}))
            return events_document(self._place.environment, self._place.namespace, found)

        follow_events(self._place, to_document, publish, ended)

    def read_history(self, publish: Publish, ended: threading.Event) -> None:
        follow_history(self._place, publish, ended, threading.Event())

    def open_logs(self, asked: LogRequest) -> LogLines:
        return open_logs(self._place, _Chosen(asked.services), {}, asked.tail)


class _Chosen:
    """The services that are asked for; all of them if none is."""

    def __init__(self, services: tuple[str, ...]) -> None:
        self._services = services

    def __contains__(self, service: object) -> bool:
        return not self._services or service in self._services


class ClusterStatus:
    """The status of an environment by the labels of its objects."""

    def __init__(self, target: Target, place: Place, api: Api) -> None:
        self._target, self._place, self._api = target, place, api
        self._watcher = _watcher(place)
        self._reasons = Reasons(api, place.namespace)
        self._urls: dict[str, list[str]] = {}
        self._notice = ""
        """What is not shown, for lack of the right."""
        self._lists = LiveLists(api)

    @property
    def latest(self) -> Snapshot | None:
        return self._watcher.latest

    @property
    def problem(self) -> str:
        return self._watcher.unreachable or self._notice

    def read(self) -> list[StatusRow]:
        return self._rows(self._watcher.take_snapshot(self._api))

    def read_again(self, before: list[StatusRow]) -> list[StatusRow]:
        snapshot = self._watcher.latest
        return before if snapshot is None or self._watcher.unreachable else self._rows(snapshot)

    def stop(self) -> None:
        self._watcher.stop()
        self._lists.stop()

    def _rows(self, snapshot: Snapshot) -> list[StatusRow]:
        self._urls = self._lists.update(self._read_urls, self._urls)
        services = [
            replace(service, urls=tuple(self._urls.get(service.cluster_name, ())))
            for service in services_of(snapshot, self._place)
        ]
        return [self._with_lines(row) for row in status_rows(services, snapshot, self._watcher.now)]

    def _with_lines(self, row: StatusRow) -> StatusRow:
        return replace(row, lines=self._reasons.lines(row.cause)) if row.cause and row.problem else row

    def _read_urls(self, lists: Lists) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        try:
            addresses = find_addresses(lists, self._place.namespace, self._place.environment)
        except ApiError as error:
            if error.status != http.client.FORBIDDEN:
                raise
            self._notice = f"addresses are not shown: {error}"
            return found
        for address in addresses:
            found.setdefault(address.service, []).append(self._target.reached_at(address.url))
        return found


def _watcher(place: Place) -> Watcher:
    # Of workloads, those that the user may not list are left out, as in the list of environments.
    return Watcher(place.access, place.namespace, place.environment, ("Pod",), others_too=True, since_creation=True)


def services_of(snapshot: Snapshot, place: Place) -> tuple[ServiceQuery, ...]:
    """Return the services of an environment by its objects."""
    lists: dict[str, list[Object]] = {"ReplicaSet": snapshot.replica_sets, "Pod": snapshot.pods}
    for (kind, _), workload in snapshot.workloads.items():
        lists.setdefault(kind, []).append(workload)
    found = find_environments(lists)
    return next((entry.services for entry in found if entry.place == (place.namespace, place.environment)), ())
