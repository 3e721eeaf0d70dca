"""The environments of a cluster, kept current by one list and one watch of each kind.

Owns which kinds are listed, and where: in all namespaces, or only in some if the user may not list all of them.
Must not interpret the objects: :mod:`~composeplat.cluster.environments` does.

Events are not among the kinds, as a cluster has very many: what only an event shows is in the status of an environment.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Collection
from urllib.parse import quote

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.environments import DeployedEnvironment, Place, find_environments
from composeplat.cluster.kinds import PLURALS, kind_path
from composeplat.cluster.live_list import LiveList
from composeplat.cluster.snapshot import Object, scheduling_failure
from composeplat.cluster.watching import AGE_KEPT_S, FURTHER_WORKLOADS, OF_WORKLOADS, WORKLOADS, Ages, find_autoscaler
from composeplat.diagnostics import join_some
from composeplat.names import ENVIRONMENT_LABEL

_KINDS = (*WORKLOADS, *FURTHER_WORKLOADS, *OF_WORKLOADS)
_ALL = ""
"""As a namespace: all of them."""
#: Some conditions count only after a while, so that a reader has to come back without a change.
_MAX_WAIT_S = 1.0
#: For kinds that can't be watched, and are listed again.
_POLL_INTERVAL_S = AGE_KEPT_S / 2
_MAX_LISTED = 5


class EnvironmentList:
    """The environments of a cluster, from the first :meth:`read` until :meth:`stop`."""

    def __init__(self, access: Access, namespaces: Collection[str]) -> None:
        """Make a list; ``namespaces`` are those to look at if the user may not list objects of all."""
        self._access, self._namespaces = access, namespaces
        self._lists: dict[tuple[str, str], LiveList] = {}
        self._refused: dict[tuple[str, str], None] = {}
        """The kinds that may not be listed, each with the namespace."""
        self._changed = threading.Event()
        self._ages: dict[Place, Ages] = {}
        self._has_autoscaler: bool | None = False
        self._knows_autoscaler = False

    def read(self, api: Api) -> list[DeployedEnvironment]:
        """Return the environments as they are now."""
        lists = {kind: self._read_kind(api, version, kind) for version, kind in _KINDS}
        found = find_environments(lists)
        self._ages = {environment.place: self._ages.get(environment.place) or Ages() for environment in found}
        for environment in found:
            self._complete(api, environment)
        return found

    def wait(self) -> None:
        """Wait until something has changed, or for a moment."""
        is_broken = any(live.is_broken for live in self._lists.values())
        self._changed.wait(_POLL_INTERVAL_S if is_broken else _MAX_WAIT_S)
        self._changed.clear()

    def stop(self) -> None:
        for live in self._lists.values():
            live.stop()

    @property
    def notice(self) -> str:
        """What is not shown, for lack of which right, and how to get it; empty if all is."""
        if not self._refused:
            return ""
        shown = join_some(self._namespaces, _MAX_LISTED)
        found = [f"you may not list {self._refused_in(_ALL)} in all namespaces: of these, only {shown} is shown"]
        lacking = {namespace: self._refused_in(namespace) for namespace in self._namespaces}
        found += [f"you may not list {kinds} in namespace {place} either" for place, kinds in lacking.items() if kinds]
        resources = ",".join(PLURALS[kind] for _, kind in _KINDS)
        role = f"kubectl create clusterrole list-environments --verb=list,watch --resource={resources}"
        return f"{'; '.join(found)}; to see all: {role}, and bind it"

    def _refused_in(self, namespace: str) -> str:
        return ", ".join(PLURALS[kind] for kind, where in self._refused if where == namespace)

    def _read_kind(self, api: Api, version: str, kind: str) -> list[Object]:
        found = self._read_list(api, version, kind, _ALL)
        if found is not None:
            return found
        lists = (self._read_list(api, version, kind, namespace) for namespace in self._namespaces)
        return [item for items in lists for item in items or ()]

    def _read_list(self, api: Api, version: str, kind: str, namespace: str) -> list[Object] | None:
        """Return the objects of a kind in a namespace; None if they may not be listed."""
        key = kind, namespace
        if key in self._refused:
            return None
        if key not in self._lists:
            path = f"{kind_path(version, kind, namespace)}?labelSelector={quote(ENVIRONMENT_LABEL)}"
            self._lists[key] = LiveList(self._access, path, self._changed)
        try:
            return self._lists[key].read(api)
        except ApiError as error:
            if error.status != http.client.FORBIDDEN:
                raise
            self._lists.pop(key).stop()
            self._refused[key] = None
            return None

    def _complete(self, api: Api, environment: DeployedEnvironment) -> None:
        """Add to a snapshot what its objects do not show."""
        snapshot = environment.snapshot
        snapshot.age = self._ages[environment.place].age
        snapshot.time = api.server_time
        if any(scheduling_failure(pod) is not None for pod in snapshot.pods):
            if not self._knows_autoscaler:
                self._has_autoscaler, self._knows_autoscaler = find_autoscaler(api), True
            snapshot.has_autoscaler = self._has_autoscaler
