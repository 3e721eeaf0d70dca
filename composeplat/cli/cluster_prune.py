"""``platform cluster prune``: list what is not used, ask, and delete it."""

from __future__ import annotations

import os

from composeplat import progress
from composeplat.cli.console import table, write_output
from composeplat.cli.questions import confirm
from composeplat.diagnostics import ComposeplatError, printable
from composeplat.local.cluster_kind import local_cluster
from composeplat.local.prune import Scope, delete_leftovers, find_leftovers
from composeplat.progress import format_bytes


def run(*, all_images: bool, volumes: bool, yes: bool) -> None:
    cluster = local_cluster(os.environ)
    scope = Scope(all_images=all_images, volumes=volumes)
    found = find_leftovers(cluster, scope)
    if not found:
        progress.conclude("there is nothing to delete")
        return
    rows = [(leftover.kind, printable(leftover.name), format_bytes(leftover.size)) for leftover in found]
    write_output(table([("KIND", "NAME", "SIZE"), *rows]))
    if not yes:
        _confirm(sum(leftover.size for leftover in found))
    with progress.step("deleting"):
        freed = delete_leftovers(cluster, scope, found)
    progress.conclude(f"freed {format_bytes(freed)}")


def _confirm(size: int) -> None:
    no_terminal = ComposeplatError("nothing was deleted: there is no terminal to confirm that on", "give --yes too")
    confirm(f"Delete this, {format_bytes(size)}?", no_terminal, refused="nothing was deleted")
