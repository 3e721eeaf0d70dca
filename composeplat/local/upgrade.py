"""The version of Kubernetes that a cluster's data was last used with, and which versions may follow it.

Owns the rule: the same minor version or the next one, as Kubernetes itself upgrades; never an earlier one, as the API
server would not understand what is stored. Must not know where the programs come from.
"""

from __future__ import annotations

import re

from composeplat import progress
from composeplat.diagnostics import ComposeplatError
from composeplat.local.layout import Layout
from composeplat.system.atomic import write_private

_VERSION = re.compile(r"\d+\.\d+\.\d+")


def check_upgrade(layout: Layout, version: str) -> None:
    """Refuse a version that can't use the cluster's data, before anything starts; say if it is another one."""
    before = _last_version(layout)
    if not before or before == version:
        return
    steps = _minor(version) - _minor(before)
    if steps not in (0, 1):
        raise _refusal(before, version, steps)
    progress.note(f"Kubernetes {version} replaces {before}: volumes, images and objects of the cluster are kept")


def note_version(layout: Layout, version: str) -> None:
    write_private(layout.kubernetes_mark, f"{version}\n")


def _refusal(before: str, version: str, steps: int) -> ComposeplatError:
    problem = f"the data of the cluster is of Kubernetes {before}, which {version} can't use"
    if steps < 0:
        why, fix = "there is no way back to an earlier version", "use the version of composeplat that was used before"
    else:
        why = "an upgrade goes to the next minor version only"
        fix = f"start the cluster with a version of composeplat that has Kubernetes 1.{_minor(before) + 1} before"
    return ComposeplatError(f"{problem}: {why}", f"{fix}; or delete the data: platform cluster stop --delete-data")


def _last_version(layout: Layout) -> str:
    """The version of the last start; empty if there is no data, or it is from before this was noted."""
    if not (layout.folder / "etcd").exists() or not layout.kubernetes_mark.exists():
        return ""
    found = layout.kubernetes_mark.read_text(encoding="utf-8").strip()
    return found if _VERSION.fullmatch(found) else ""


def _minor(version: str) -> int:
    return int(version.split(".")[1])
