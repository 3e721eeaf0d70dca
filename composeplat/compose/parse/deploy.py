"""Parse ``deploy``, ``resources``, ``restart``, ``scale`` and the flat resource keys of a service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from composeplat.compose.model import ALWAYS, NEVER, ON_FAILURE, Resources
from composeplat.compose.nodes import Scalar
from composeplat.compose.origins import amount_path, request_path
from composeplat.compose.parse.annotations import parse_annotations
from composeplat.compose.parse.cpu_quota import quota_parser, shares_parser
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.parse.scheduling import parse_scheduling
from composeplat.compose.parse.shared_pods import joins_another
from composeplat.compose.rollout_model import Mode, Scheduling
from composeplat.compose.values import (
    BadValue,
    parse_count,
    parse_cpus,
    parse_int,
    parse_memory,
    parse_size,
    parse_whole,
)
from composeplat.system.records import record

_RESTARTS = {
    "always": ALWAYS,
    "unless-stopped": ALWAYS,
    "any": ALWAYS,
    "none": NEVER,
    "never": NEVER,
    "no": NEVER,
    "on-failure": ON_FAILURE,
}
_SERVER = "use 'always' for a server"
_MAX_COUNT = 10_000
#: Docker's own limit.
_LOWEST_LIMIT = 6 * 1024**2


@record
class Deploy:
    replicas: int = 1
    restart: str = ALWAYS
    max_attempts: int | None = None
    resources: Resources = field(default_factory=Resources)
    endpoint_mode: str = "vip"
    labels: dict[str, str] = field(default_factory=dict)
    scheduling: Scheduling = field(default_factory=Scheduling)


def parse_deploy(service: Section) -> Deploy:
    deploy = service.section("deploy", "services.*.deploy")
    compose = deploy.section("resources", "services.*.deploy.resources") if deploy else None
    reservations = compose.section("reservations", "services.*.deploy.resources.reservations") if compose else None
    scheduling = parse_scheduling(service, deploy, reservations)
    restart, attempts = _restart(service, deploy, scheduling)
    replicas = _replicas(service, deploy)
    return Deploy(
        replicas=1 if scheduling.mode.is_global else replicas,
        restart=restart,
        max_attempts=attempts,
        resources=_resources(service, compose, reservations),
        endpoint_mode=_endpoint_mode(deploy),
        labels=parse_annotations(deploy, "labels") if deploy else {},
        scheduling=scheduling,
    )


def _replicas(service: Section, deploy: Section | None) -> int:
    def read_count(text: str) -> int:
        return parse_count(text, highest=_MAX_COUNT)

    scale, replicas = service.get("scale"), deploy.get("replicas") if deploy else None
    scaled = scale.value(read_count) if scale else None
    replicated = replicas.value(read_count) if replicas else None
    if scale and scaled is not None and replicated is not None and scaled != replicated:
        scale.report("overridden-key", "differs from deploy.replicas, which wins", "keep one of them")
    return replicated if replicated is not None else scaled if scaled is not None else 1


Restart = tuple[str, int | None]
"""A policy, and its number of tries where it has one."""


def _restart(service: Section, deploy: Section | None, scheduling: Scheduling) -> Restart:
    policy = deploy.section("restart_policy", "services.*.deploy.restart_policy") if deploy else None
    condition = policy.get("condition") if policy else None
    restart = service.get("restart")
    own = restart.value(_parse_restart) if restart and not _is_empty(restart) else None
    policy_restart = condition.value(_parse_restart) if condition and not _is_empty(condition) else None
    written, attempts = policy_restart or own or ("", None)
    place = condition or restart
    kind = _restart_of_mode(scheduling, written, place)
    attempts_field = policy.get("max_attempts") if policy else None
    max_attempts = attempts_field.value(parse_whole) if attempts_field else None
    if restart and own and (winner := _overriding_key(own, policy_restart, max_attempts)):
        restart.report("overridden-key", f"differs from deploy.restart_policy.{winner}, which wins", "keep one of them")
    places = (found for found in (restart, condition, attempts_field) if found)
    is_unread = any(found.ctx.report.has_error(*found.path) for found in places)
    if attempts_field and kind == ALWAYS and not is_unread:
        attempts_field.report(
            "no-effect", "has no effect on a service that is always restarted", "set restart: on-failure"
        )
    is_awaited = service.whole.path[1] in service.whole.ctx.awaited
    if place and not scheduling.ends and not joins_another(service) and not is_awaited:
        _report_job(place, kind, has_ports=service.get("ports") is not None)
    return kind, attempts if max_attempts is None else max_attempts


def _overriding_key(own: Restart, policy: Restart | None, max_attempts: int | None) -> str:
    """Return the key of ``deploy.restart_policy`` that differs from ``restart``; empty if none does."""
    kind, attempts = own
    if policy and policy[0] != kind:
        return "condition"
    if attempts is None:
        return ""
    if max_attempts is not None:
        return "max_attempts" if attempts != max_attempts else ""
    return "condition" if policy and attempts != policy[1] else ""


def _report_job(place: Field, kind: str, *, has_ports: bool) -> None:
    """Warn of a policy that makes a possible server a Job."""
    message, fix = "makes the service a Job, which runs to completion and is not restarted after that", _SERVER
    if kind == ON_FAILURE:
        place.report("on-failure-job", message, fix)
    elif kind == NEVER and has_ports:
        place.report("job-with-ports", f"{message}, although it has ports", fix)


def _restart_of_mode(scheduling: Scheduling, written: str, place: Field | None) -> str:
    """Return the policy of a mode or schedule that has no choice, and report another one."""
    mode = scheduling.mode
    if scheduling.ends:
        default, reason = (NEVER, "x-schedule") if scheduling.schedule else (ON_FAILURE, f"mode: {mode}")
        if written == ALWAYS:
            _report_no_effect(
                place, f"has no effect with {reason}, which is not restarted after its end", "set on-failure"
            )
        return default if written in ("", ALWAYS) else written
    if mode is Mode.GLOBAL and written not in ("", ALWAYS):
        fix = "leave it out, or use mode: global-job"
        _report_no_effect(place, "has no effect with mode: global, whose pods are always restarted", fix)
        return ALWAYS
    return written or ALWAYS


def _report_no_effect(place: Field | None, message: str, fix: str) -> None:
    if place is not None:
        place.report("no-effect", message, fix)


def _is_empty(field: Field) -> bool:
    """Check for an empty text, such as that of a variable which is not set: Compose's default then."""
    return isinstance(field.node, Scalar) and field.node.text == ""


