"""Keys of a service without effect: entries that have the same effect, and hints for the others.

Owns which keys another one can replace. An entry resets the key, so that the warning about it goes too. A host of this
machine, for which full mode has an error instead, is left out.
"""

from __future__ import annotations

import json
import os.path
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from composeplat.compatibility.entries import Change, Entry, changed_text, yaml_text
from composeplat.compatibility.host_rules import written_variable
from composeplat.compose.load import Loaded
from composeplat.compose.model import Service
from composeplat.compose.nodes import Node, Scalar, Sequence, find_node, to_plain
from composeplat.compose.parse.environment import name_without_colons
from composeplat.compose.parse.unsupported_keys import HOST_GATEWAY
from composeplat.compose.system_paths import SHARED_MEMORY
from composeplat.compose.values import BadValue, parse_size
from composeplat.diagnostics import PathKey
from composeplat.registry.image_config import ImageFacts

_SECRETS_FOLDER = "/run/secrets"
_SHARED = "Shared memory."
#: Hints for keys whose warnings have none.
_HINTS = {
    "container_name": "write the name of the service wherever the other one is used",
    "depends_on": "'platform restart' restarts services in the order of 'depends_on'",
    "dns": "pods ask the DNS of the cluster; its administrator can forward zones to other servers",
    "extra_hosts": "use the address itself, or a name that the DNS of the cluster knows",
    "hostname": "nothing to do, unless the program needs this name of itself: its pod has another",
    "network_mode": "write the names of services instead of 'localhost'",
    "networks": "write the name of the service wherever the other one is used",
    "pull_policy": "nodes pull a tag once, and 'latest' with each start: name the version that is meant",
    "stop_signal": "nothing to do, unless the program needs this signal: it gets SIGTERM, or that of its image",
    "ulimits": "nothing to do, unless the program needs more than the nodes allow; their administrator sets the limits",
}


_VOLUME_HINTS = {
    "driver": "choose a storage class with 'class'",
    "external": "the volume is a new one: copy files into it with 'platform cp', or load a dump",
    "name": "nothing to do: the volume has the name of its key",
}


def hint_for(path: PathKey) -> str:
    """Return what to do about a key without effect; empty if there is no more to say."""
    match path:
        case ("services", _, str(key), *_):
            return _HINTS.get(key, "")
        case ("volumes", _, str(key), *_):
            return _VOLUME_HINTS.get(key, "")
    return ""


def mend_key(loaded: Loaded, path: PathKey) -> tuple[Entry, ...]:
    match path:
        case ("services", str(name), "secrets"):
            return _mount_secrets(loaded, loaded.project.services[name])
        case ("services", str(name), "tmpfs" as key):
            return _mount_memory(name, find_node(loaded.document, "services", name, key))
        case ("services", str(name), "shm_size" as key):
            return _enlarge_shared_memory(
                loaded.project.services[name], find_node(loaded.document, "services", name, key)
            )
    return ()


def drop_gateway(loaded: Loaded, path: PathKey) -> tuple[Entry, ...]:
    """Leave out an entry of ``extra_hosts`` for this machine, for which full mode has an error."""
    match path:
        case ("services", str(service), "extra_hosts" as key, name):
            written = loaded.origins.written(*path)
            if loaded.origins.is_substituted(*path) or not written.endswith(HOST_GATEWAY):
                return ()
            line = f"- !reset {yaml_text(written)}" if isinstance(name, int) else f"{yaml_text(name)}: !reset null"
            reason = "A pod has no gateway to this machine: this entry is left out."
            return (Entry(("services", service, key), line, reason),)
    return ()


