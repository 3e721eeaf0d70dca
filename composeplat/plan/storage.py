"""Claims, the volumes and mounts of pods, and the affinity of pods that share a volume.

Owns the names of claims, and of volumes within a pod.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import field

from composeplat.compose.model import ANONYMOUS, HOST, IMAGE, MEMORY, NAMED, HostFile, Mount, Project, Service, Volume
from composeplat.compose.origins import Checker
from composeplat.compose.placeholders import has_placeholder
from composeplat.compose.values import show_size
from composeplat.names import LABEL_PREFIX, clean, given_name, is_dns_name, make_file_key, shorten, slug
from composeplat.plan.desired import DesiredObject, Manifest, VolumePlan
from composeplat.plan.identity import Identity
from composeplat.plan.images import carries_content_in_image, depth, host_mounts
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from composeplat.system.records import mutable

_ANONYMOUS_VOLUME_BYTES = 1024**3
FILES_VOLUME = "host-files"
TOOLS_VOLUME = "platform-tools"
IMAGE_PREFIX = "platform-image-"
_RESERVED_PREFIXES = (f"{ANONYMOUS}-", f"{MEMORY}-", "host-", "volume-", "platform-")


def claim_name(volume: Volume) -> str:
    """Return the name of a volume's claim: as given, if Kubernetes accepts it."""
    is_late = has_placeholder(volume.object_name)
    return volume.object_name if is_late else given_name(volume.object_name, volume.name)


def plan_volumes(checker: Checker, identity: Identity) -> tuple[VolumePlan, ...]:
    """Plan the claims of the volumes that services mount; those of someone else must be there."""
    mounted = checker.project.mounted_volumes
    volumes = [volume for name, volume in checker.project.volumes.items() if name in mounted]
    for volume in volumes:
        if volume.object_name and not has_placeholder(volume.object_name):
            _check_claim_name(checker, volume)
    return tuple(_plan_volume(volume, identity) for volume in volumes if not volume.external)


def _check_claim_name(checker: Checker, volume: Volume) -> None:
    path, name = ("volumes", volume.name, "name"), claim_name(volume)
    if not is_dns_name(name):
        hint = "use letters, digits, '-' and '.'"
        checker.add("invalid-name", path, "can't be the name of a PersistentVolumeClaim", hint, at_key=True)
    elif name != volume.object_name:
        shown = "another name" if checker.origins.is_substituted(*path) else f"'{name}'"
        checker.add("name-normalized", path, f"becomes {shown}, which is its name in the cluster", at_key=True)


def _plan_volume(volume: Volume, identity: Identity) -> VolumePlan:
    name = clean(volume.name)
    manifest: Manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": identity.metadata(claim_name(volume), name, volume.labels),
        "spec": _claim_spec(volume.size, volume.storage_class, volume.access_mode),
    }
    return VolumePlan(
        name=volume.name,
        cluster_name=name,
        objects=(DesiredObject(key=ResourceKey(ResourceKind.CLAIM, name), manifest=manifest),),
    )


def _claim_spec(size: int, storage_class: str = "", access_mode: str = "ReadWriteOnce") -> Manifest:
    spec: Manifest = {"accessModes": [access_mode]}
    if storage_class:
        spec["storageClassName"] = storage_class
    spec["resources"] = {"requests": {"storage": show_size(size)}}
    return spec


@mutable
class Storage:
    """The parts of a pod template and its workload for a service's mounts."""

    volumes: list[Manifest] = field(default_factory=list)
    mounts: list[Manifest] = field(default_factory=list)
    claim_templates: list[Manifest] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)
    files: dict[str, HostFile] = field(default_factory=dict)
    """The files, by the key of the Secret."""
    objects: dict[ResourceKey, bytes] = field(default_factory=dict)
    """The contents of the configs and secrets that are mounted, and of what providers set."""


def plan_storage(service: Service, project: Project, identity: Identity) -> Storage:
    storage = Storage()
    seen: set[str] = set()
    for mount in service.mounts:
        name = volume_name(mount)
        if mount.kind in (NAMED, ANONYMOUS, MEMORY, IMAGE):
            storage.mounts.append(plan_mount(name, mount.target, mount.sub_path, read_only=mount.read_only))
        if name in seen:
            continue
        seen.add(name)
        if mount.kind == NAMED:
            volume = project.volumes.get(mount.source, Volume(name=mount.source))
            storage.volumes.append({"name": name, "persistentVolumeClaim": {"claimName": claim_name(volume)}})
            if not volume.external:
                storage.claims.append(clean(mount.source))
        elif mount.kind == IMAGE:
            storage.volumes.append({"name": name, "image": {"reference": mount.source}})
        elif mount.kind == MEMORY:
            limit = {"sizeLimit": show_size(mount.size)} if mount.size else {}
            storage.volumes.append({"name": name, "emptyDir": {"medium": "Memory", **limit}})
        elif mount.kind == ANONYMOUS and service.is_job:
            # The pods of a Job end, and no later pod would use their claims.
            storage.volumes.append({"name": name, "emptyDir": {}})
        elif mount.kind == ANONYMOUS:
            metadata: Manifest = {"name": name, "labels": identity.service_labels(clean(service.name))}
            if mount.labels:
                metadata["annotations"] = dict(sorted(mount.labels.items()))
            storage.claim_templates.append({"metadata": metadata, "spec": _claim_spec(_ANONYMOUS_VOLUME_BYTES)})
    _add_files(service, storage)
    return storage


