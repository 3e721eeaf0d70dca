"""Parse the keys of a container that have an effect in full mode alone."""

from __future__ import annotations

import re

from composeplat.compose.full_keys import FULL_KEYS, SERVICE
from composeplat.compose.parse.fields import Section
from composeplat.compose.parse.hooks import parse_hooks, parse_signal
from composeplat.compose.parse.name_options import parse_name_options
from composeplat.compose.parse.node_attributes import architecture_name
from composeplat.compose.parse.process_limits import parse_process_limits
from composeplat.compose.parse.pull_policy import parse_pull_period, parse_pull_policy
from composeplat.compose.parse.security_options import parse_groups, parse_security, parse_sysctls
from composeplat.compose.parse.shared_pods import parse_host_namespaces
from composeplat.compose.pod_model import ContainerOptions, Platform
from composeplat.compose.values import BadValue, parse_size
from composeplat.names import is_dns_name

_SYSTEMS = ("linux", "windows")
#: What Docker calls the runtime that clusters have without a name.
_DEFAULT_RUNTIMES = ("runc", "io.containerd.runc.v2")

_KEYS = frozenset(FULL_KEYS[SERVICE].split())
_WITHOUT_KEYS = ContainerOptions()


def parse_container_options(section: Section) -> ContainerOptions:
    if _KEYS.isdisjoint(section.fields):
        # As most services, of which a file may have a thousand.
        return _WITHOUT_KEYS
    hooks = parse_hooks(section)
    groups, group_names = parse_groups(section)
    stop_signal = section.given("stop_signal")
    return ContainerOptions(
        privileged=section.boolean("privileged", default=False),
        read_only=section.boolean("read_only", default=False),
        stdin_open=section.boolean("stdin_open", default=False),
        tty=section.boolean("tty", default=False),
        groups=groups,
        group_names=group_names,
        sysctls=parse_sysctls(section),
        security=parse_security(section),
        host_users=_host_users(section),
        runtime=_runtime(section),
        platform=section.value("platform", _parse_platform, Platform()),
        names=parse_name_options(section),
        storage_limit=_storage_limit(section),
        pull=parse_pull_policy(section),
        pull_period_s=parse_pull_period(section),
        pre_start=hooks.pre_start,
        post_start=hooks.post_start,
        pre_stop=hooks.pre_stop,
        hook_environment=hooks.environment,
        stop_signal=(stop_signal.value(parse_signal) if stop_signal else None) or "",
        limits=parse_process_limits(section),
        init=section.boolean("init", default=False),
        host_namespaces=parse_host_namespaces(section),
    )


def _storage_limit(section: Section) -> int | None:
    """Read ``storage_opt.size``; the other options are those of Docker's storage drivers."""
    found = section.get("storage_opt")
    limit: int | None = None
    for name, place in found.members() if found else ():
        if name == "size":
            limit = place.value(parse_size) or None
        else:
            place.report("no-effect", "has no effect: it is an option of Docker's storage driver")
    return limit


def _host_users(section: Section) -> bool | None:
    found = section.given("userns_mode")
    mode = found.choice("host", "private", "auto") if found else None
    return None if mode is None else mode == "host"


def _runtime(section: Section) -> str:
    name = section.value("runtime", _parse_runtime, "")
    return "" if name in _DEFAULT_RUNTIMES else name


def _parse_runtime(text: str) -> str:
    if text and not is_dns_name(text):
        raise BadValue("must be the name of a RuntimeClass")
    return text


def _parse_platform(text: str) -> Platform:
    """Read ``os[/architecture[/variant]]``, or an architecture alone; nodes have no label for the variant."""
    if not text:
        return Platform()
    is_valid = re.fullmatch(r"[a-z]+(?:/[a-z0-9_-]+(?:/v[0-9.]+)?)?|[a-z0-9_-]+", text.lower())
    first, _, rest = text.lower().partition("/")
    if not is_valid or (rest and first not in _SYSTEMS):
        raise BadValue("must be a platform such as linux/amd64, linux/arm64/v8 or linux")
    system = first if first in _SYSTEMS else ""
    architecture = rest.partition("/")[0] if system else first
    return Platform(os=system, architecture=architecture_name(architecture), written=text.lower())