def rename_variable(loaded: Loaded, path: PathKey, change: Callable[[Service, str, str], str]) -> tuple[Entry, ...]:
    """Set a variable of .NET by the name that Kubernetes accepts; as it is written, without the values of others.

    Findings about its value are only those of the new name, whose entry another run keeps: ``change`` mends them.
    """
    match path:
        case ("services", str(service), "environment" as key, entry):
            whole = find_node(loaded.document, "services", service, key)
            name, text = _written_pair(whole, entry)
            other = name_without_colons(name)
            if not other or "$" in name or text is None or written_variable(whole, other) is not None:
                return ()
            text = change(loaded.project.services[service], other, text)
            parent = ("services", service, key)
            reset = Entry(parent, f"{yaml_text(name)}: !reset null", "Kubernetes accepts no ':' in a name.")
            return reset, Entry(parent, f"{other}: {yaml_text(text)}", "The same for .NET.")
    return ()


def change_arguments(loaded: Loaded, path: PathKey, change: Callable[[str], str], reason: str) -> tuple[Entry, ...]:
    """Write a command, an entrypoint or the test of a health check again, with another text."""
    whole = tuple(map(str, path))
    parent, key = (whole, "test") if whole[-1] == "healthcheck" else (whole[:-1], whole[-1])
    node = find_node(loaded.document, *parent, key)
    items = node.items if isinstance(node, Sequence) else [node]
    texts = [item.written for item in items if isinstance(item, Scalar)]
    before, is_list = "\n".join(texts), isinstance(node, Sequence)
    # An option and its value may be two items, which are told apart by lines.
    if is_list and before.count("\n") != len(items) - 1:
        return ()

    def write(after: str) -> str:
        value = after.split("\n") if is_list else after
        return f"{key}: {json.dumps(value, ensure_ascii=False)}"

    return changed_text(parent, Change(before, change, write), reason)


def _written_pair(whole: Node | None, entry: str | int) -> tuple[str, str | None]:
    """Return the name and the value of a variable as the file has them; no value if it has none."""
    if isinstance(whole, Sequence) and isinstance(entry, int):
        item = whole.items[entry]
        name, equals, text = item.written.partition("=") if isinstance(item, Scalar) else ("", "", "")
        return name, text if equals else None
    value = find_node(whole, str(entry))
    is_empty = not isinstance(value, Scalar) or (value.plain and not value.written)
    return str(entry), None if is_empty else written_variable(whole, str(entry))


def process_entries(service: Service, image: ImageFacts) -> tuple[Entry, ...]:
    """Set the entrypoint of the image again, and its command, which an entrypoint in the definition takes away."""
    if service.entrypoint is not None or not (image.entrypoint or image.command or service.command):
        return ()
    parent = ("services", service.name)
    entries = [Entry(parent, f"entrypoint: {_listed(image.entrypoint)}", "That of the image: 'ulimits' is set for it.")]
    if service.command is None and image.command:
        entries.append(Entry(parent, f"command: {_listed(image.command)}", "That of the image."))
    return tuple(entries)


def _listed(args: tuple[str, ...]) -> str:
    """Write arguments as a list; what Compose would take for a variable stays a text."""
    return json.dumps([arg.replace("$", "$$") for arg in args], ensure_ascii=False)


def replacement(service: str, key: str, items: list[str], reason: str) -> tuple[Entry, ...]:
    """Reset a key of a service, and mount volumes instead."""
    parent = ("services", service)
    reset = Entry(parent, f"{key}: !reset null", "The volumes below take its place.")
    return (reset, *(Entry((*parent, "volumes"), f"- {item}", reason) for item in items)) if items else ()


def _mount_secrets(loaded: Loaded, service: Service) -> tuple[Entry, ...]:
    """Mount the files of secrets where Docker Compose puts them.

    A service that is built can have no such mount, and a file outside the project can't be mounted.
    """
    document = loaded.document
    used, declared = find_node(document, "services", service.name, "secrets"), find_node(document, "secrets")
    if service.build or not isinstance(used, Sequence):
        return ()
    listed = to_plain(used)
    found = tuple(_secret_files(listed, to_plain(declared) if declared else None))
    nodes = [find_node(declared, name, "file") for name, _ in found]
    files = [file for file in nodes if isinstance(file, Scalar) and not file.is_substituted]
    paths = [_path_from(loaded.folder, file) for file in files]
    is_inside = all(loaded.root.allows(loaded.folder / os.path.expanduser(path)) for path in paths)
    if not (is_inside and len(files) == len(found) == len(listed)):
        return ()
    items = [yaml_text(f"{path}:{target}:ro") for path, (_, target) in zip(paths, found, strict=True)]
    return replacement(service.name, "secrets", items, "The file of a secret.")


