"""One pod of several services: their pod templates as one, and what can't be in one pod.

Owns the order of the containers, the names of volumes that would mean two things, and the fields that a pod has once.
Must not decide which services share a pod: :mod:`composeplat.compose.shared_pods` does.

A container is named as its service, and an annotation of the pod lists them: commands find the container of a service
in the pods of another by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from composeplat.compose.model import MEMORY, Service
from composeplat.compose.origins import Checker, port_path
from composeplat.compose.rollout_model import Placement
from composeplat.compose.system_paths import SHARED_MEMORY
from composeplat.names import FILL_CONTAINER, MODES_CONTAINER, SERVICES_ANNOTATION, TOOLS_CONTAINER, clean, shorten
from composeplat.plan.container_options import join_aliases
from composeplat.plan.desired import Manifest, ServicePlan
from composeplat.plan.fingerprint import HASH_ANNOTATION
from composeplat.plan.init_hooks import hook_name
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from composeplat.plan.storage import IMAGE_PREFIX
from composeplat.plan.templates import pod_template
from composeplat.system.records import record

_OWN_VOLUMES = ("anonymous-", "memory-", "host-", IMAGE_PREFIX)


@record(kw_only=True)
class PodPart:
    """What one service contributes to a pod."""

    service: Service
    template: Manifest
    claim_templates: list[Manifest]
    needs: tuple[ResourceKey, ...]

    def in_pod_of_another(self) -> PodPart:
        """Return the part with names that another part of the pod can't have."""
        name = clean(self.service.name)
        spec = self.template["spec"]
        renamed = {
            volume["name"]: volume_in_pod_of_another(volume["name"], name)
            for volume in (*spec.get("volumes", ()), *(claim["metadata"] for claim in self.claim_templates))
            if volume["name"].startswith(_OWN_VOLUMES)
        }
        spec = {**spec, **{key: _with_mounts(spec[key], renamed) for key in _WITH_MOUNTS if key in spec}}
        if "volumes" in spec:
            spec["volumes"] = [_renamed(volume, renamed) for volume in spec["volumes"]]
        template = {"metadata": _metadata(self.template["metadata"], name), "spec": spec}
        claims = [{**claim, "metadata": _renamed(claim["metadata"], renamed)} for claim in self.claim_templates]
        return PodPart(service=self.service, template=template, claim_templates=claims, needs=self.needs)


def volume_in_pod_of_another(volume: str, service: str) -> str:
    """Name a volume that only one service of a pod has."""
    return shorten(f"platform-{service}-{volume}")


_WITH_MOUNTS = ("containers", "initContainers")


def _with_mounts(containers: list[Manifest], names: Mapping[str, str]) -> list[Manifest]:
    """Rename the volumes in the mounts of containers."""
    return [
        {**container, "volumeMounts": [_renamed(mount, names) for mount in container["volumeMounts"]]}
        if "volumeMounts" in container
        else container
        for container in containers
    ]


def _renamed(named: Manifest, names: Mapping[str, str]) -> Manifest:
    """Rename a volume, or the one of a mount."""
    return {**named, "name": names.get(named["name"], named["name"])}


def _metadata(metadata: Manifest, name: str) -> Manifest:
    """Give the hash of a service's variables and files a name of its own."""
    annotations = {
        (_hash_annotation(name) if key == HASH_ANNOTATION else key): value
        for key, value in metadata.get("annotations", {}).items()
    }
    return {**metadata, "annotations": annotations}


def _hash_annotation(name: str) -> str:
    prefix, _, last = HASH_ANNOTATION.partition("/")
    return f"{prefix}/{shorten(f'{last}-{name}')}"


