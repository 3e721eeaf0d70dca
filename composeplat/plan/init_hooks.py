"""The init containers of ``pre_start``: each completes before the next, and all of them before the service."""

from __future__ import annotations

from dataclasses import replace

from composeplat.compose.model import Service, User
from composeplat.compose.options import Settings
from composeplat.compose.origins import Checker
from composeplat.compose.pod_model import InitHook
from composeplat.plan.arguments import plan_command
from composeplat.plan.desired import Manifest
from composeplat.plan.security import REFUSED, container_security

#: The fields of the service's container that its hooks have too.
_SHARED = ("envFrom", "resources", "volumeMounts")


def plan_init_hooks(service: Service, settings: Settings, container: Manifest) -> list[Manifest]:
    """Plan the containers of the hooks, by the container of the service."""
    shared = {name: container[name] for name in _SHARED if name in container}
    own: Manifest = {name: container[name] for name in ("image", "imagePullPolicy", "workingDir") if name in container}
    return [
        {
            "name": hook_name(index),
            **({"image": hook.image} if hook.image else own),
            **plan_command(None if hook.image else service.entrypoint, hook.command),
            **({"workingDir": hook.working_dir} if hook.working_dir else {}),
            **shared,
            **_variables(hook, container),
            **_security(service, settings, hook),
        }
        for index, hook in enumerate(service.container.pre_start)
        if not hook.in_job
    ]


def hook_name(index: int) -> str:
    """Name the container of a hook."""
    return f"pre-start-{index}"


def _variables(hook: InitHook, container: Manifest) -> Manifest:
    """Name the variables of a hook as it expects them; their values are in the service's Secret."""
    secrets = [source["secretRef"]["name"] for source in container.get("envFrom", ())]
    listed = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": secrets[0], "key": source}}}
        for name, source in hook.variables.items()
    ]
    return {"env": listed} if listed else {}


def _security(service: Service, settings: Settings, hook: InitHook) -> Manifest:
    security = container_security(_with_rights(service, hook), settings)
    return {"securityContext": security} if security else {}


def _with_rights(service: Service, hook: InitHook) -> Service:
    """Return the service with the rights of a hook; a hook with another image has that image's user."""
    own = User(uid=hook.uid, gid=hook.gid)
    user = own if own != User() else None if hook.image else service.user
    return replace(service, user=user, container=replace(service.container, privileged=hook.privileged))


def check_init_hooks(checker: Checker, service: Service, settings: Settings) -> None:
    """Report hooks that the level 'restricted' forbids."""
    for index, hook in enumerate(service.container.pre_start if settings.pod_security else ()):
        path = ("services", service.name, "pre_start", index)
        if hook.privileged:
            checker.add("pod-security-violation", path, f"is privileged, {REFUSED}", "leave it out")
        if hook.uid == 0:
            checker.add("pod-security-violation", path, f"is root, {REFUSED}", "give another user")