def _secret_files(listed: list[Any], secrets: Any) -> Iterator[tuple[str, str]]:
    """Yield name and path in the container of a service's secrets that come from files of the project."""
    for item in listed:
        name, target = (item.get("source"), item.get("target")) if isinstance(item, dict) else (item, None)
        secret = (secrets or {}).get(name)
        if isinstance(secret, dict) and isinstance(secret.get("file"), str):
            yield str(name), str(PurePosixPath(_SECRETS_FOLDER, str(target or name)))


def _path_from(folder: Path, file: Scalar) -> str:
    """Return a path as the first file would write it; an included file has paths relative to its own folder."""
    if file.text.startswith(("/", "~")):
        return file.text
    path = os.path.relpath(file.span.source.base / file.text, folder)
    return path if path.startswith("..") else f"./{path}"


def _mount_memory(service: str, written: Node | None) -> tuple[Entry, ...]:
    """Mount folders in memory, as ``tmpfs`` does."""
    return replacement(service, "tmpfs", list(memory_folders(written).values()), "In memory.")


def memory_folders(written: Node | None) -> dict[str, str]:
    """Return the mounts in memory in the place of ``tmpfs``, by their paths; empty if one can't have its options."""
    listed = written.items if isinstance(written, Sequence) else [written]
    texts = [item.text for item in listed if isinstance(item, Scalar) and not item.is_substituted]
    items = {target: _memory_item(target, options) for target, _, options in (text.partition(":") for text in texts)}
    is_whole = len(texts) == len(listed) and all(items.values())
    return items if is_whole else {}


def _memory_item(target: str, options: str) -> str:
    """Write a mount in memory; empty if it has options that such a mount can't have."""
    given = dict(option.partition("=")[::2] for option in options.split(",") if option)
    size = given.pop("size", "")
    is_writable = "ro" not in given
    return _sized(target, size) if target.startswith("/") and is_writable else ""


def _sized(target: str, size: str) -> str:
    if not size:
        return f"{{type: tmpfs, target: {yaml_text(target)}}}"
    try:
        parse_size(size)
    except BadValue:
        return ""
    return f"{{type: tmpfs, target: {yaml_text(target)}, tmpfs: {{size: {size}}}}}"


def _enlarge_shared_memory(service: Service, written: Node | None) -> tuple[Entry, ...]:
    """Mount memory of this size; nothing where the service mounts something else there, which has its own size."""
    is_taken = any(mount.target == SHARED_MEMORY != mount.source for mount in service.mounts)
    item = "" if is_taken else _shared_memory_item(written)
    return replacement(service.name, "shm_size", [item] if item else [], _SHARED)


def _shared_memory_item(written: Node | None) -> str:
    """Write a mount of the size that ``shm_size`` has; empty without one that is written as it is."""
    text = written.text if isinstance(written, Scalar) and not written.is_substituted else ""
    return _sized(SHARED_MEMORY, text) if text else ""


def mount_shared_memory(loaded: Loaded, service: str) -> tuple[Entry, ...]:
    """Mount memory of the pod in the place of this machine's; none where full mode does so by ``shm_size``."""
    written = find_node(loaded.document, "services", service, "shm_size")
    if loaded.settings.full and written is not None:
        return ()
    item = _shared_memory_item(written) or _sized(SHARED_MEMORY, "")
    return (Entry(("services", service, "volumes"), f"- {item}", _SHARED),)
