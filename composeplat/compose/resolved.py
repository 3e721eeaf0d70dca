"""The resolved definition, as ``platform config`` prints it.

Owns how a loaded definition is written as Compose: with files merged, variables substituted, env files in
``environment``, and paths relative to the project's folder.
Reading the output results in the same project; dollar signs are doubled for that.
Must not decide anything about Kubernetes.
"""

from __future__ import annotations

import os.path
from typing import Any

from composeplat.compose.load import Loaded
from composeplat.compose.model import HOST, Build, Service
from composeplat.compose.nodes import Node, to_plain
from composeplat.compose.parse.mounts import OMITTED_TYPES
from composeplat.compose.variables import VariableReferences


def plain_definition(document: Node) -> Any:
    """Return the definition with files merged and nothing substituted."""
    return to_plain(document)


def resolved_definition(loaded: Loaded) -> dict[str, Any]:
    definition = _escaped(to_plain(loaded.document))
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


def _escaped(value: Any) -> Any:
    match value:
        case str():
            return value.replace("$", "$$")
        case dict():
            return {key: _escaped(item) for key, item in value.items()}
        case list():
            return [_escaped(item) for item in value]
        case _:
            return value


def _service(written: dict[str, Any], service: Service, folder: os.PathLike[str]) -> dict[str, Any]:
    made = {key: value for key, value in written.items() if key != "env_file"}
    if service.label_files.paths:
        del made["label_file"]
        made["labels"] = {name: value.replace("$", "$$") for name, value in _own_labels(service).items()}
    if service.variables or "environment" in written:
        made["environment"] = {name: value.replace("$", "$$") for name, value in service.variables.items()}
    if service.build is not None:
        made["build"] = _build(written["build"], service.build, folder)
    kept = [value for value in written.get("volumes") or () if not _is_omitted(value)]
    if kept:
        # Other keys, such as tmpfs, have their mounts after these.
        made["volumes"] = [
            _mount(value, mount.source, folder) if mount.kind == HOST else value
            for value, mount in zip(kept, service.mounts, strict=False)
        ]
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
    return made


def _is_omitted(written: Any) -> bool:
    return isinstance(written, dict) and written.get("type") in OMITTED_TYPES


def _mount(written: Any, source: str, folder: os.PathLike[str]) -> Any:
    path = _relative(source, folder)
    if isinstance(written, dict):
        return {**written, "source": path}
    _, colon, rest = str(written).partition(":")
    return f"{path}{colon}{rest}"


def _relative(path: str, folder: os.PathLike[str]) -> str:
    if not path.startswith("/"):
        return path.replace("$", "$$")
    relative = os.path.relpath(path, folder)
    shown = path if relative.startswith("..") else f"./{relative}" if relative != "." else "."
    return shown.replace("$", "$$")


def variable_rows(uses: VariableReferences) -> list[dict[str, str | bool | None]]:
    """Return a row for each variable of the definition: its value, and the layer of the value."""
    rows: list[dict[str, str | bool | None]] = []
    for use in uses:
        layer, value = use.layer, use.value
        if layer is None and use.default is not None:
            layer, value = "default", use.default
        rows.append({"name": use.name, "value": value, "from": layer or "unset", "required": use.required})
    return rows
