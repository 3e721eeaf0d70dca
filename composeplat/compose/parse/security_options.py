"""Parse the keys of a service that change the rights of its program: ``security_opt``, ``sysctls``, ``group_add``.

They have an effect in full mode alone.
"""

from __future__ import annotations

import re

from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.pod_model import DEFAULT_PROFILE, SAFE_SYSCTLS, UNCONFINED, SecurityOptions
from composeplat.compose.values import BadValue, parse_bool, parse_int, parse_known

_OF_POD = r"(?:kernel\.(?:sem|msg[a-z0-9_]*|shm[a-z0-9_]*)|fs\.mqueue\.[a-z0-9_]+|net\.[A-Za-z0-9_.-]+)\Z"
_LABEL_FIELDS = ("user", "role", "type", "level")
#: The type of SELinux that confines nothing.
_UNCONFINED_TYPE = "spc_t"
_MAX_NAME_CHARS = 253


def parse_groups(section: Section) -> tuple[tuple[int, ...], dict[int, str]]:
    """Read the numbers of groups, and by their position the names, whose numbers the image has."""
    found = section.get("group_add")
    groups = [_group(item) for item in found.items()] if found else []
    names = {position: group for position, group in enumerate(groups) if isinstance(group, str)}
    return tuple(dict.fromkeys(group for group in groups if isinstance(group, int))), names


def _group(item: Field) -> int | str | None:
    text = item.value(parse_known)
    if text == "root":
        return 0
    return item.value(parse_int) if text and re.fullmatch(r"[+-]?[0-9]+", text) else text


def parse_sysctls(section: Section) -> dict[str, str]:
    found = section.get("sysctls")
    kept: dict[str, str] = {}
    for name, place, value in found.pairs() if found else ():
        if not re.match(_OF_POD, name) or len(name) > _MAX_NAME_CHARS:
            message = "must be a sysctl of a container's own: net.*, fs.mqueue.*, kernel.sem, kernel.msg*, kernel.shm*"
            place.report("invalid-value", message, "the others are the node's: set them there")
        elif not value:
            place.report("invalid-value", "must have a value")
        else:
            kept[name] = value
            if name not in SAFE_SYSCTLS:
                message = f"starts only where the kubelet allows it: --allowed-unsafe-sysctls={name}"
                place.report(
                    "needs-cluster-setting",
                    message,
                    "the local cluster does; elsewhere, set it on the nodes or leave it out",
                )
    return kept


# security_opt ---------------------------------------------------------------------------------------------------------


def parse_security(section: Section) -> SecurityOptions:
    found = section.get("security_opt")
    fields: dict[str, bool | str] = {}
    label: dict[str, str] = {}
    for item in found.items() if found else ():
        text = item.text()
        if text is None:
            continue
        name, value = _split(text)
        if name == "label":
            label.update(_label(item, value))
        else:
            fields.update(_option(item, name, value))
    return SecurityOptions(
        no_new_privileges=bool(fields.get("no-new-privileges")),
        seccomp=str(fields.get("seccomp", "")),
        apparmor=str(fields.get("apparmor", "")),
        label=label,
    )


def _split(text: str) -> tuple[str, str]:
    """Split ``name=value``, or ``name:value`` as older files have it."""
    name, _, value = text.partition("=" if "=" in text else ":")
    return name, value


def _option(item: Field, name: str, value: str) -> dict[str, bool | str]:
    match name, value:
        case "no-new-privileges", _:
            return _no_new_privileges(item, value)
        case "seccomp" | "apparmor", "unconfined":
            return {name: UNCONFINED}
        case ("seccomp", "builtin") | ("apparmor", "docker-default" | "runtime/default"):
            return {name: DEFAULT_PROFILE}
        case "apparmor", str(profile) if profile:
            return {name: profile}
        case "seccomp", str(profile) if profile:
            message = "names a profile of this machine, which no node has; the profile of the node's runtime is used"
            item.report("no-effect", message, "leave it out, or write seccomp=unconfined")
        case "systempaths" | "writable-cgroups" | "credentialspec", _:
            item.report("no-effect", f"has no counterpart in Kubernetes: {name}")
        case _:
            item.value(_refuse_option)
    return {}


def _refuse_option(_text: str) -> None:
    raise BadValue("must be no-new-privileges, seccomp=…, apparmor=… or label=…")


def _no_new_privileges(item: Field, value: str) -> dict[str, bool | str]:
    is_on = item.value(lambda _: not value or parse_bool(value))
    return {} if is_on is None else {"no-new-privileges": is_on}


def _label(item: Field, value: str) -> dict[str, str]:
    if value == "disable":
        return {"type": _UNCONFINED_TYPE}
    name, _, text = value.partition(":")
    if name in _LABEL_FIELDS and text:
        return {name: text}
    item.value(_refuse_label)
    return {}


def _refuse_label(_text: str) -> None:
    raise BadValue("must be label=disable, or label=user:…, label=role:…, label=type:… or label=level:…")