def volume_name(mount: Mount) -> str:
    """Name a volume within the pod; volumes without a name have prefixes that named volumes can't have."""
    if mount.kind == NAMED:
        name = clean(mount.source)
        return shorten(f"volume-{name}") if name.startswith(_RESERVED_PREFIXES) else name
    if mount.kind == IMAGE:
        return f"{IMAGE_PREFIX}{slug(mount.target, limit=48)}"
    return f"{mount.kind}-{slug(mount.target, limit=50)}"


def plan_mount(name: str, target: str, sub_path: str = "", *, read_only: bool = False) -> Manifest:
    fields: Manifest = {"name": name, "mountPath": target}
    if sub_path:
        fields["subPath"] = sub_path
    if read_only:
        fields["readOnly"] = True
    return fields


def _add_files(service: Service, storage: Storage) -> None:
    """Mount each file by itself, so that other files of the image stay visible."""
    items: list[Manifest] = []
    for target, file in _mounted_files(service).items():
        key = make_file_key(target.lstrip("/").replace("/", "_"))
        while key in storage.files:
            key = f"{key}_"
        storage.files[key] = file
        items.append({"key": key, "path": key, "mode": file.mode})
        storage.mounts.append(plan_mount(FILES_VOLUME, target, key, read_only=True))
    if items:
        source = {"secretName": files_name(service), "items": items}
        storage.volumes.append({"name": FILES_VOLUME, "secret": source})


def _mounted_files(service: Service) -> dict[str, HostFile]:
    """Return the files by their path in the container: those of host content, and those of ``platform watch``.

    The volume at the deeper path has a file of two volumes, as it is mounted last.
    """
    content: dict[str, HostFile] = {}
    depths: dict[str, int] = {}
    for mount in () if carries_content_in_image(service) else host_mounts(service):
        for file in mount.content.files or () if mount.content else ():
            path = f"{mount.target}/{file.path}" if file.path else mount.target
            if depths.get(path, 0) <= depth(mount) and not _is_hidden(path, mount, service):
                content[path], depths[path] = file, depth(mount)
    taken = _other_targets(service)
    return {**content, **{file.path: file for file in service.synced_files if file.path not in taken}}


def _is_hidden(path: str, folder: Mount, service: Service) -> bool:
    """Check for a volume, config or secret within a host folder, which hides the folder's own entry."""
    within = [target for target in _other_targets(service) if target.startswith(f"{folder.target}/")]
    return any(f"{path}/".startswith(f"{target}/") for target in within)


def _other_targets(service: Service) -> list[str]:
    """Return where a service has anything but host content."""
    volumes = [mount.target for mount in service.mounts if mount.kind != HOST]
    return [*volumes, *(mount.target for mount in service.file_mounts)]


def files_name(service: Service) -> str:
    return f"{clean(service.name)}-files"


def plan_files(service: Service, identity: Identity, files: dict[str, HostFile]) -> Manifest:
    """Plan a Secret with files, since a file of this machine may be confidential; the state has it encrypted."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": identity.service_metadata(files_name(service), clean(service.name)),
        "type": "Opaque",
        "data": {key: base64.b64encode(file.content).decode("ascii") for key, file in files.items()},
    }


# pods that share a volume ---------------------------------------------------------------------------------------------


def shared_volumes(project: Project) -> dict[str, tuple[str, ...]]:
    """Map each service to the volumes that decide its node: those it shares, and those that its sharers share.

    Without the latter, a service that shares one volume with a second service and another with a third could fit on no
    node, if those two run on different nodes.
    """
    users: dict[str, list[Service]] = {}
    for service in project.services.values():
        # The containers of one pod share its node anyway.
        for source in () if service.runs_elsewhere else sorted(service.named_volumes | service.pod.volumes):
            users.setdefault(source, []).append(service)
    shared = {name: services for name, services in users.items() if _is_shared(services, project.volumes.get(name))}
    groups: list[tuple[set[str], set[str]]] = []
    for volume, services in shared.items():
        names, volumes = {s.name for s in services}, {volume}
        for group in [g for g in groups if g[0] & names]:
            groups.remove(group)
            names |= group[0]
            volumes |= group[1]
        groups.append((names, volumes))
    return {name: tuple(sorted(volumes)) for names, volumes in groups for name in names}


def _is_shared(services: list[Service], volume: Volume | None) -> bool:
    """Whether several pods mount a volume; an autoscaler adds pods, which need one node only for a volume of one."""
    is_bound = volume is not None and volume.access_mode == "ReadWriteOnce"
    is_scaled = services[0].extensions.autoscale is not None and is_bound
    return len(services) > 1 or services[0].replicas > 1 or is_scaled


def volume_label(volume: str) -> str:
    return f"{LABEL_PREFIX}/{shorten(f'volume-{clean(volume)}')}"


def plan_affinity(volumes: Iterable[str], identity: Identity) -> Manifest:
    terms = [
        {
            "labelSelector": {"matchLabels": {volume_label(volume): identity.environment}},
            "topologyKey": "kubernetes.io/hostname",
        }
        for volume in volumes
    ]
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