def join_parts(owner: PodPart, others: Iterable[PodPart]) -> PodPart:
    """Return the pod of a service with the containers of those that join it."""
    parts = [owner, *(part.in_pod_of_another() for part in others)]
    if len(parts) == 1:
        return owner
    parts = _with_shared_memory(parts)
    metadata = owner.template["metadata"]
    annotations: Manifest = {}
    for part in reversed(parts):
        annotations.update(part.template["metadata"].get("annotations", {}))
    annotations[SERVICES_ANNOTATION] = ",".join(clean(part.service.name) for part in parts)
    template = {
        "metadata": {**metadata, "annotations": dict(sorted(annotations.items()))},
        "spec": _spec([part.template["spec"] for part in parts], owner.service),
    }
    return PodPart(
        service=owner.service,
        template=template,
        claim_templates=[claim for part in parts for claim in part.claim_templates],
        needs=tuple(dict.fromkeys(key for part in parts for key in part.needs)),
    )


def _with_shared_memory(parts: list[PodPart]) -> list[PodPart]:
    """Give a service that joins another by ``ipc`` the volume at `/dev/shm` of that one, which hides the pod's own."""
    by_name = {part.service.name: part for part in parts}
    return [_with_memory_of(part, by_name[_memory_owner(part.service, by_name)]) for part in parts]


def _memory_owner(service: Service, parts: Mapping[str, PodPart]) -> str:
    """Follow ``ipc`` to the service of the pod that joins no other by it; a cycle is left where it closes."""
    name, seen = service.name, set[str]()
    while name not in seen:
        seen.add(name)
        joined = parts[name].service.pod.joined.get("ipc", "")
        name = joined if joined in parts else name
    return name


def _with_memory_of(part: PodPart, other: PodPart) -> PodPart:
    own = (mount.kind for mount in part.service.mounts if mount.target == SHARED_MEMORY)
    if other is part or any(kind != MEMORY for kind in own):
        return part
    container, *more = part.template["spec"]["containers"]
    mounts = [mount for mount in container.get("volumeMounts", ()) if mount["mountPath"] != SHARED_MEMORY]
    listed = other.template["spec"]["containers"][0].get("volumeMounts", ())
    mounts += [mount for mount in listed if mount["mountPath"] == SHARED_MEMORY]
    fields = {key: value for key, value in container.items() if key != "volumeMounts"}
    container = {**fields, **({"volumeMounts": mounts} if mounts else {})}
    template = {**part.template, "spec": {**part.template["spec"], "containers": [container, *more]}}
    return replace(part, template=template)


def _spec(specs: list[Manifest], owner: Service) -> Manifest:
    spec = dict(specs[0])
    init = _init_containers(specs)
    lists = {
        "containers": [container for each in specs for container in each["containers"]],
        "initContainers": init,
        "volumes": _distinct(specs, "volumes"),
        "hostAliases": join_aliases(alias for each in specs for alias in each.get("hostAliases", ())),
        "imagePullSecrets": _distinct(specs, "imagePullSecrets"),
    }
    spec.update({key: found for key, found in lists.items() if found})
    if owner.pod.shares_processes and not spec.get("hostPID"):
        spec["shareProcessNamespace"] = True
    spec["securityContext"] = _security([each["securityContext"] for each in specs])
    spec["terminationGracePeriodSeconds"] = max(each["terminationGracePeriodSeconds"] for each in specs)
    return spec


def _distinct(specs: list[Manifest], key: str) -> list[Manifest]:
    found: list[Manifest] = []
    for spec in specs:
        found += [item for item in spec.get(key, ()) if item not in found]
    return found


def _init_containers(specs: list[Manifest]) -> list[Manifest]:
    """Return the init containers, each with a name of its service; one brings the tools for all, and comes first."""
    found: dict[str, Manifest] = {}
    for index, spec in enumerate(specs):
        service = spec["containers"][0]["name"]
        for container in spec.get("initContainers", ()):
            name = container["name"]
            if name == TOOLS_CONTAINER:
                found.setdefault(name, container)
            else:
                own = init_container_name(name, service) if index else name
                found[own] = {**container, "name": own}
    return sorted(found.values(), key=lambda container: container["name"] != TOOLS_CONTAINER)


def init_container_name(name: str, service: str) -> str:
    """Name an init container of a service that runs in the pods of another."""
    return shorten(f"{name}-{service}")


