"""Parse ``x-autoscale``: between which numbers of pods a service is scaled, and by what."""

from __future__ import annotations

import re

from composeplat.compose.extension_model import Autoscale, Resource, UsageTarget
from composeplat.compose.nodes import Mapping
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.values import BadValue, parse_cpus, parse_int, parse_size

_AUTOSCALE = "services.*.x-autoscale"
_MAX_PODS = 10_000
_MAX_PERCENT = 1000
_PERCENT = re.compile(r"[0-9]{1,6}%?\Z", re.ASCII)


def parse_autoscale(service: Section) -> Autoscale | None:
    section = service.section("x-autoscale", _AUTOSCALE)
    if section is None:
        return None
    lowest, highest = section.value("min", _parse_count, 1), section.optional("max", _parse_count)
    targets = tuple(found for resource in Resource if (found := _target(section, resource)))
    _report_missing(section)
    _report_replicas(service)
    if highest is None or not targets:
        return None
    if highest < lowest:
        section.fields["max"].report("invalid-value", f"must be at least 'min', which is {lowest}, not {highest}")
        return None
    return Autoscale(lowest=lowest, highest=highest, targets=targets)


def _parse_count(text: str) -> int:
    return parse_int(text, lowest=1, highest=_MAX_PODS)


def _report_missing(section: Section) -> None:
    if section.get("max") is None:
        section.whole.report("missing-key", "must have 'max', the largest number of pods", "write max: 10")
    if section.get("cpu") is None and section.get("memory") is None:
        message = "must have 'cpu' or 'memory', which decides the number of pods"
        section.whole.report("missing-key", message, "write cpu: 70%, which is a share of the CPU that a pod requests")


def _target(section: Section, resource: Resource) -> UsageTarget | None:
    found = section.get(resource)
    parse = _parse_cpu if resource is Resource.CPU else _parse_memory
    usage = found.value(parse) if found else None
    if usage is None:
        return None
    percent, amount = usage
    return UsageTarget(resource=resource, percent=percent, amount=amount)


def _parse_cpu(text: str) -> tuple[int | None, int | None]:
    """Read ``70%`` or ``70`` as a share of the request, and ``500m`` as an amount."""
    if _PERCENT.match(text):
        return _parse_percent(text), None
    if not text.endswith("m"):
        raise BadValue("must be a share of the request such as 70%, or an amount such as 500m")
    return None, _positive(parse_cpus(text))


def _parse_memory(text: str) -> tuple[int | None, int | None]:
    if _PERCENT.match(text):
        return _parse_percent(text), None
    try:
        return None, _positive(parse_size(text))
    except BadValue as error:
        raise BadValue("must be a share of the request such as 80%, or a size such as 200m") from error


def _parse_percent(text: str) -> int:
    number = int(text.removesuffix("%"))
    if not 1 <= number <= _MAX_PERCENT:
        raise BadValue(f"must be a share from 1% to {_MAX_PERCENT}%")
    return number


def _positive(amount: int) -> int:
    if amount == 0:
        raise BadValue("must be more than 0")
    return amount


def _report_replicas(service: Section) -> None:
    """Warn about a number of pods that the autoscaler decides instead."""
    for found in (service.get("scale"), _replicas(service)):
        if found is not None:
            message = "has no effect beside x-autoscale, which decides the number of pods"
            found.report("no-effect", message, "set x-autoscale.min for the smallest number")


def _replicas(service: Section) -> Field | None:
    deploy = service.get("deploy")
    value = deploy.node.get("replicas") if deploy is not None and isinstance(deploy.node, Mapping) else None
    return deploy.child("replicas", value) if deploy is not None and value is not None else None
