"""``platform top``: the use of CPU and memory, by pod."""

from __future__ import annotations

import http.client
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Annotated

import typer

from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.environment_view import EnvironmentView, fit_table, terminal_width, view_environment
from composeplat.cli.help_text import Guide
from composeplat.cli.selection import Choice, with_choice
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.quotas import parse_quantity
from composeplat.cluster.snapshot import Object, service_of
from composeplat.cluster.watching import environment_selector, pods_path
from composeplat.diagnostics import Exit, MissingPiece
from composeplat.system.records import record

app = App()
_MIB = 1024 * 1024
_NO_METRICS = (http.client.NOT_FOUND, http.client.SERVICE_UNAVAILABLE)


#: In place of the table.
_NO_FIGURES = "no metrics of these pods yet: a pod has its first some 20 s after its start"
_NO_PODS = "no pods: platform status says why"


@record(kw_only=True)
class Usage:
    service: str
    pod: str
    cpu: int
    """In thousandths of a CPU."""
    memory: int
    """In bytes."""


def run(choice: Choice, services: tuple[str, ...], *, as_json: bool) -> Exit:
    view = view_environment(choice, services)
    if view is None:
        return Exit.INVALID
    with Api(view.planned.target.access) as api:
        rows = usage_rows(_read_metrics(api, view.namespace, view.environment), view.names, _joined(view))
        has_pods = bool(rows) or _has_pods(api, view)
    cells = [(row.service, row.pod, f"{row.cpu}m", f"{row.memory / _MIB:.0f}Mi") for row in rows]
    table = fit_table([("SERVICE", "POD", "CPU", "MEMORY"), *cells], terminal_width()) if rows else ""
    absent = _NO_FIGURES if has_pods else _NO_PODS
    view.show("top", table, as_json=as_json, absent=absent, pods=[asdict(row) for row in rows])
    return Exit.DONE


def _has_pods(api: Api, view: EnvironmentView) -> bool:
    pods = api.object_metadata(pods_path(view.namespace, view.environment))
    shown = {service.workload_name for service in view.planned.plan.services if service.name in view.chosen}
    return any(service_of(pod) in shown for pod in pods)


def _joined(view: EnvironmentView) -> dict[str, str]:
    """The services that run in the pods of another, and that one: the metrics of a pod have no annotations."""
    return {found.cluster_name: found.pod_of for found in view.planned.plan.services if found.pod_of}


def _read_metrics(api: Api, namespace: str, environment: str) -> list[Object]:
    path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods"
    try:
        return api.items(path + environment_selector(environment))
    except ApiError as error:
        if error.status not in _NO_METRICS:
            raise
        hint = "install metrics-server; what pods may use is in platform render"
        raise MissingPiece("the cluster has no metrics of pods", hint) from error


def usage_rows(metrics: list[Object], names: dict[str, str], joined: Mapping[str, str]) -> list[Usage]:
    """The use of each pod of the services, by their cluster names; sorted by service and pod.

    ``joined`` are services in the pods of another one, whose containers have their names.
    """
    rows = [
        _row(pod, names[service], containers)
        for pod in metrics
        for service, containers in _by_service(pod, joined).items()
        if service in names
    ]
    return sorted(rows, key=lambda row: (row.service, row.pod))


def _by_service(pod: Object, joined: Mapping[str, str]) -> dict[str, list[Object]]:
    owner = service_of(pod)
    found: dict[str, list[Object]] = {owner: []}
    for container in pod.get("containers") or []:
        name = str(container.get("name", ""))
        found.setdefault(name if joined.get(name) == owner else owner, []).append(container)
    return found


def _row(pod: Object, service: str, containers: Iterable[Object]) -> Usage:
    used = [container.get("usage") or {} for container in containers]
    return Usage(
        service=service,
        pod=str(pod["metadata"]["name"]),
        cpu=round(sum(parse_quantity(usage.get("cpu", "0")) for usage in used) * 1000),
        memory=round(sum(parse_quantity(usage.get("memory", "0")) for usage in used)),
    )


@app.command("top", guide=Guide({"What uses most memory, for a program": "platform top --json"}, "living.md"))
@with_choice()
def top_command(
    choice: Choice,
    services: Annotated[list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Only these.")] = None,
    as_json: opt.Json = False,
) -> int:
    """Show the use of CPU and memory of each pod."""
    return run(choice, tuple(services or ()), as_json=as_json)
