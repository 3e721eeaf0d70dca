"""Parse the hooks of a service, ``pre_start``, ``post_start`` and ``pre_stop``, and its ``stop_signal``.

They have an effect in full mode alone.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Mapping
from dataclasses import field

from composeplat.compose.model import User
from composeplat.compose.nodes import Mapping as MappingNode
from composeplat.compose.parse.environment import parse_environment
from composeplat.compose.parse.fields import Section
from composeplat.compose.parse.process import parse_command, parse_hook_user, parse_service_user
from composeplat.compose.pod_model import Hook, InitHook
from composeplat.compose.values import BadValue, parse_image, parse_working_dir
from composeplat.names import make_shell_name
from composeplat.system.records import mutable

_KEYS = ("command", "user", "privileged", "working_dir", "environment")
_INIT_KEYS = (*_KEYS, "image", "per_replica")
_SIGNALS = {found.name.removeprefix("SIG"): found.value for found in signal.Signals}


@mutable
class Hooks:
    pre_start: tuple[InitHook, ...] = ()
    post_start: tuple[Hook, ...] = ()
    pre_stop: tuple[Hook, ...] = ()
    environment: dict[str, str | None] = field(default_factory=dict)


def parse_hooks(service: Section) -> Hooks:
    hooks = Hooks()
    if not any(service.get(key) for key in ("pre_start", "post_start", "pre_stop")):
        return hooks
    user = parse_service_user(service)
    hooks.post_start = tuple(_hooks(service, "post_start", user, hooks.environment))
    hooks.pre_stop = tuple(_hooks(service, "pre_stop", user, hooks.environment))
    hooks.pre_start = tuple(_init_hooks(service, hooks.environment))
    return hooks


def _sections(service: Section, key: str, known: tuple[str, ...]) -> Iterator[Section]:
    found = service.get(key)
    for item in found.items() if found else ():
        if not isinstance(item.node, MappingNode):
            item.report_type("a mapping with a 'command'")
            continue
        fields = dict(item.members())
        for name in [name for name in fields if name not in known]:
            unknown = fields.pop(name)
            if not name.startswith("x-"):
                hint = unknown.ctx.report.near(name, known)
                unknown.report("unknown-key", "is not a key that Compose or this tool knows", hint)
        yield Section(item, fields)


def _hooks(service: Section, key: str, user: User | None, environment: dict[str, str | None]) -> Iterator[Hook]:
    is_privileged = service.boolean("privileged", default=False)
    for hook in _sections(service, key, _KEYS):
        command = parse_command(hook, "command")
        variables = _variables(hook, environment, in_shell=True)
        reason = _difference(hook, user, is_privileged=is_privileged)
        if hook.get("command") is None:
            hook.whole.report("missing-key", "must have a 'command'")
        elif command and reason:
            message = f"is left out: {reason}, and a hook of Kubernetes has the rights of its container"
            hook.whole.report("no-effect", message, "let the container have them, or use pre_start")
        elif command:
            yield Hook(command=command, working_dir=hook.text("working_dir"), variables=variables)


def _difference(hook: Section, user: User | None, *, is_privileged: bool) -> str:
    """Return how the rights of a hook differ from those of its service."""
    if hook.get("user") and parse_service_user(hook) != user:
        return "it has a user of its own"
    return "it is privileged" if hook.boolean("privileged", default=False) and not is_privileged else ""


def _init_hooks(service: Section, environment: dict[str, str | None]) -> Iterator[InitHook]:
    for hook in _sections(service, "pre_start", _INIT_KEYS):
        user = parse_hook_user(hook)
        image = hook.value("image", parse_image, "")
        command = parse_command(hook, "command")
        if hook.get("command") is None and hook.get("image") is None:
            hook.whole.report("missing-key", "must have a 'command' or an 'image'")
        yield InitHook(
            command=command or (),
            working_dir=hook.value("working_dir", parse_working_dir, ""),
            variables=_variables(hook, environment),
            image=image,
            uid=user.uid,
            gid=user.gid,
            privileged=hook.boolean("privileged", default=False),
            once=not hook.boolean("per_replica", default=False),
        )


def _variables(hook: Section, environment: dict[str, str | None], *, in_shell: bool = False) -> Mapping[str, str]:
    """Keep the variables of a hook among those of the container, under names of their own."""
    prefix = "_".join(str(step).upper() for step in ("platform", *hook.whole.path[2:]))
    found = {name: value for name, value in parse_environment(hook).items() if value is not None}
    own = {name: f"{prefix}_{make_shell_name(name) if in_shell else name}" for name in found}
    environment.update({own[name]: value for name, value in found.items()})
    return own


def parse_signal(text: str) -> str:
    """Read the name or number of a signal."""
    name = text.upper().removeprefix("SIG")
    numbers = {str(number): known for known, number in _SIGNALS.items()}
    if name in _SIGNALS or re.fullmatch(r"RTM(?:IN|AX)(?:[+-][0-9]{1,2})?", name):
        return name
    if name not in numbers:
        raise BadValue("must be a signal such as SIGTERM, SIGINT or 3", (f"SIG{known}" for known in _SIGNALS))
    return numbers[name]
