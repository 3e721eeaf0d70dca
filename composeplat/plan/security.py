"""The rights of pods on their node and in the cluster.

Owns the security contexts of pods and containers, their ServiceAccount, and the checks for namespaces with the Pod
Security level 'restricted'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from composeplat.compose.model import Project, Service
from composeplat.compose.network_model import HOST_NETWORK
from composeplat.compose.options import Settings
from composeplat.compose.origins import Checker, Origins
from composeplat.compose.pod_model import DEFAULT_PROFILE, SAFE_SYSCTLS, UNCONFINED, ContainerOptions, SecurityOptions
from composeplat.diagnostics import Report
from composeplat.plan.desired import Manifest
from composeplat.plan.image_users import check_user_names

REFUSED = "which a namespace with pod security 'restricted' refuses"
#: A user and group that no image has, where the number does not matter.
NOBODY = 65532
_ALLOWED_CAPABILITIES = ("NET_BIND_SERVICE",)
_ALLOWED_TYPES = ("container_t", "container_init_t", "container_kvm_t", "container_engine_t")
#: The parameters of each namespace that a pod can share with its node.
_NODE_SYSCTLS: Mapping[str, tuple[str, ...]] = {"network_mode": ("net.",), "ipc": ("kernel.", "fs.mqueue.")}
_PROFILES = {UNCONFINED: "Unconfined", DEFAULT_PROFILE: "RuntimeDefault"}


def plan_token(service: Service) -> Manifest:
    """Plan the ServiceAccount of a pod; unless the definition names one, the pod gets no token."""
    if not service.service_account:
        return {"automountServiceAccountToken": False}
    return {"serviceAccountName": service.service_account, "automountServiceAccountToken": True}


def pod_security(service: Service, settings: Settings) -> Manifest:
    """Plan the security context of a service's pods."""
    context: Manifest = {"runAsNonRoot": True} if settings.pod_security else {}
    context["seccompProfile"] = {"type": "RuntimeDefault"}
    context.update(_pod_options(service.container))
    if settings.pod_security and service.keeps_data:
        context.update(fsGroup=_volume_group(service), fsGroupChangePolicy="OnRootMismatch")
    if service.file_group is not None:
        context["fsGroup"] = service.file_group
    return context


def _pod_options(options: ContainerOptions) -> Manifest:
    context: Manifest = {}
    if options.groups:
        context["supplementalGroups"] = list(options.groups)
    if options.sysctls:
        context["sysctls"] = [{"name": name, "value": value} for name, value in sorted(options.sysctls.items())]
    return context


def _volume_group(service: Service) -> int:
    """Return the group that owns volumes where no container may be root; the pod's user is in it, whatever it is.

    Elsewhere there is no such group: with each start Kubernetes would open a folder to it that the program has closed,
    and PostgreSQL refuses such a folder.
    """
    user = service.user
    return (user.gid or user.uid or NOBODY) if user is not None else NOBODY


def container_security(service: Service, settings: Settings) -> Manifest:
    """Plan the security context of a service's container."""
    context: Manifest = {"allowPrivilegeEscalation": False} if settings.pod_security else {}
    if service.user is not None and service.user.uid is not None:
        context["runAsUser"] = service.user.uid
    if service.user is not None and service.user.gid is not None:
        context["runAsGroup"] = service.user.gid
    if service.container.privileged:
        context["privileged"] = True
    if service.container.read_only:
        context["readOnlyRootFilesystem"] = True
    context.update(_security_options(service.container.security))
    capabilities: Manifest = {}
    if service.cap_add:
        capabilities["add"] = list(service.cap_add)
    dropped = ["ALL"] if settings.pod_security else _dropped(service)
    if dropped:
        capabilities["drop"] = dropped
    if capabilities:
        context["capabilities"] = capabilities
    return context


def _dropped(service: Service) -> list[str]:
    """Return the capabilities to drop: of those that are added too, containerd drops each, and Docker adds it.

    Where all are added, Docker drops those that are named.
    """
    added = ("ALL",) if "ALL" in service.cap_add else service.cap_add
    return [name for name in service.cap_drop if name not in added]


def _security_options(options: SecurityOptions) -> Manifest:
    context: Manifest = {}
    if options.no_new_privileges:
        context["allowPrivilegeEscalation"] = False
    if options.seccomp:
        context["seccompProfile"] = {"type": _PROFILES[options.seccomp]}
    if options.apparmor in _PROFILES:
        context["appArmorProfile"] = {"type": _PROFILES[options.apparmor]}
    elif options.apparmor:
        context["appArmorProfile"] = {"type": "Localhost", "localhostProfile": options.apparmor}
    if options.label:
        context["seLinuxOptions"] = dict(sorted(options.label.items()))
    return context


