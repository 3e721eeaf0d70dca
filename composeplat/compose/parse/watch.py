"""Parse ``develop.watch``; it has an effect in full mode alone."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from composeplat.compose.origins import watch_rule_path
from composeplat.compose.parse.environment import absolute, parse_environment
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.parse.process import parse_command, parse_service_user
from composeplat.compose.parse.windows_paths import refuse_windows_path
from composeplat.compose.values import BadValue, parse_path
from composeplat.compose.watch_model import WatchAction, WatchExec, WatchRule, is_below

_RULE = "services.*.develop.watch.*"
#: What Kubernetes and this project mount into containers, and the kernel's own.
_FORBIDDEN = ("/proc", "/sys", "/dev", "/.platform", "/var/run/secrets/kubernetes.io")


def parse_watch(service: Section) -> tuple[WatchRule, ...]:
    develop = service.section("develop", "services.*.develop")
    watch = develop.get("watch") if develop else None
    rules: list[WatchRule] = []
    for item in watch.items() if watch else ():
        section = item.section(_RULE)
        for rule in _rules(service, section) if section else ():
            place = watch_rule_path(str(service.whole.path[1]), len(rules))
            item.ctx.origins.put_alias(place, item.node, item.path)
            item.ctx.origins.copy((*place, "path"), (*item.path, "path"))
            rules.append(rule)
    return tuple(rules)


def _rules(service: Section, section: Section) -> Iterator[WatchRule]:
    """Yield the rule of a section; none if it can't be used."""
    action, path = _action(section), _path(section)
    if action is None or path is None:
        return
    target = _target(section, action)
    command = _command(service, section, action)
    if (target or not action.has_target) and (command or action is not WatchAction.SYNC_EXEC):
        yield WatchRule(
            action=action,
            path=path,
            target=target,
            ignore=section.texts("ignore"),
            include=section.texts("include"),
            initial_sync=section.boolean("initial_sync", default=False),
            command=command,
        )


def _required(section: Section, key: str, *, why: str = "") -> Field | None:
    found = section.get(key)
    if found is None:
        article = "an" if key[0] in "ae" else "a"
        section.whole.report("missing-key", f"must have {article} '{key}'{why}")
    return found


def _action(section: Section) -> WatchAction | None:
    found = _required(section, "action")
    text = found.choice(*WatchAction) if found else None
    return WatchAction(text) if text else None


def _path(section: Section) -> str | None:
    found = _required(section, "path")
    text = found.value(parse_path) if found else None
    if found is None or not text or refuse_windows_path(found, text):
        return None
    return posixpath.normpath(absolute(found, text))


def _target(section: Section, action: WatchAction) -> str:
    """Read the path in the container."""
    if not action.has_target:
        found = section.get("target")
        if found:
            found.report("no-effect", f"has no effect: the action '{action}' copies nothing")
        return ""
    found = _required(section, "target", why=f", as the action '{action}' copies files")
    return (found.value(_parse_target) if found else None) or ""


def _parse_target(text: str) -> str:
    if not text.startswith("/") or "\0" in text or ".." in text.split("/"):
        raise BadValue("must be an absolute path in the container, without '..'")
    target = posixpath.normpath("/" + text.lstrip("/"))
    if any(is_below(target, folder) for folder in _FORBIDDEN):
        raise BadValue("must be a path of the service's own files in the container")
    return target if target == "/" or not text.endswith("/") else f"{target}/"


def _command(service: Section, section: Section, action: WatchAction) -> WatchExec | None:
    found = section.get("exec")
    if action is not WatchAction.SYNC_EXEC:
        if found:
            found.report("no-effect", f"has no effect: the action is '{action}'", "write action: sync+exec")
        return None
    found = _required(section, "exec", why=f", as the action '{action}' runs a command")
    hook = found.section(f"{_RULE}.exec") if found else None
    return _read_command(service, hook) if hook else None


def _read_command(service: Section, hook: Section) -> WatchExec | None:
    written, command = _required(hook, "command"), parse_command(hook, "command")
    if written is None or command is None:
        return None
    if not command:
        written.report("invalid-value", "must be a command, and is empty", "write the program and its arguments")
        return None
    user = hook.get("user")
    if user and parse_service_user(hook) != parse_service_user(service):
        user.report("no-effect", "has no effect: a command in a running container has the container's user")
    privileged = hook.get("privileged")
    if privileged and privileged.boolean() and not service.boolean("privileged", default=False):
        privileged.report("no-effect", "has no effect: a command in a running container has the container's rights")
    variables = {name: value for name, value in parse_environment(hook).items() if value is not None}
    return WatchExec(command=command, working_dir=hook.text("working_dir"), environment=variables)
