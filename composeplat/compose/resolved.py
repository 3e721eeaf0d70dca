"""The resolved definition, as ``platform config`` prints it.

Owns how a loaded definition is written as Compose: with files merged, variables substituted, env files in
``environment``, and paths relative to the project's folder.
Reading the output results in the same project; dollar signs are doubled for that.
Must not decide anything about Kubernetes.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from composeplat.compose.load import Loaded
from composeplat.compose.load.profiles import limited_to
from composeplat.compose.model import Build, Service
from composeplat.compose.nodes import Mapping, Node, Scalar, Sequence, find_node, to_plain
from composeplat.compose.parse.build import with_cache_folders
from composeplat.compose.parse.environment import absolute
from composeplat.compose.parse.fields import Context, Field
from composeplat.compose.parse.modes import mode_of
from composeplat.compose.parse.mounts import OMITTED_TYPES
from composeplat.compose.values import BadValue, is_host_path
from composeplat.compose.variables import VariableReferences
from composeplat.diagnostics import PathKey, Report

_SECTIONS = ("services", "jobs")


def plain_definition(document: Node) -> Any:
    """Return the definition with files merged and nothing substituted."""
    return to_plain(document)


def limited_definition(loaded: Loaded, names: Collection[str]) -> dict[str, Any]:
    """Return the definition with some of its services, and without the entries that only the others use."""
    document = loaded.document
    return resolved_definition(
        replace(loaded, document=limited_to(document, names)) if isinstance(document, Mapping) else loaded
    )


def resolved_definition(loaded: Loaded) -> dict[str, Any]:
    definition = _written(loaded.document, (), loaded)
    resolved: dict[str, Any] = {"name": loaded.settings.environment}
    resolved.update({key: value for key, value in definition.items() if key not in ("name", "version")})
    # By default, jobs are not read.
    for section in ("services", "jobs") if loaded.settings.full else ("services",):
        found = resolved.get(section)
        if found or section == "services":
            resolved[section] = {
                name: _service(value, own, loaded.folder) if (own := loaded.project.services.get(name)) else value
                for name, value in (found or {}).items()
            }
    return resolved


def _written(node: Node, path: PathKey, loaded: Loaded) -> Any:
    """Return a part of the definition as plain values, with paths relative to the project's folder."""
    match node:
        case Scalar() if (source := _path_in(node, path)) is not None:
            return f"{_relative_at(node, source, loaded)}{_escaped(node.text[len(source) :])}"
        case Scalar():
            mode = _mode_at(node, path)
            return _escaped(node.to_plain()) if mode is None else mode
        case Mapping() if _is_volume(path):
            return _long_volume(node, path, loaded)
        case Mapping():
            return {
                name: _written(value, (*path, name), loaded)
                for name, (_, value) in node.entries.items()
                if not (_is_dependencies(path) and _is_left_out(name, loaded))
            }
        case Sequence():
            kept = [item for item in node if not _is_omitted(item, path, loaded)]
            return [_written(item, (*path, index), loaded) for index, item in enumerate(kept)]


def _escaped(value: Any) -> Any:
    return value.replace("$", "$$") if isinstance(value, str) else value


def _is_volume(path: PathKey) -> bool:
    """Whether a part of the definition is a volume of a service or job."""
    return len(path) == len(("services", "NAME", "volumes", 0)) and path[0] in _SECTIONS and path[2] == "volumes"


def _path_in(node: Scalar, path: PathKey) -> str | None:
    """Return the path of this machine that a text is, or begins with."""
    if _is_path(path):
        return node.text or None
    source, colon, _ = node.text.partition(":")
    return source if _is_volume(path) and colon and is_host_path(source) else None


def _is_path(path: PathKey) -> bool:
    """Whether a part of the definition is a path whose key needs no other form in the output."""
    match path:
        case ("secrets" | "configs", _, "file"):
            return True
        case (section, _, "develop", "watch", _, "path"):
            return section in _SECTIONS
        case _:
            return False


def _mode_at(node: Scalar, path: PathKey) -> str | int | None:
    """Return the mode of a file as octal text, and that of a volume in memory as a number, as Compose takes them."""
    match path:
        case (section, _, "configs" | "secrets", _, "mode") | (section, _, "build", "secrets", _, "mode"):
            form: Callable[[int], str | int] = "0{:o}".format
        case (section, _, "volumes", _, "tmpfs", "mode"):
            form = int
        case _:
            return None
    try:
        return form(mode_of(node, node.text)) if section in _SECTIONS else None
    except BadValue:
        return None


