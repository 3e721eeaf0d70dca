"""Parse where pods run and how they are replaced: ``mode``, ``placement``, ``update_config``, GPUs."""

from __future__ import annotations

import re

from composeplat.compose.full_keys import SERVICE
from composeplat.compose.nodes import Mapping, Scalar
from composeplat.compose.parse.devices import parse_devices
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.parse.node_attributes import NODE_LABELS, architecture_name
from composeplat.compose.parse.schedule import parse_schedule
from composeplat.compose.rollout_model import Constraint, Mode, Placement, Scheduling, UpdateConfig
from composeplat.compose.values import parse_int, parse_seconds
from composeplat.names import is_extended_resource, is_label_key, is_label_value

_CONSTRAINT = r"\s*(\S+?)\s*(==|!=)\s*(\S+)\s*"
_OWN_LABELS = ("node.labels.", "engine.labels.")
_OF_SWARM = ("node.role", "node.id", "node.ip")
_MAX_COUNT = 10_000
_VENDORS = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "intel": "gpu.intel.com/i915"}
_PLACEMENT = "services.*.deploy.placement"
_RESERVED = "services.*.deploy.resources.reservations"
_GENERIC = f"{_RESERVED}.generic_resources.*"


def parse_scheduling(service: Section, deploy: Section | None, reserved: Section | None) -> Scheduling:
    """Read from a service, from its ``deploy``, and from the ``reservations`` there."""
    placement = deploy.section("placement", _PLACEMENT) if deploy else None
    update = deploy.section("update_config", "services.*.deploy.update_config") if deploy else None
    return Scheduling(
        mode=parse_mode(deploy),
        schedule=parse_schedule(service),
        placement=_placement(placement) if placement else Placement(),
        update=_update_config(update) if update else UpdateConfig(),
        devices=_devices(service, reserved),
    )


def parse_mode(deploy: Section | None) -> Mode:
    found = deploy.given("mode") if deploy else None
    return Mode((found.choice(*Mode) if found else None) or Mode.REPLICATED)


def _placement(section: Section) -> Placement:
    listed = section.get("constraints")
    preferences = section.get("preferences")
    return Placement(
        constraints=tuple(c for item in (listed.items() if listed else ()) if (c := _constraint(item))),
        # Kubernetes refuses a label twice, and merged files may have it so.
        spread=tuple(dict.fromkeys(filter(None, map(_preference, preferences.items() if preferences else ())))),
        max_per_node=section.value("max_replicas_per_node", _parse_count, 0),
    )


def _parse_count(text: str) -> int:
    return parse_int(text, highest=_MAX_COUNT)


def _constraint(item: Field) -> Constraint | None:
    text = item.text()
    found = re.fullmatch(_CONSTRAINT, text) if text is not None else None
    if found is None:
        if text is not None:
            item.report("invalid-value", f"must be LABEL==VALUE or LABEL!=VALUE, not {item.node.shown}")
        return None
    label = _node_label(item, found[1])
    value = architecture_name(found[3]) if found[1] == "node.platform.arch" else found[3]
    if not label:
        return None
    if not is_label_value(value):
        item.report("invalid-value", f"must compare with the value of a node's label, not with {item.node.shown}")
        return None
    return Constraint(label=label, value=value, is_equal=found[2] == "==")


def _node_label(item: Field, written: str) -> str:
    """Return the label of Kubernetes' nodes for an attribute of Swarm's; report one that they don't have."""
    prefix = next((own for own in _OWN_LABELS if written.startswith(own)), "")
    label = NODE_LABELS.get(written) or (written.removeprefix(prefix) if prefix else "")
    if is_label_key(label):
        return label
    if written in _OF_SWARM:
        message = f"is not supported and has no effect: '{written}' is an attribute of Swarm's nodes"
        item.report("unsupported-key", message, "label the nodes, and write node.labels.NAME==VALUE")
    else:
        hint = "use node.labels.NAME, node.hostname, node.platform.arch or node.platform.os"
        item.report("invalid-value", f"must name a label of nodes, not {item.node.shown}", hint)
    return ""


def _preference(item: Field) -> str:
    section = item.section(f"{_PLACEMENT}.preferences.*")
    spread = section.get("spread") if section else None
    written = spread.text() if spread else None
    return _node_label(spread, written) if spread and written else ""


