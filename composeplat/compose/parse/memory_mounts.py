"""Parse the keys of a service for volumes in memory: ``tmpfs`` and ``shm_size``, and the mode of such a volume.

They have an effect in full mode alone.
"""

from __future__ import annotations

from collections.abc import Callable

from composeplat.compose.model import MEMORY, Mount
from composeplat.compose.origins import mount_path
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.pod_model import FolderMode
from composeplat.compose.system_paths import SHARED_MEMORY
from composeplat.compose.values import clean_target, parse_int, parse_mode, parse_size
from composeplat.diagnostics import quoted

#: Options of a mount that ask for what a volume in memory has anyway.
_DEFAULT_OPTIONS = frozenset(("rw", "exec", "suid", "dev", "defaults"))


def parse_memory_mounts(service: Section, mounts: tuple[Mount, ...], *, of_node: bool) -> tuple[Mount, ...]:
    """Return the mounts of a service with those in memory, except where another is at the same path.

    Shared memory ``of_node`` is the node's, and has its size.
    """
    targets = {mount.target for mount in mounts}
    found = [*mounts]
    tmpfs = service.get("tmpfs")
    for item in tmpfs.items_or_text() if tmpfs else ():
        mount = _read(item)
        if mount is not None and mount.target in targets:
            message = f"mounts at the same path as another volume of this service: {item.node.shown}"
            item.report("duplicate-mount", message, "remove one")
        elif mount is not None:
            targets.add(mount.target)
            _place(item, len(found))
            found.append(mount)
    size, place = service.optional("shm_size", parse_size), service.get("shm_size")
    if size and place and of_node:
        place.report("no-effect", "has no effect: with 'ipc: host' the memory is the node's", "leave one of them out")
    elif size and place and SHARED_MEMORY in targets:
        place.report("no-effect", f"has no effect: another volume is at {SHARED_MEMORY}", "give that volume the size")
    elif size and place:
        _place(place, len(found))
        found.append(Mount(kind=MEMORY, target=SHARED_MEMORY, size=size))
    return tuple(found)


def _place(item: Field, index: int) -> None:
    item.ctx.origins.put_alias(mount_path(str(item.path[1]), index), item.node, item.path)


def _read(item: Field) -> Mount | None:
    """Read ``/path:option,option=value``."""
    text = item.text()
    if text is None:
        return None
    path, _, listed = text.partition(":")
    target = item.value(lambda _: clean_target(path))
    options = dict(option.partition("=")[::2] for option in listed.split(",") if option)
    size = _size(item, options.pop("size", ""))
    read_only = "ro" in options
    folder = FolderMode(
        mode=_option(item, options, "mode", parse_mode),
        uid=_option(item, options, "uid", parse_int),
        gid=_option(item, options, "gid", parse_int),
    )
    unknown = [name for name in options if name not in _DEFAULT_OPTIONS and name != "ro"]
    if unknown:
        shown = item.node.shown if item.node.is_substituted else ", ".join(map(quoted, unknown))
        item.report("no-effect", f"has options that have no effect in a cluster: {shown}")
    if target is None:
        return None
    return Mount(kind=MEMORY, target=target, read_only=read_only, size=size, folder=folder)


def _size(item: Field, text: str) -> int | None:
    if text.endswith("%"):
        item.report("no-effect", "has a size in percent, which has no effect in a cluster", "give it as in size=64m")
        return None
    return (item.value(lambda _: parse_size(text)) or None) if text else None


def _option(item: Field, options: dict[str, str], name: str, parse: Callable[[str], int]) -> int | None:
    text = options.pop(name, None)
    return None if text is None else item.value(lambda _: parse(text))