def _long_volume(node: Mapping, path: PathKey, loaded: Loaded) -> dict[str, Any]:
    made = {name: _written(value, (*path, name), loaded) for name, (_, value) in node.entries.items()}
    source = node.get("source")
    if made.get("type") == "bind" and isinstance(source, Scalar):
        made["source"] = _relative_at(source, source.text, loaded)
    return made


def _is_dependencies(path: PathKey) -> bool:
    """Whether a part of the definition is a service's ``depends_on``."""
    return len(path) == len(("services", "NAME", "depends_on")) and path[0] in _SECTIONS and path[2] == "depends_on"


def _is_left_out(name: str, loaded: Loaded) -> bool:
    """Whether the output does not have a service: its profile is off, or it was not chosen."""
    return all(find_node(loaded.document, section, name) is None for section in _SECTIONS)


def _is_omitted(item: Node, path: PathKey, loaded: Loaded) -> bool:
    """Whether the item of a list is a volume that the model leaves out, or refers to a service that is left out."""
    if _is_dependencies(path):
        return isinstance(item, Scalar) and _is_left_out(item.text, loaded)
    if path[:1] == ("endpoints",):
        return _is_left_out(_text_of(item, "service"), loaded)
    kind = _text_of(item, "type") if _is_volume((*path, 0)) else ""
    return kind in OMITTED_TYPES and not (loaded.settings.full and kind == "image")


def _text_of(node: Node, key: str) -> str:
    value = node.get(key) if isinstance(node, Mapping) else None
    return value.text if isinstance(value, Scalar) else ""


def _relative_at(node: Scalar, text: str, loaded: Loaded) -> str:
    """Return a path that is relative to the folder of its file, relative to the project's folder."""
    ctx = Context(Report(), home=loaded.variables.lookup("HOME") or "")
    return _relative(absolute(Field(ctx, node, ()), text), loaded.folder)


def _service(written: dict[str, Any], service: Service, folder: os.PathLike[str]) -> dict[str, Any]:
    made = {key: value for key, value in written.items() if key != "env_file"}
    if service.label_files.paths:
        del made["label_file"]
        made["labels"] = {name: value.replace("$", "$$") for name, value in _own_labels(service).items()}
    # The variables of hooks are among those of the model under other names.
    own = {name: text for name, text in service.variables.items() if name not in service.container.hook_environment}
    if own or "environment" in written:
        made["environment"] = {name: value.replace("$", "$$") for name, value in own.items()}
    if service.build is not None:
        made["build"] = _build(written["build"], service.build, folder)
    return made


def _own_labels(service: Service) -> dict[str, str]:
    """Return the labels of the service and its files, without those of ``deploy`` alone."""
    return {name: value for name, value in service.labels.items() if name in service.label_files.names}


def _build(written: Any, build: Build, folder: os.PathLike[str]) -> Any:
    context = _relative(build.context, folder)
    if not isinstance(written, dict):
        return context
    made = {**written, "context": context}
    if build.args:
        made["args"] = {name: value.replace("$", "$$") for name, value in build.args.items()}
    if build.additional_contexts:
        made["additional_contexts"] = {
            name: _relative(path, folder) for name, path in build.additional_contexts.items()
        }
    for key, caches in (("cache_from", build.cache_from), ("cache_to", build.cache_to)):
        if caches:
            made[key] = [_cache(text, folder) for text in caches]
    if build.ssh:
        made["ssh"] = [_ssh(text, folder) for text in build.ssh]
    return made


def _ssh(text: str, folder: os.PathLike[str]) -> str:
    """Return an agent or keys of a build with their paths relative."""
    name, equals, paths = text.partition("=")
    return f"{name}{equals}{','.join(_relative(path, folder) for path in paths.split(','))}" if paths else text


def _cache(text: str, folder: os.PathLike[str]) -> str:
    """Return a cache of a build with its folders relative."""
    return str(_escaped(with_cache_folders(text, lambda path: _unescaped(path, folder))))


def _relative(path: str, folder: os.PathLike[str]) -> str:
    return str(_escaped(_unescaped(path, folder)))


def _unescaped(path: str, folder: os.PathLike[str]) -> str:
    if not path.startswith("/"):
        return path
    relative = os.path.relpath(path, folder)
    return path if relative.startswith("..") else f"./{relative}" if relative != "." else "."


def variable_rows(uses: VariableReferences) -> list[dict[str, str | bool | None]]:
    """Return a row for each variable of the definition: its value, and the layer of the value."""
    rows: list[dict[str, str | bool | None]] = []
    for use in uses:
        layer, value = use.layer, use.value
        if layer is None and use.default is not None:
            layer, value = "default", use.default
        rows.append({"name": use.name, "value": value, "from": layer or "unset", "required": use.required})
    return rows
