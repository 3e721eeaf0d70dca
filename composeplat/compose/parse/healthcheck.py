"""Parse ``healthcheck``.

``start_period`` is the time before the first check, as in the specification, and becomes an initial delay.
A startup probe would kill a container that is slow to start, even if only readiness is checked.
"""

from __future__ import annotations

from dataclasses import replace

from composeplat.compose.model import HealthCheck
from composeplat.compose.nodes import Scalar, Sequence
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.port_values import parse_port_number
from composeplat.compose.values import parse_duration, parse_whole, whole_seconds

_PATTERN = "services.*.healthcheck"

#: CMD-SHELL, and its command.
_SHELL_PARTS = 2


def parse_healthcheck(service: Section) -> HealthCheck | None:
    section = service.section("healthcheck", _PATTERN)
    if section is None:
        return None
    check = HealthCheck(
        interval=_seconds(section, "interval", lowest=1, default=30),
        timeout=_seconds(section, "timeout", lowest=1, default=30),
        start_period=_seconds(section, "start_period", lowest=0, default=0),
        retries=section.value("retries", parse_whole, 0) or 3,
        readiness=section.boolean("x-okteto-readiness", default=True),
        liveness=section.boolean("x-okteto-liveness", default=False),
    )
    test, http = _test_of(section), section.get("http")
    if section.boolean("disable", default=False) or (test is not None and _is_none(test)):
        return None
    if not check.readiness and not check.liveness:
        where = section.get("x-okteto-readiness") or section.whole
        message = "is false and so is the liveness probe: the check would do nothing"
        if not section.whole.ctx.report.has_error(*section.whole.path, "x-okteto-liveness"):
            where.report("conflicting-keys", message, "use disable: true")
        return None
    if test is not None and http is not None:
        http.report("conflicting-keys", "can't be combined with test", "keep one of them")
        return None
    if http is not None:
        target = _read_http(http)
        return replace(check, http_path=target[0], http_port=target[1]) if target else None
    if test is None:
        message = "has no 'test' or 'http', and so no effect: Kubernetes does not know the image's own check"
        section.whole.report("no-effect", message, "give a test")
        return None
    command = _read_test(test)
    return replace(check, command=command) if command else None


def _test_of(section: Section) -> Field | None:
    """Return the test; none for an empty list or text, which leaves the image's own check in place."""
    test = section.get("test")
    is_empty = test is not None and (test.is_empty_list or (isinstance(test.node, Scalar) and not test.node.text))
    return None if is_empty else test


def _seconds(section: Section, key: str, *, lowest: int, default: int) -> int:
    """Read a duration; 0 means the default, as in Compose."""
    read: int | None = section.optional(key, parse_duration)
    return whole_seconds(read, lowest=lowest) if read else default


#: Words that begin a list, and the fix where they begin a text.
_AS_LIST = {
    "NONE": 'write ["NONE"], or disable: true',
    "CMD": 'leave it out, or write a list: ["CMD", "PROGRAM", "ARGUMENT"]',
    "CMD-SHELL": 'leave it out, or write a list: ["CMD-SHELL", "COMMAND"]',
}


def _is_none(test: Field) -> bool:
    """Whether the test is a list with NONE; the text NONE is a command."""
    first = test.node.items[0] if isinstance(test.node, Sequence) and test.node.items else None
    return isinstance(first, Scalar) and first.text == "NONE"


def _read_test(test: Field) -> tuple[str, ...] | None:
    """Return the command: a text, or CMD-SHELL, runs in a shell; CMD runs as it is."""
    if isinstance(test.node, Scalar):
        text = test.text()
        keyword = (text or "").strip().partition(" ")[0]
        if keyword in _AS_LIST:
            message = f"is a text, so that a shell runs a program named '{keyword}'"
            test.report("text-as-test", message, _AS_LIST[keyword])
        return ("/bin/sh", "-c", text) if text else None
    parts: list[str] = []
    for item in test.items("a text or a list"):
        part = item.text()
        if part is None:
            return None
        parts.append(part)
    if not parts:  # a mapping, which is reported
        return None
    if parts[0] not in ("CMD", "CMD-SHELL"):
        test.report(
            "invalid-value",
            "must begin with 'NONE', 'CMD' or 'CMD-SHELL'",
            'for example ["CMD", "curl", "-f", "http://localhost"]',
        )
        return None
    if parts[0] == "CMD-SHELL":
        if len(parts) == 1:
            test.report("invalid-value", "must have a command after 'CMD-SHELL'")
            return None
        if len(parts) > _SHELL_PARTS:
            message = "runs the first text after 'CMD-SHELL' alone, as Docker does: the others are only arguments of it"
            test.report("no-effect", message, "write the command as one text, or use 'CMD'")
        return ("/bin/sh", "-c", *parts[1:])
    if len(parts) == 1:
        test.report("invalid-value", "must have a command after 'CMD'")
        return None
    return tuple(parts[1:])


def _read_http(http: Field) -> tuple[str, int] | None:
    section = http.section("services.*.healthcheck.http")
    if section is None:
        return None
    path, port = section.get("path"), section.get("port")
    if path is None or port is None:
        missing = " and ".join(f"'{key}'" for key, field in (("path", path), ("port", port)) if field is None)
        http.report("missing-key", f"must have {missing}")
        return None
    number, text = port.value(parse_port_number), path.text()
    if text is not None and not text.startswith("/"):
        path.report(
            "invalid-value",
            f"must begin with '/', not be {path.node.shown if isinstance(path.node, Scalar) else ''}",
        )
        return None
    return (text, number) if text is not None and number is not None else None
