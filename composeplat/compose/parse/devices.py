"""Parse ``devices`` with ``x-devices``: devices of nodes, by the resource that a device plugin names.

Owns the forms of ``devices``; a cluster has no paths of nodes to give, only resources, so `x-devices` says which.
"""

from __future__ import annotations

from composeplat.compose.nodes import Mapping, Scalar
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.values import parse_known
from composeplat.names import is_extended_resource

_PATTERN = "services.*.devices.*"


def parse_devices(section: Section) -> dict[str, int]:
    """Return the number of each resource."""
    resources = _resources(section)
    found = section.get("devices")
    counts: dict[str, int] = {}
    used: set[str] = set()
    for item in found.items() if found else ():
        source = _source(item)
        if not source:
            continue
        used.add(source)
        if source in resources:
            name = resources[source][1]
            counts[name] = counts.get(name, 0) + (1 if name else 0)
            _check_target(item, source)
        else:
            _report_device(item, source)
    for source, (place, _) in resources.items():
        if source not in used:
            place.report("no-effect", "has no effect: 'devices' does not name it", "add the device to 'devices'")
    return {name: count for name, count in counts.items() if name}


def _report_device(item: Field, source: str) -> None:
    """Report a device that no resource is given for; a name of CDI, such as ``nvidia.com/gpu=0``, has one."""
    resource, equals, _ = source.partition("=")
    is_named = bool(equals) and is_extended_resource(resource)
    message = (
        "has no effect: a pod gets devices of a node by the resource of a device plugin, not by their"
        f" {'name' if is_named else 'path'}"
    )
    hint = "name the resource: x-devices: {/dev/…: example.com/device}"
    if is_named and isinstance(item.node, Scalar) and not item.node.is_substituted:
        hint = f"write gpus: [{{driver: {resource}, count: 1}}]"
    item.report("no-effect", message, hint)


def _resources(section: Section) -> dict[str, tuple[Field, str]]:
    """Read the resource of each path; empty for a bad name, which is reported."""
    found = section.get("x-devices")
    resources: dict[str, tuple[Field, str]] = {}
    for path, place in found.members() if found else ():
        name = place.text()
        if name is not None and not is_extended_resource(name):
            message = f"must be a resource of the nodes, not {place.node.shown}"
            place.report("invalid-value", message, "write its name, as in example.com/device")
            name = ""
        resources[path] = (place, name or "")
    return resources


def _source(item: Field) -> str:
    """Read ``SOURCE[:TARGET[:PERMISSIONS]]`` or the long form; empty if it can't be read."""
    if isinstance(item.node, Mapping):
        section = item.section(_PATTERN)
        source = section.value("source", parse_known, "") if section else ""
        if section is not None and section.get("source") is None:
            item.report("missing-key", "must have 'source'", "write source: /dev/…")
        return source
    return (item.value(parse_known) or "").partition(":")[0]


def _check_target(item: Field, source: str) -> None:
    """Report another path in the container; the long form has a key for it, with a warning of its own."""
    if isinstance(item.node, Scalar) and item.node.text.split(":")[1:2] not in ([], [""], [source]):
        item.report("no-effect", "has another path in the container: the device plugin decides it")
