"""What a service's pods may do to the machine and the cluster they run in.

Owns the security contexts of pods and containers, whose token of the cluster they get, and what of a definition
can't be in a namespace that the Pod Security level 'restricted' holds for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from composeplat.compose.model import Project, Service
from composeplat.compose.options import Settings
from composeplat.compose.origins import Checker, Origins
from composeplat.diagnostics import Report
from composeplat.plan.desired import Manifest

_REFUSED = "which a namespace with pod security 'restricted' refuses"
_ALLOWED_CAPABILITIES = ("NET_BIND_SERVICE",)


def plan_token(service: Service) -> Manifest:
    """The fields of a pod that say which ServiceAccount's token it gets: Compose knows none, so it is asked for."""
    if not service.service_account:
        return {"automountServiceAccountToken": False}
    return {"serviceAccountName": service.service_account, "automountServiceAccountToken": True}


def pod_security(service: Service, settings: Settings) -> Manifest:
    """The security context of a service's pods."""
    made: Manifest = {"runAsNonRoot": True} if settings.pod_security else {}
    made["seccompProfile"] = {"type": "RuntimeDefault"}
    group = _volume_group(service)
    if group is not None:
        made.update(fsGroup=group, fsGroupChangePolicy="OnRootMismatch")
    return made


def _volume_group(service: Service) -> int | None:
    """The group that volumes are given to: without it a user other than root can't write to a fresh one."""
    if service.user is None or not service.keeps_data or service.user.uid == 0:
        return None
    return service.user.gid or service.user.uid


def container_security(service: Service, settings: Settings) -> Manifest:
    """The security context of a service's container."""
    made: Manifest = {"allowPrivilegeEscalation": False} if settings.pod_security else {}
    if service.user is not None and service.user.uid is not None:
        made["runAsUser"] = service.user.uid
    if service.user is not None and service.user.gid is not None:
        made["runAsGroup"] = service.user.gid
    capabilities: Manifest = {}
    if service.cap_add:
        capabilities["add"] = list(service.cap_add)
    if service.cap_drop or settings.pod_security:
        capabilities["drop"] = ["ALL"] if settings.pod_security else list(service.cap_drop)
    if capabilities:
        made["capabilities"] = capabilities
    return made


# what a restricted namespace refuses ----------------------------------------------------------------------------------


def check_security(checker: Checker, service: Service, settings: Settings) -> None:
    """Say which service can't run in a namespace of the level 'restricted'."""
    if not settings.pod_security:
        return
    path = ("services", service.name)
    if service.user is not None and service.user.uid == 0:
        checker.add(
            "pod-security-violation", (*path, "user"), f"is root, {_REFUSED}", "give another user, as in '1000:1000'"
        )
    for name in service.cap_add:
        if name not in _ALLOWED_CAPABILITIES:
            message = f"adds {name}, {_REFUSED}: it admits {', '.join(_ALLOWED_CAPABILITIES)} alone"
            checker.add("pod-security-violation", (*path, "cap_add"), message, "leave it out")


def check_image_users(
    project: Project,
    settings: Settings,
    origins: Origins,
    report: Report,
    users_of: Callable[[Iterable[str]], Mapping[str, str]],
) -> None:
    """The same for services that leave the user to their image; ``users_of`` returns the known users of images."""
    if not settings.pod_security:
        return
    checker = Checker(project, origins, report)
    unsaid = [service for service in project.services.values() if service.user is None or service.user.uid is None]
    users = users_of({service.image for service in unsaid if service.image and service.build is None})
    for service in unsaid:
        user = None if service.build else users.get(service.image)
        if not checker.is_unread(service.name, "user", "image"):
            _check_image_user(checker, service, user)


def _check_image_user(checker: Checker, service: Service, user: str | None) -> None:
    path = ("services", service.name)
    name = (user or "").partition(":")[0]
    if user is None:
        message = "names no user, and that of its image is not known: its pods don't start if that is root"
        checker.add("unknown-user", path, message, "give the user's number with 'user'", at_key=True)
    elif name in ("", "0", "root"):
        hint = "give a user that the image works with, as in `user: '1000'`, or take an image that has one"
        checker.add("pod-security-violation", (*path, "image"), f"runs as root, {_REFUSED}", hint)
    elif not name.isdigit():
        message = f"runs as '{name}', and Kubernetes can't check that a user name is not root"
        checker.add("pod-security-violation", (*path, "image"), message, "give that user's number with `user`")