# checks ---------------------------------------------------------------------------------------------------------------


def check_security(checker: Checker, service: Service, settings: Settings) -> None:
    """Report settings that exclude each other, and those that the level 'restricted' forbids."""
    check_user_names(checker, service)
    _check_privileges(checker, service)
    _check_host_namespaces(checker, service)
    if not settings.pod_security:
        return
    _check_options(checker, service)
    path = ("services", service.name)
    if service.user is not None and service.user.uid == 0:
        checker.add(
            "pod-security-violation", (*path, "user"), f"is root, {REFUSED}", "give another user, as in '1000:1000'"
        )
    if service.networking.mode == HOST_NETWORK:
        checker.add("pod-security-violation", (*path, "network_mode"), f"is 'host', {REFUSED}", "leave it out")
    for name in sorted(service.container.host_namespaces):
        checker.add("pod-security-violation", (*path, name), f"is 'host', {REFUSED}", "leave it out")
    if service.container.privileged:
        checker.add("pod-security-violation", (*path, "privileged"), f"is true, {REFUSED}", "leave it out")
    for name in service.cap_add:
        if name not in _ALLOWED_CAPABILITIES:
            message = f"adds {name}, {REFUSED}: it allows only {', '.join(_ALLOWED_CAPABILITIES)}"
            checker.add("pod-security-violation", (*path, "cap_add"), message, "leave it out")


def _check_privileges(checker: Checker, service: Service) -> None:
    """Report what the API server refuses beside no-new-privileges."""
    path = ("services", service.name)
    if not service.container.security.no_new_privileges:
        return
    if service.container.privileged:
        message = "has no-new-privileges, which excludes 'privileged'"
        checker.add("conflicting-keys", (*path, "security_opt"), message, "keep one of them")
    for index, hook in enumerate(service.container.pre_start):
        if hook.privileged:
            message = "is privileged, which no-new-privileges in security_opt excludes"
            checker.add("conflicting-keys", (*path, "pre_start", index), message, "keep one of them")


def _check_host_namespaces(checker: Checker, service: Service) -> None:
    """Report settings that the API server refuses in a pod that shares a namespace of its node."""
    options, path = service.container, ("services", service.name)
    shared: list[str] = sorted(options.host_namespaces)
    if service.networking.mode == HOST_NETWORK:
        shared.append("network_mode")
    if shared and options.host_users is False:
        message = f"gives the pod users of its own, which excludes {shared[-1]}: host"
        checker.add("conflicting-keys", (*path, "userns_mode"), message, "keep one of them")
    for key in shared:
        if any(name.startswith(_NODE_SYSCTLS.get(key, ())) for name in options.sysctls):
            message = f"has parameters that are the node's with {key}: host"
            checker.add("conflicting-keys", (*path, "sysctls"), message, f"set them on the nodes, or leave {key} out")


def _check_options(checker: Checker, service: Service) -> None:
    """Report options of the security keys that the level 'restricted' forbids."""
    options, path = service.container.security, ("services", service.name)
    forbidden = [f"{name}=unconfined" for name in ("seccomp", "apparmor") if getattr(options, name) == UNCONFINED]
    kind = options.label.get("type", _ALLOWED_TYPES[0])
    forbidden += [f"label={name}:…" for name in ("user", "role") if name in options.label]
    forbidden += [f"label=type:{kind}"] if kind not in _ALLOWED_TYPES else []
    for option in forbidden:
        checker.add("pod-security-violation", (*path, "security_opt"), f"has {option}, {REFUSED}", "leave it out")
    for name in service.container.sysctls:
        if name not in SAFE_SYSCTLS:
            message = f"sets {name}, {REFUSED}"
            checker.add("pod-security-violation", (*path, "sysctls"), message, "leave it out")


def check_image_users(
    project: Project,
    settings: Settings,
    origins: Origins,
    report: Report,
    users_of: Callable[[Iterable[str]], Mapping[str, str]],
) -> None:
    """Check services whose image decides the user; ``users_of`` returns the known users of images."""
    if not settings.pod_security:
        return
    checker = Checker(project, origins, report)
    without_user = [
        service
        for service in project.services.values()
        if not service.awaits_users and (service.user is None or service.user.uid is None)
    ]
    users = users_of({service.image for service in without_user if service.is_pulled})
    for service in without_user:
        user = users.get(service.image) if service.is_pulled else None
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
        checker.add("pod-security-violation", (*path, "image"), f"runs as root, {REFUSED}", hint)
    elif not name.isdigit():
        message = f"runs as '{name}', and Kubernetes can't check that a user name is not root"
        checker.add("pod-security-violation", (*path, "image"), message, "give that user's number with `user`")
