"""The ConfigMaps and Secrets of a definition's configs and secrets, and their files in pods.

Owns the names of these objects, the names of their volumes within a pod, and which objects of others a plan requires.
One object serves all services that use a config or secret, so its name is the one that the definition gives it.
The key of a file is the name of the entry: in an object of someone else too, unless `x-key` names another, so that the
plan needs no cluster.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator

from composeplat.compose.file_model import DEFAULT_FILE_MODE, FileKind, FileMount, FileObject
from composeplat.compose.model import NAMED, Project, Service
from composeplat.compose.origins import Checker
from composeplat.names import (
    MAX_LABEL_LENGTH,
    clean,
    given_name,
    is_dns_label,
    is_dns_name,
    make_file_key,
    shorten,
)
from composeplat.plan.desired import RUNTIME_CLASS, DesiredObject, EndpointPlan, FilePlan, Manifest, RequiredObject
from composeplat.plan.endpoints import certificate_names
from composeplat.plan.identity import Identity
from composeplat.plan.providers import provided_name
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from composeplat.plan.storage import Storage, claim_name, plan_mount

_OBJECT_KINDS = {FileKind.CONFIG: "ConfigMap", FileKind.SECRET: "Secret"}
_RESOURCE_KINDS = {FileKind.CONFIG: ResourceKind.CONFIG, FileKind.SECRET: ResourceKind.SECRET}
_OWN_PREFIX = "platform-"
#: YAML and JSON have these characters in escapes alone; as bytes they stay what they are.
_NOT_TEXT = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]"


def object_name(found: FileObject) -> str:
    """Return the name of an object: as given, if Kubernetes accepts it."""
    return given_name(found.object_name, found.name)


def _resource_key(found: FileObject) -> ResourceKey:
    return ResourceKey(_RESOURCE_KINDS[found.kind], clean(found.name))


def _data_key(found: FileObject) -> str:
    return found.key if found.external and found.key else make_file_key(found.name)


# objects --------------------------------------------------------------------------------------------------------------


def plan_file_objects(
    checker: Checker, identity: Identity, endpoints: Iterable[EndpointPlan] = ()
) -> tuple[FilePlan, ...]:
    mounted = checker.project.mounted_files
    _check_names(checker, _check_entries(checker, mounted), endpoints)
    return tuple(
        FilePlan(
            section=found.kind.section,
            name=found.name,
            objects=(DesiredObject(key=_resource_key(found), manifest=_manifest(found, identity)),),
        )
        for found in mounted
        if not found.external
    )


def _manifest(found: FileObject, identity: Identity) -> Manifest:
    metadata = identity.metadata(object_name(found), clean(found.name), found.labels)
    manifest: Manifest = {"apiVersion": "v1", "kind": _OBJECT_KINDS[found.kind], "metadata": metadata}
    content = found.content or b""
    encoded = base64.b64encode(content).decode("ascii")
    if found.kind is FileKind.SECRET:
        return {**manifest, "type": "Opaque", "data": {_data_key(found): encoded}}
    text = _as_text(content)
    if text is None:
        return {**manifest, "binaryData": {_data_key(found): encoded}}
    return {**manifest, "data": {_data_key(found): text}}


def _as_text(content: bytes) -> str | None:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return None if re.search(_NOT_TEXT, text) else text


def _check_entries(checker: Checker, mounted: tuple[FileObject, ...]) -> list[FileObject]:
    """Report names of entries that are no labels, and those that meet; return the others.

    A volume of a pod is named by its entry, whatever the name of its object.
    """
    taken: dict[tuple[FileKind, str], FileObject] = {}
    for found in mounted:
        path, name = (found.kind.section, found.name), clean(found.name)
        other = taken.setdefault((found.kind, name), found)
        if found.object_name and not is_dns_label(shorten(name) if found.external else name):
            hint = f"use at most {MAX_LABEL_LENGTH} letters, digits and '-'"
            checker.add("invalid-name", path, "can't be converted to a Kubernetes name", hint, at_key=True)
        if other is not found:
            message = f"and {found.kind.section}.{other.name} would both be named '{name}'"
            checker.add("name-conflict", path, message, "rename one of them", at_key=True)
    return list(taken.values())


def _check_names(checker: Checker, mounted: Iterable[FileObject], endpoints: Iterable[EndpointPlan]) -> None:
    """Report names that Kubernetes does not accept, or that another object has."""
    certificates = {name: f"the certificate of the endpoint '{owner}'" for name, owner in certificate_names(endpoints)}
    taken = {("Secret", name): owner for name, owner in (*certificates.items(), *_names_of_services(checker.project))}
    for found in mounted:
        path = (found.kind.section, found.name)
        name, kind = object_name(found), _OBJECT_KINDS[found.kind]
        at = (*path, "name") if found.object_name else path
        is_hidden = checker.origins.is_substituted(*at)
        if not is_dns_name(name) or name.startswith(_OWN_PREFIX):
            hint = f"use letters, digits, '-' and '.', and do not begin with '{_OWN_PREFIX}'"
            checker.add("invalid-name", at, f"can't be the name of a {kind}", hint, at_key=True)
        elif name != (found.object_name or found.name):
            shown = "another name" if is_hidden else f"'{name}'"
            checker.add("name-normalized", at, f"becomes {shown}, which is its name in the cluster", "", at_key=True)
        owner = taken.setdefault((kind, name), ".".join(path))
        # A pod may mount a certificate, and an object that another entry names too.
        is_shared = owner.startswith(f"{found.kind.section}.") or owner == certificates.get(name)
        if owner != ".".join(path) and not (found.external and is_shared):
            shown = checker.origins.shown(*at) if is_hidden else f"'{name}'"
            message = f"and {owner} would both have the {kind} {shown}"
            checker.add("name-conflict", at, message, "give it another 'name'", at_key=True)


def _names_of_services(project: Project) -> Iterator[tuple[str, str]]:
    """Yield the names of the Secrets that services can have."""
    yield from ((provided_name(name), f"services.{name}") for name in project.providers)
    for name in project.services:
        yield from ((f"{clean(name)}-{part}", f"services.{name}") for part in ("env", "files", "pull"))


def required_objects(project: Project) -> Iterator[RequiredObject]:
    """Yield the external volumes, configs and secrets, and the runtimes of services."""
    for service in project.services.values():
        if name := service.container.runtime:
            where = ("services", service.name, "runtime")
            yield RequiredObject(kind=RUNTIME_CLASS, name=name, path=where, services=frozenset((service.name,)))
    users = _users(project)
    for volume in project.volumes.values():
        if volume.external and (services := users.get((NAMED, volume.name))):
            path, name = ("volumes", volume.name), claim_name(volume)
            yield RequiredObject(kind="PersistentVolumeClaim", name=name, path=path, services=frozenset(services))
    for found in project.mounted_files:
        if found.external:
            yield RequiredObject(
                kind=_OBJECT_KINDS[found.kind],
                name=object_name(found),
                key=_data_key(found),
                path=(found.kind.section, found.name),
                services=frozenset(users[found.kind, found.name]),
            )


def _users(project: Project) -> dict[tuple[object, str], list[str]]:
    """The services that mount each volume, config and secret, by its kind and name."""
    users: dict[tuple[object, str], list[str]] = {}
    for service in project.services.values():
        volumes = ((NAMED, name) for name in service.named_volumes)
        for key in (*volumes, *((mount.kind, mount.source) for mount in service.file_mounts)):
            users.setdefault(key, []).append(service.name)
    return users


# files in pods --------------------------------------------------------------------------------------------------------


def add_file_mounts(service: Service, project: Project, storage: Storage) -> None:
    """Mount each file by itself, so that the other files of its folder stay visible."""
    volumes: dict[str, Manifest] = {}
    for mount in service.file_mounts:
        found = project.file_objects(mount.kind).get(mount.source)
        if found is None:
            continue
        name, key = _volume_name(mount), _data_key(found)
        volumes[name] = {"name": name, **_source(found, key, mount.mode)}
        storage.mounts.append(plan_mount(name, mount.target, key, read_only=True))
        if not found.external:
            storage.objects[_resource_key(found)] = found.content or b""
    storage.volumes.extend(volumes.values())


def _volume_name(mount: FileMount) -> str:
    """Name a volume by its file and mode; a name that ends like a mode has its own mode behind it."""
    name = clean(mount.source)
    is_plain = mount.mode == DEFAULT_FILE_MODE and not re.search(r"-[0-7]{4}$", name)
    return shorten(f"{_OWN_PREFIX}{mount.kind}-{name}{'' if is_plain else f'-{mount.mode:04o}'}")


def _source(found: FileObject, key: str, mode: int) -> Manifest:
    items = [{"key": key, "path": key, "mode": mode}]
    if found.kind is FileKind.CONFIG:
        return {"configMap": {"name": object_name(found), "items": items}}
    return {"secret": {"secretName": object_name(found), "items": items}}