def _parse_restart(text: str) -> Restart:
    policy, colon, count = text.partition(":")
    if policy not in _RESTARTS or (colon and policy != "on-failure"):
        raise BadValue(
            "must be 'always', 'unless-stopped', 'any', 'no', 'none', 'never', 'on-failure' or 'on-failure:N'",
            _RESTARTS,
        )
    # Docker's 0 is no limit, as no number is.
    return _RESTARTS[policy], (parse_int(count) or None) if colon else None


def _endpoint_mode(deploy: Section | None) -> str:
    mode = deploy.given("endpoint_mode") if deploy else None
    read = mode.choice("vip", "dnsrr") if mode else None
    if mode and read == "dnsrr":
        mode.report("no-traffic-diversion", "is 'dnsrr', with which the traffic-diverting feature does not work")
    return read or "vip"


# resources ------------------------------------------------------------------------------------------------------------


def _parse_decimal_size(text: str) -> int:
    return parse_size(text, decimal=True)


Parser = Callable[[str], int]


def _resources(service: Section, compose: Section | None, reservations: Section | None) -> Resources:
    """Read resources; ``resources`` wins over ``deploy.resources``, and that over the flat keys."""
    kubernetes = service.section("resources", "services.*.resources")
    requests = kubernetes.section("requests", "services.*.resources.requests") if kubernetes else None
    limits = kubernetes.section("limits", "services.*.resources.limits") if kubernetes else None
    compose_limits = compose.section("limits", "services.*.deploy.resources.limits") if compose else None
    limit_cpu = _first(
        (limits, "cpu", parse_cpus),
        (compose_limits, "cpus", parse_cpus),
        (service, "cpus", parse_cpus),
        (service, "cpu_count", lambda text: 1000 * parse_int(text, highest=_MAX_COUNT)),
        (service, "cpu_quota", quota_parser(service)),
        resource="cpu",
    )
    return Resources(
        limit_cpu=limit_cpu,
        limit_memory=_first(
            (limits, "memory", _parse_decimal_size),
            (compose_limits, "memory", parse_memory),
            (service, "mem_limit", parse_memory),
            resource="memory",
        ),
        request_cpu=_first(
            (requests, "cpu", parse_cpus),
            (reservations, "cpus", parse_cpus),
            (service, "cpu_shares", shares_parser(service, limit_cpu)),
            resource="cpu",
            is_request=True,
        ),
        request_memory=_first(
            (requests, "memory", _parse_decimal_size),
            (reservations, "memory", parse_memory),
            (service, "mem_reservation", parse_memory),
            resource="memory",
            is_request=True,
        ),
    )


def _first(*places: tuple[Section | None, str, Parser], resource: str, is_request: bool = False) -> int | None:
    """Read all places, to report each invalid value, and return the first; 0 means no limit, as in Compose.

    A later place with another value gets a warning.
    """
    chosen: int | None = None
    for section, key, parse in places:
        found: Field | None = section.get(key) if section else None
        value = found.value(parse) if found else None
        if found is None or value is None:
            continue
        if not is_request and parse is parse_memory and 0 < value < _LOWEST_LIMIT:
            found.report("low-memory-limit", "is below 6m, with which Docker runs no container", _unit_hint(found))
        if chosen is None:
            chosen = value
            _record(found, resource, is_request=is_request)
        elif value != chosen:
            found.report("overridden-key", "differs from a more explicit key, which wins", "keep one of them")
    return chosen or None


def _unit_hint(found: Field) -> str:
    """The fix of a small limit: a unit that may have been left out."""
    text = found.node.text if isinstance(found.node, Scalar) and not found.node.is_substituted else ""
    return f"a number without a unit is bytes: write {text}m" if text.isdecimal() else "write a unit, or raise it"


def _record(found: Field, resource: str, *, is_request: bool) -> None:
    """Record the place of a limit or a request for later messages; limits are read first."""
    service, origins = str(found.path[1]), found.ctx.origins
    if is_request:
        origins.put_alias(request_path(service, resource), found.node, found.path)
    amount = amount_path(service, resource)
    if not origins.has(*amount):
        origins.put_alias(amount, found.node, found.path)
