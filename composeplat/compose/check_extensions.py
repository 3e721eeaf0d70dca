"""Rules of our own keys in full mode: what a service must be so that they can have an effect.

Owns these rules; the values themselves are checked where they are parsed.
"""

from __future__ import annotations

from composeplat.compose.extension_model import Autoscale, Resource
from composeplat.compose.model import NAMED, Service
from composeplat.compose.origins import Checker, mount_path
from composeplat.diagnostics import dotted

_SINGLE_NODE, _SINGLE_POD = "ReadWriteOnce", "ReadWriteOncePod"
#: The kinds whose number of pods an autoscaler or `kubectl scale` changes.
SCALED_KINDS = ("Deployment", "StatefulSet")


def check_extensions(checker: Checker) -> None:
    for service in checker.project.services.values():
        if service.extensions.autoscale is not None:
            _check_kind(checker, service)
            _check_volumes(checker, service)
            _check_requests(checker, service, service.extensions.autoscale)


def _check_kind(checker: Checker, service: Service) -> None:
    if service.workload_kind not in SCALED_KINDS:
        path = ("services", service.name, "x-autoscale")
        message = f"can't scale a service that is a {service.workload_kind}"
        checker.add("conflicting-keys", path, message, "leave it out, or let the service run always", at_key=True)


def _members(checker: Checker, service: Service) -> list[Service]:
    """Return the services of which each pod has a container."""
    return [checker.project.services[name] for name in service.pod.members or (service.name,)]


def _check_volumes(checker: Checker, service: Service) -> None:
    """Report a volume that the pods of one node alone can mount."""
    mounts = [(each.name, *found) for each in _members(checker, service) for found in enumerate(each.mounts)]
    for name, index, mount in mounts:
        volume = checker.project.volumes.get(mount.source) if mount.kind == NAMED else None
        # Pods that only read a volume of one node all run there.
        refused = (_SINGLE_POD,) if mount.read_only else (_SINGLE_NODE, _SINGLE_POD)
        if volume is not None and volume.access_mode in refused:
            where = dotted(checker.origins.written_at(mount_path(name, index)))
            path = ("services", service.name, "x-autoscale")
            message = f"can't scale a service with a volume that has one writer: {where} mounts '{mount.source}'"
            hint = f"give the volume x-access-mode: ReadWriteMany, if its storage class can; {volume.access_mode} now"
            checker.add("conflicting-keys", path, message, hint, at_key=True)
            return


def _check_requests(checker: Checker, service: Service, autoscale: Autoscale) -> None:
    """Report a container that requests nothing: an autoscaler knows no share of a pod with one."""
    for member in _members(checker, service):
        who = "the service" if member is service else f"'{member.name}', which is in its pods,"
        resources = member.resources
        requests = {
            Resource.CPU: (resources.request_cpu or resources.limit_cpu, "cpus: '0.1'"),
            Resource.MEMORY: (resources.request_memory or resources.limit_memory, "memory: 64m"),
        }
        for target in autoscale.targets:
            request, example = requests[target.resource]
            if target.percent is not None and not request:
                path = ("services", service.name, "x-autoscale", str(target.resource))
                unit = "CPU" if target.resource is Resource.CPU else "memory"
                message = f"is a share of the {unit} that a pod requests, and {who} requests none"
                checker.add("missing-key", path, message, f"write deploy.resources.reservations: {{{example}}}")
