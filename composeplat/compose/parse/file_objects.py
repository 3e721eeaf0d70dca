"""Parse ``configs`` and ``secrets``, of the definition and of services; in full mode alone they have an effect."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from composeplat.compose.file_model import DEFAULT_FILE_MODE, FileKind, FileMount, FileObject
from composeplat.compose.nodes import Scalar
from composeplat.compose.origins import file_mount_path
from composeplat.compose.parse.annotations import parse_annotations
from composeplat.compose.parse.environment import absolute
from composeplat.compose.parse.external import parse_external
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.parse.modes import read_file_mode
from composeplat.compose.parse.windows_paths import refuse_windows_path
from composeplat.compose.placeholders import has_placeholder
from composeplat.compose.values import BadValue, clean_target, parse_int, parse_path
from composeplat.names import is_object_key

_CONTENT_KEYS = ("file", "content", "environment")


def parse_file_objects(project: Section, kind: FileKind) -> dict[str, FileObject]:
    whole = project.get(kind.section)
    found: dict[str, FileObject] = {}
    for name, place in whole.members() if whole else ():
        section = place.section(f"{kind.section}.*")
        read = _read_object(kind, name, section) if section is not None else None
        # An entry that can't be read is kept, so that its users are not reported as well.
        found[name] = read or FileObject(kind=kind, name=name)
    return found


def _read_object(kind: FileKind, name: str, section: Section) -> FileObject | None:
    external, object_name = parse_external(section, kind.section)
    given = [key for key in _CONTENT_KEYS if section.get(key)]
    common = FileObject(
        kind=kind,
        name=name,
        object_name=object_name,
        external=external,
        key=section.value("x-key", _parse_key, ""),
        labels=parse_annotations(section, "labels"),
    )
    if external or len(given) != 1:
        _check_source(section, given, external=external, kind=kind)
        return common if external else None
    return _with_source(common, section)


def _with_source(common: FileObject, section: Section) -> FileObject:
    file, content, variable = (section.get(key) for key in _CONTENT_KEYS)
    if file is not None:
        path = file.value(parse_path)
        is_path = path and not refuse_windows_path(file, path)
        return replace(common, file=absolute(file, path) if path and is_path else "")
    if content is not None:
        text = content.text()
        return replace(common, content=None if text is None else text.encode())
    name = variable.value(_parse_variable) if variable is not None else None
    if variable is None or not name:
        return common
    # A name that is the value of a variable is listed nowhere: it may be a secret in the wrong place.
    lookup = variable.variables.lookup if variable.node.is_substituted else variable.variable
    value = lookup(name)
    return replace(common, variable=name, content=None if value is None else value.encode())


def _check_source(section: Section, given: list[str], *, external: bool, kind: FileKind) -> None:
    keys = [key for key in _CONTENT_KEYS if key != "content" or kind is FileKind.CONFIG]
    listed = " or ".join(f"'{key}'" for key in keys)
    if external and given:
        section.fields[given[0]].report(
            "conflicting-keys", "is set for an external object, whose content is not ours", "remove one of them"
        )
    elif len(given) > 1:
        section.fields[given[1]].report("conflicting-keys", f"is set beside '{given[0]}'", "keep one of them")
    elif not external:
        hint = "or external: true for one that is in the namespace already"
        section.whole.report("missing-key", f"must have {listed}", hint)


def _parse_variable(text: str) -> str:
    if not text:
        raise BadValue("must be the name of a variable")
    return text


def _parse_key(text: str) -> str:
    if not is_object_key(text):
        raise BadValue("must be a key of an object: letters, digits, '-', '_' and '.'")
    return text


# files of services ----------------------------------------------------------------------------------------------------


def parse_file_mounts(service: Section) -> tuple[FileMount, ...]:
    """Parse the files of a service; of two at the same path, the later wins, as in Compose."""
    found: dict[str, tuple[FileMount, Field]] = {}
    for kind in FileKind:
        whole = service.get(kind.section)
        for item in whole.items() if whole else ():
            mount = _read_mount(item, kind)
            if mount is not None:
                found[mount.target] = (mount, item)
    name = str(service.whole.path[1])
    for index, (_, item) in enumerate(found.values()):
        item.ctx.origins.put_alias(file_mount_path(name, index), item.node, item.path)
    return tuple(mount for mount, _ in found.values())


def _read_mount(item: Field, kind: FileKind) -> FileMount | None:
    if isinstance(item.node, Scalar):
        source = item.text()
        target = item.value(partial(_parse_target, kind)) if source else None
        return FileMount(kind=kind, source=source, target=target) if source and target else None
    section = item.section(f"services.*.{kind.section}.*")
    if section is None:
        return None
    source = section.text("source")
    if not source:
        item.report("missing-key", f"must have a 'source', the name of a {kind}")
        return None
    target = section.value("target", partial(_parse_target, kind), f"{kind.folder}{source}")
    numbers = {key: section.value(key, parse_int, 0) for key in ("uid", "gid")}
    return FileMount(kind=kind, source=source, target=target, mode=_mode(section), **numbers)


def _parse_target(kind: FileKind, text: str) -> str:
    # Whether an output is an absolute path is not known.
    return clean_target(text if text.startswith("/") or has_placeholder(text) else f"{kind.folder}{text}")


def _mode(section: Section) -> int:
    found = section.get("mode")
    mode = read_file_mode(found) if found else None
    return DEFAULT_FILE_MODE if mode is None else mode
