"""What a service's pods may do to the machine and the cluster they run in.

Owns the security contexts of pods and containers, and whose token of the cluster they get.
"""

from __future__ import annotations

from composeplat.model import Service
from composeplat.plan.desired import Manifest


def token_of(service: Service) -> Manifest:
    """The fields of a pod that say which ServiceAccount's token it gets: Compose knows none, so it is asked for."""
    if not service.service_account:
        return {"automountServiceAccountToken": False}
    return {"serviceAccountName": service.service_account, "automountServiceAccountToken": True}


def pod_security(service: Service) -> Manifest:
    """The security context of a service's pods."""
    made: Manifest = {"seccompProfile": {"type": "RuntimeDefault"}}
    group = _volume_group(service)
    if group is not None:
        made.update(fsGroup=group, fsGroupChangePolicy="OnRootMismatch")
    return made


def _volume_group(service: Service) -> int | None:
    """The group that volumes are given to: without it a user other than root can't write to a fresh one."""
    if service.user is None or not service.keeps_data or service.user.uid == 0:
        return None
    return service.user.gid or service.user.uid


def container_security(service: Service) -> Manifest:
    """The security context of a service's container."""
    made: Manifest = {}
    if service.user is not None and service.user.uid is not None:
        made["runAsUser"] = service.user.uid
    if service.user is not None and service.user.gid is not None:
        made["runAsGroup"] = service.user.gid
    capabilities: Manifest = {}
    if service.cap_add:
        capabilities["add"] = list(service.cap_add)
    if service.cap_drop:
        capabilities["drop"] = list(service.cap_drop)
    if capabilities:
        made["capabilities"] = capabilities
    return made