def own_init_containers(template: Manifest, service: str) -> list[Manifest]:
    """Return the init containers of one service of a pod, by its cluster name, with the one for all."""
    containers: list[Manifest] = template["spec"].get("initContainers", [])
    owner, *others = template["metadata"].get("annotations", {}).get(SERVICES_ANNOTATION, service).split(",")
    plain = (FILL_CONTAINER, MODES_CONTAINER, *(hook_name(index) for index in range(len(containers))))
    owners = {init_container_name(name, other): other for other in others for name in plain}
    return [
        container
        for container in containers
        if container["name"] == TOOLS_CONTAINER or owners.get(container["name"], owner) == service
    ]


def _security(contexts: list[Manifest]) -> Manifest:
    merged: Manifest = {}
    for context in reversed(contexts):
        merged.update(context)
    groups = dict.fromkeys(group for context in contexts for group in context.get("supplementalGroups", ()))
    return {**merged, **({"supplementalGroups": list(groups)} if groups else {})}


# checks ---------------------------------------------------------------------------------------------------------------


def check_shared_pod(checker: Checker, service: Service) -> None:
    """Report what a service says of a pod that is another's, and ports that another container of the pod has."""
    if not service.runs_elsewhere:
        return
    owner = checker.project.services[service.pod.owner]
    own, shared = _of_the_pod(service), _of_the_pod(owner)
    for keys, value in own.items():
        path = ("services", service.name, *keys)
        if value and value != shared[keys] and checker.origins.has(*path):
            message = f"is of a whole pod, and the service is in that of '{owner.name}'"
            checker.add("pod-conflict", path, message, f"give '{owner.name}' the same, or give it there alone")
    _check_ports(checker, service)


def check_container_names(checker: Checker, plans: Iterable[ServicePlan]) -> None:
    """Report a service whose container has the name of an init container of its pod."""
    names = {clean(name): name for name in checker.project.services}
    for workload in (
        desired for plan in plans for desired in plan.objects if desired.key.kind is ResourceKind.WORKLOAD
    ):
        spec = pod_template(workload.manifest)["spec"]
        taken = {container["name"] for container in spec.get("initContainers", ())}
        for container in spec["containers"]:
            if container["name"] in taken:
                path = ("services", names[container["name"]])
                message = "has the name of a container that runs in its pods before it, and a pod has a name once"
                checker.add("name-conflict", path, message, "rename the service", at_key=True)


_ANYWHERE = Placement()


def _of_the_pod(service: Service) -> dict[tuple[str, ...], object]:
    """Return the values of the keys that are fields of a pod."""
    container, names = service.container, service.container.names
    return {
        ("x-service-account",): service.service_account,
        ("x-node-selector",): dict(service.node_selector),
        ("deploy", "placement"): service.scheduling.placement if service.scheduling.placement != _ANYWHERE else None,
        ("platform",): container.platform.written,
        ("runtime",): container.runtime,
        ("userns_mode",): container.host_users is not None and str(container.host_users),
        ("pid",): "pid" in container.host_namespaces,
        ("ipc",): "ipc" in container.host_namespaces,
        ("sysctls",): dict(container.sysctls),
        ("hostname",): names.hostname,
        ("domainname",): names.domain,
        ("dns",): names.servers,
        ("dns_search",): names.searches,
        ("dns_opt",): names.resolver_options,
    }


def _check_ports(checker: Checker, service: Service) -> None:
    """Report a port that an earlier service of the pod has: its containers have one network."""
    members = service.pod.members
    for name in members[: members.index(service.name)]:
        other = checker.project.services[name]
        for port in service.ports:
            path = port_path(service.name, port)
            taken = next((p for p in other.ports if (p.target, p.protocol) == (port.target, port.protocol)), None)
            if taken is None:
                continue
            _, source, line, column = checker.origins.at(*port_path(name, taken)).place
            message = f"is a port of '{name}' too ({source}:{line}:{column}), and both are in one pod"
            checker.add("pod-conflict", path, message, "let one of the programs listen on another port")
