"""Parse a service's ``volumes``."""

from __future__ import annotations

import os.path

from composeplat.compose.model import ANONYMOUS, HOST, MEMORY, NAMED, Mount
from composeplat.compose.nodes import Mapping, Node, Scalar
from composeplat.compose.origins import mount_path, mount_source_path, mount_target_path
from composeplat.compose.parse.annotations import parse_annotations
from composeplat.compose.parse.environment import absolute
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.parse.image_mounts import parse_image_mount
from composeplat.compose.parse.modes import read_mode
from composeplat.compose.parse.swarm_templates import describe_template
from composeplat.compose.parse.unsupported_keys import FULL_MODE_ALONE, HARMLESS_OPTIONS
from composeplat.compose.parse.windows_paths import refuse_windows_path, refuse_windows_volume
from composeplat.compose.pod_model import FolderMode
from composeplat.compose.values import (
    clean_sub_path,
    clean_target,
    is_host_path,
    parse_mount,
    parse_path,
    parse_size,
)
from composeplat.diagnostics import quoted

_PATTERN = "services.*.volumes.*"
OMITTED_TYPES = ("image", "cluster", "npipe")
_TYPES = ("volume", "bind", "tmpfs", *OMITTED_TYPES)


def parse_mounts(service: Section) -> tuple[Mount, ...]:
    whole = service.get("volumes")
    mounts: list[Mount] = []
    for item in whole.items() if whole else ():
        mount = _read_short(item) if isinstance(item.node, Scalar) else _read_long(item)
        if mount is not None:
            name = str(service.whole.path[1])
            item.ctx.origins.put_alias(mount_path(name, len(mounts)), item.node, item.path)
            source = _placed_source(item.node, mount)
            if source is not None:
                item.ctx.origins.put_alias(mount_source_path(name, len(mounts)), source, item.path)
            target = item.node.get("target") if isinstance(item.node, Mapping) else item.node
            if target is not None:
                item.ctx.origins.put_alias(mount_target_path(name, len(mounts)), target, item.path)
            mounts.append(mount)
    return tuple(mounts)


def _placed_source(node: Node, mount: Mount) -> Node | None:
    """Return the source of a mount for messages; that of a host volume has its sub path too."""
    if not isinstance(node, Mapping):
        return node
    source, inner = node.get("source"), node.get("sub_path")
    if mount.kind != HOST or not isinstance(source, Scalar) or not isinstance(inner, Scalar) or not inner.text:
        return source
    is_substituted = source.is_substituted or inner.is_substituted
    return Scalar(source.span, mount.source, f"{source.written}/{inner.written}", is_substituted=is_substituted)


def _read_short(item: Field) -> Mount | None:
    if isinstance(item.node, Scalar) and (refuse_windows_volume(item, item.node.text) or _refuse_template(item)):
        return None
    text = item.value(parse_mount)
    if text is None:
        return None
    _report_options(item, text.unsupported)
    if not text.source:
        return Mount(kind=ANONYMOUS, target=text.target, read_only=text.read_only, no_copy=text.no_copy)
    if is_host_path(text.source):
        return Mount(kind=HOST, target=text.target, source=absolute(item, text.source), read_only=text.read_only)
    return Mount(kind=NAMED, target=text.target, source=text.source, read_only=text.read_only, no_copy=text.no_copy)


def _refuse_template(place: Field) -> bool:
    """Report a template of Swarm, which gives each pod a volume of its own; return whether there is one."""
    found = describe_template(place.node.text, is_mount=True) if isinstance(place.node, Scalar) else None
    if found:
        place.report("invalid-value", *found)
    return found is not None


def _report_options(item: Field, options: tuple[str, ...]) -> None:
    ignored = [option for option in options if option not in HARMLESS_OPTIONS]
    if ignored:
        # An option may be the value of a variable.
        written = item.node.shown if item.node.is_substituted else ", ".join(map(quoted, ignored))
        item.report("no-effect", f"has options that have no effect in a cluster: {written}")
    elif options:
        shown = ", ".join(map(quoted, options))
        item.report("redundant-key", f"has an option that has no effect here, and needs none: {shown}")


