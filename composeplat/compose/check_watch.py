"""Rules for ``develop.watch``: whether a rule can do what its action says, by the rest of the service.

Owns these rules, and which rules of a service ``platform watch`` leaves out; full mode alone has some.
Must not read nodes or files, as :mod:`composeplat.compose.check`, from which it is apart for its size.
"""

from __future__ import annotations

from composeplat.compose.model import HOST, MEMORY, Service
from composeplat.compose.origins import Checker, watch_rule_path
from composeplat.compose.watch_model import WatchAction, WatchRule, is_below


def check_watch(checker: Checker, service: Service) -> None:
    for index, rule in enumerate(service.watch):
        reason, hint = find_obstacle(service, rule)
        if reason and not checker.is_unread(service.name, "build", "volumes"):
            checker.add("no-effect", watch_rule_path(service.name, index), f"has no effect: {reason}", hint)


def find_obstacle(service: Service, rule: WatchRule) -> tuple[str, str]:
    """Return why a rule can't have an effect, and what helps; empty if nothing is in its way."""
    if rule.action is WatchAction.REBUILD and service.build is None:
        return "the service has no 'build' section, so that nothing can be built", "use sync+restart, or add one"
    target = rule.target.rstrip("/")
    mount = next((found for found in mounted_targets(service) if is_below(target, found)), "") if target else ""
    if mount:
        return f"'{mount}' is a volume, which a sync does not change", "copy the files to another path"
    return "", ""


def mounted_targets(service: Service) -> list[str]:
    """Return the paths in the container that are not the image's own; a host volume of a built service is none."""
    mounts = [mount for mount in service.mounts if mount.kind != MEMORY]
    kept = [mount.target for mount in mounts if mount.kind != HOST or service.build is None]
    return [*kept, *(mount.target for mount in service.file_mounts)]