# updates --------------------------------------------------------------------------------------------------------------


def _update_config(section: Section) -> UpdateConfig:
    order = section.get("order")
    chosen = order.choice("start-first", "stop-first") if order else None
    seconds = [section.value(key, parse_seconds, 0) for key in ("delay", "monitor")]
    action = section.get("failure_action")
    on_failure = action.choice("pause", "continue", "rollback") if action else None
    if action is not None and on_failure == "continue":
        action.report(
            "no-effect", "is 'continue', and a deploy fails with a service that does not get ready", "remove it"
        )
    return UpdateConfig(
        rolls_back=on_failure == "rollback",
        parallelism=section.optional("parallelism", _parse_count),
        start_first=None if chosen is None else chosen == "start-first",
        ready_seconds=max(seconds),
    )


# devices --------------------------------------------------------------------------------------------------------------


def _devices(service: Section, reserved: Section | None) -> dict[str, int]:
    found = parse_devices(service)
    for whole in (service.get("gpus"), reserved.get("devices") if reserved else None):
        for name, count in _requests(whole) if whole else ():
            found[name] = found.get(name, 0) + count
    generic = reserved.get("generic_resources") if reserved else None
    for name, count in _generic(generic) if generic else ():
        found[name] = found.get(name, 0) + count
    return {name: count for name, count in found.items() if count}


def _requests(whole: Field) -> list[tuple[str, int]]:
    """Read requests of devices; ``gpus: all`` is one, as no resource means all of a node's."""
    if isinstance(whole.node, Scalar):
        if whole.choice("all"):
            _report_all(whole, f"is {whole.node.shown}")
            return [(_VENDORS["nvidia"], 1)]
        return []
    pattern = f"{SERVICE}.gpus.*" if whole.path[-1] == "gpus" else f"{_RESERVED}.devices.*"
    return [request for item in whole.items() if (request := _request(item, pattern))]


def _request(item: Field, pattern: str) -> tuple[str, int] | None:
    section = item.section(pattern)
    if section is None:
        return None
    is_device = item.path[-2] == "devices"
    if is_device and isinstance(item.node, Mapping) and "capabilities" not in item.node:
        item.report("missing-key", "must have 'capabilities'", "write capabilities: [gpu]")
    driver = section.text("driver", "nvidia")
    name = _VENDORS.get(driver, driver)
    number = _count(section)
    if not is_extended_resource(name):
        known = ", ".join(_VENDORS)
        section.fields["driver"].report(
            "invalid-value", "must name a vendor or a resource", f"use {known}, or a name such as example.com/device"
        )
        return None
    if "count" not in section.fields and "device_ids" not in section.fields:
        _report_all(item, "has no 'count', which means 'all'")
    return name, number


def _count(section: Section) -> int:
    count, ids = section.get("count"), section.get("device_ids")
    if ids is not None and count is not None:
        ids.report("conflicting-keys", "can't be there beside 'count'", "keep one of them")
    elif ids is not None:
        message = "is not supported and has no effect: the cluster chooses the devices"
        ids.report("unsupported-key", message, "use count")
    if count is not None and isinstance(count.node, Scalar) and count.node.text in ("all", "-1"):
        _report_all(count, f"is {count.node.shown}")
    elif count is not None:
        number = count.value(_parse_count)
        return 1 if number is None else number
    return max(1, len(list(ids.items()))) if ids is not None else 1


def _report_all(place: Field, what: str) -> None:
    message = f"{what}, and a container can't ask for all devices of a node here: it gets 1"
    place.report("no-effect", message, "give the number: 'count: 1'")


def _generic(whole: Field) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for item in whole.items():
        outer = item.section(_GENERIC)
        spec = outer.section("discrete_resource_spec", f"{_GENERIC}.discrete_resource_spec") if outer else None
        kind = spec.get("kind") if spec else None
        name = kind.text() if kind else None
        if kind is not None and name and not is_extended_resource(name):
            kind.report("invalid-value", "must be an extended resource of the nodes", "write it as example.com/device")
        elif spec is not None and name:
            found.append((name, spec.value("value", _parse_count, 1)))
    return found