def _read_long(item: Field) -> Mount | None:
    section = item.section(_PATTERN)
    if section is None:
        return None
    kind_field = section.get("type")
    kind = kind_field.choice(*_TYPES) if kind_field else "volume"
    is_image = kind == "image" and item.ctx.full
    return parse_image_mount(item, section) if is_image else _read_volume(item, section, kind_field, kind)


def _read_volume(item: Field, section: Section, kind_field: Field | None, kind: str | None) -> Mount | None:
    if kind_field and kind in OMITTED_TYPES:
        fix = FULL_MODE_ALONE if kind == "image" else ""
        kind_field.report("no-effect", f"is '{kind}', which has no counterpart here: this volume is left out", fix)
        return None
    target = section.get("target")
    source = section.get("source")
    if target is None:
        section.report_missing("target", "the path inside the container")
    if kind == "bind" and source is None:
        item.report("missing-key", "must have a 'source', the path on this machine")
    if kind == "bind":
        section.section("bind", "services.*.volumes.*.bind")
    size, mode = _tmpfs_options(section) if kind == "tmpfs" else (None, None)
    sub_path, no_copy = _volume_options(section, kind)
    path = target.value(clean_target) if target else None
    if path is None or kind is None or (kind == "bind" and source is None):
        return None
    read_only = section.boolean("read_only", default=False)
    if kind == "tmpfs":
        return Mount(kind=MEMORY, target=path, read_only=read_only, size=size, folder=FolderMode(mode=mode))
    if any(place is not None and _refuse_template(place) for place in (source, target)):
        return None
    if kind == "bind" and source:
        path_here = source.value(parse_path)
        if path_here is None or refuse_windows_path(source, path_here):
            return None
        inside = os.path.normpath(os.path.join(absolute(source, path_here), sub_path))
        return Mount(kind=HOST, target=path, source=inside, read_only=read_only)
    text = source.text() if source else None
    return Mount(
        kind=NAMED if text else ANONYMOUS,
        target=path,
        source=text or "",
        read_only=read_only,
        sub_path=sub_path,
        no_copy=no_copy,
        labels=_labels(section, text or ""),
    )


def _labels(section: Section, volume: str) -> dict[str, str]:
    """Read the labels of an anonymous volume; a named one has its own."""
    inner = section.section("volume", "services.*.volumes.*.volume")
    found = inner.get("labels") if inner else None
    if inner is None or found is None:
        return {}
    if volume:
        message = "has no effect on a named volume, whose labels are those of the top level"
        found.report("no-effect", message, "write volumes: {NAME: {labels: …}}")
        return {}
    return parse_annotations(inner, "labels")


def _volume_options(section: Section, kind: str | None) -> tuple[str, bool]:
    """Return the path within the volume, and whether the image's content stays out of it."""
    inner = section.section("volume", "services.*.volumes.*.volume")
    compose = inner.optional("subpath", clean_sub_path) if inner else None
    own = section.optional("sub_path", clean_sub_path)
    if own and kind == "tmpfs":
        section.fields["sub_path"].report("no-effect", "has no effect: a volume in memory is new", "leave it out")
    if inner and compose and kind == "bind":
        inner.fields["subpath"].report("no-effect", "has no effect on a path of this machine", "write sub_path")
        compose = None
    return own or compose or "", bool(inner and inner.boolean("nocopy", default=False))


def _tmpfs_options(section: Section) -> tuple[int | None, int | None]:
    inner = section.section("tmpfs", "services.*.volumes.*.tmpfs")
    mode = inner.get("mode") if inner else None
    return (inner.optional("size", parse_size) if inner else None), (read_mode(mode) if mode else None)
