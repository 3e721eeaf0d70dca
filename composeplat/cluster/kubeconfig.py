"""Read the current context's namespace from the kubeconfig, as kubectl does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from composeplat import files
from composeplat.diagnostics import Report, Source
from composeplat.source import StopReading, decode, read_nodes, to_plain


def context_namespace(environment: Mapping[str, str]) -> str:
    """Give the namespace of the current context; empty where there is no kubeconfig, context or namespace."""
    contexts: dict[str, str] = {}
    current = ""
    for path in _paths(environment):
        config = _read(path)
        current = current or str(config.get("current-context") or "")
        contexts_written = config.get("contexts")
        for entry in contexts_written if isinstance(contexts_written, list) else ():
            if isinstance(entry, dict) and isinstance(entry.get("context"), dict):
                contexts.setdefault(str(entry.get("name")), str(entry["context"].get("namespace") or ""))
    return contexts.get(current, "")


def _paths(environment: Mapping[str, str]) -> list[Path]:
    named = environment.get("KUBECONFIG", "")
    if named:
        return [Path(part) for part in named.split(os.pathsep) if part]
    home = environment.get("HOME", "")
    return [Path(home) / ".kube" / "config"] if home else []


def _read(path: Path) -> dict[str, Any]:
    try:
        content = files.read_bytes(path, limit=files.MAX_DEFINITION)
        source = decode(content, lambda text: Source(str(path), path.parent, text), Report())
        nodes = read_nodes(source, Report())
    except (files.Unreadable, StopReading):
        return {}
    config = to_plain(nodes[0]) if nodes else None
    return config if isinstance(config, dict) else {}
