"""Where the pods of a service run and how they are replaced, as full mode reads it.

Owns the affinity by labels of nodes, the spreading of pods, the numbers of a rolling update, and extended resources.
"""

from __future__ import annotations

from dataclasses import replace

from composeplat.compose.model import Project, Service
from composeplat.compose.options import Settings
from composeplat.compose.origins import Checker
from composeplat.compose.placeholders import LateNumber
from composeplat.compose.pod_model import Platform
from composeplat.compose.rollout_model import Constraint
from composeplat.names import clean
from composeplat.plan.desired import Manifest
from composeplat.plan.identity import Identity

_HOSTNAME = "kubernetes.io/hostname"
#: The default of Kubernetes.
_PROGRESS_DEADLINE_S = 600
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_SINGLE_POD = "ReadWriteOncePod"


def check_pods_fit(checker: Checker, settings: Settings) -> None:
    """Report pods that can't run beside each other, which no cluster can mend; those of jobs follow each other."""
    users: dict[str, str] = {}
    for service in checker.project.services.values():
        if service.is_job or service.runs_elsewhere or service.replicas == 0:
            continue
        volumes = sorted(service.named_volumes | service.pod.volumes)
        _check_single_users(checker, service, volumes, users)
        if _has_several_pods(service):
            _check_nodes(checker, service, volumes if settings.volume_affinity else [])


def _check_nodes(checker: Checker, service: Service, volumes: list[str]) -> None:
    """Report pods that need a node each; ``volumes`` keep them on one."""
    path = ("services", service.name)
    network = (*path, "network_mode")
    why = f"and their volume '{volumes[0]}' keeps them on one" if volumes else ""
    is_alone = service.scheduling.placement.max_per_node == 1
    if is_alone and volumes:
        place = (*path, "deploy", "placement", "max_replicas_per_node")
        checker.add(
            "conflicting-keys", place, f"keeps two pods from one node, {why}", "leave it out, or ask for one pod"
        )
    elif service.has_port_of_node and volumes:
        message = f"keeps two pods with ports from one node, {why}"
        checker.add("conflicting-keys", network, message, "leave it out, or ask for one pod")
    elif service.has_port_of_node and not is_alone:
        message = f"needs {service.replicas} nodes: its pods can't have the same ports on one node"
        checker.add(
            "needs-cluster-setting", network, message, "leave it out, or ask for one pod on a cluster with fewer nodes"
        )


def _check_single_users(checker: Checker, service: Service, volumes: list[str], users: dict[str, str]) -> None:
    """Report a second pod for a volume that one pod can mount; ``users`` has the services with such volumes."""
    why = f"its x-access-mode is {_SINGLE_POD}"
    hint = "give the volume x-access-mode: ReadWriteOnce"
    for name in (name for name in volumes if _access_mode(checker.project, name) == _SINGLE_POD):
        if _has_several_pods(service):
            keys = (("deploy", "replicas"), ("scale",))
            places = [("services", service.name, *key) for key in keys]
            path = next((place for place in places if checker.origins.has(*place)), ("services", service.name))
            message = f"asks for several pods, and one alone can mount the volume '{name}': {why}"
            checker.add("conflicting-keys", path, message, f"{hint}, or ask for one pod")
        user = users.setdefault(name, service.name)
        if user != service.name:
            message = f"can't mount the volume '{name}' beside '{user}', as one pod alone can: {why}"
            checker.add("conflicting-keys", ("services", service.name), message, hint, at_key=True)


def _access_mode(project: Project, name: str) -> str:
    volume = project.volumes.get(name)
    return volume.access_mode if volume is not None else ""


def _has_several_pods(service: Service) -> bool:
    """Whether it has more than one pod; a number that only Pulumi knows may be one."""
    return service.replicas > 1 and not isinstance(service.replicas, LateNumber)


def add_placement(spec: Manifest, service: Service, identity: Identity) -> None:
    """Add the placement to a pod's spec, beside the affinity that is there."""
    placement = service.scheduling.placement
    if service.is_global:
        placement = replace(placement, spread=(), max_per_node=0)
    pods = {"labelSelector": {"matchLabels": identity.selector(clean(service.name))}}
    affinity = spec.get("affinity", {})
    constraints = (*_platform(service.container.platform), *placement.constraints)
    if constraints:
        affinity = {**affinity, "nodeAffinity": _node_affinity(constraints)}
    if placement.max_per_node == 1:
        affinity = {**affinity, "podAntiAffinity": {_REQUIRED: [{**pods, "topologyKey": _HOSTNAME}]}}
    if affinity:
        spec["affinity"] = affinity
    spread = [_spread(label, pods, 1, "ScheduleAnyway") for label in placement.spread]
    if placement.max_per_node > 1:
        spread.append(_spread(_HOSTNAME, pods, placement.max_per_node, "DoNotSchedule"))
    if spread:
        spec["topologySpreadConstraints"] = spread


def _platform(platform: Platform) -> tuple[Constraint, ...]:
    labels = {"kubernetes.io/arch": platform.architecture, "kubernetes.io/os": platform.os}
    return tuple(Constraint(label=label, value=value) for label, value in labels.items() if value)


def _node_affinity(constraints: tuple[Constraint, ...]) -> Manifest:
    """Plan one term: a node must meet all that is in a term."""
    expressions = [
        {"key": found.label, "operator": "In" if found.is_equal else "NotIn", "values": [found.value]}
        for found in constraints
    ]
    return {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}


def _spread(label: str, pods: Manifest, skew: int, otherwise: str) -> Manifest:
    return {"maxSkew": skew, "topologyKey": label, "whenUnsatisfiable": otherwise, **pods}


def rolling_update(service: Service) -> Manifest:
    """Return the numbers of a rolling update; empty keeps Kubernetes' own."""
    update = service.scheduling.update
    # A DaemonSet replaces one pod after the other by itself.
    must_stop = (service.has_port_of_node or service.scheduling.placement.max_per_node == 1) and not service.is_global
    if update.parallelism is None and update.start_first is None and not must_stop:
        return {}
    count: int | str = "100%" if update.parallelism == 0 else update.parallelism or 1
    surge, unavailable = (count, 0) if update.start_first and not service.has_port_of_node else (0, count)
    return {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def ready_seconds(service: Service) -> Manifest:
    """Return how long a pod must be ready; the deadline of a Deployment's progress must be later."""
    seconds = service.scheduling.update.ready_seconds
    is_late = service.workload_kind == "Deployment" and seconds >= _PROGRESS_DEADLINE_S
    deadline = {"progressDeadlineSeconds": seconds + _PROGRESS_DEADLINE_S} if is_late else {}
    return {"minReadySeconds": seconds, **deadline} if seconds else {}


def device_limits(service: Service) -> dict[str, str]:
    """Return the limits of extended resources, which are requests too."""
    return {name: str(count) for name, count in sorted(service.scheduling.devices.items())}
