"""Parse the keys by which a service joins the pod of another one, or the namespaces of its node."""

from __future__ import annotations

from composeplat.compose.nodes import Scalar
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.pod_model import SharedPod

_HOST = "host"
#: What a pod has anyway: of its own, and shared with its other containers.
_OF_A_POD = {"pid": ("", "private"), "ipc": ("", "private", "shareable", "none")}
_KEYS = ("network_mode", *_OF_A_POD)


def parse_shared_pod(section: Section) -> SharedPod:
    joined = {key: target for key in _KEYS if (target := _target(section.get(key)))}
    return SharedPod(joined=joined)


def joins_another(section: Section) -> bool:
    """Whether the keys of a service say that it runs in the pod of another one."""
    nodes = [section.fields[key].node for key in _KEYS if key in section.fields]
    return any(isinstance(node, Scalar) and node.text.startswith("service:") for node in nodes)


def _target(found: Field | None) -> str:
    """Read the name in ``service:NAME``; empty for other values."""
    text = (found.text() if found else None) or ""
    kind, _, name = text.partition(":")
    return name if kind == "service" else ""


def parse_host_namespaces(section: Section) -> frozenset[str]:
    return frozenset(key for key in _OF_A_POD if _is_of_host(section.get(key), _OF_A_POD[key]))


def _is_of_host(found: Field | None, usual: tuple[str, ...]) -> bool:
    text = found.text() if found else None
    if found is None or text is None or text in usual:
        return False
    kind, _, name = text.partition(":")
    if kind == "container" and name:
        message = f"is not supported and has no effect: {found.node.shown} is a container of this machine"
        found.report("unsupported-key", message, "write service:NAME")
    elif text != _HOST and not (kind == "service" and name):
        found.report("invalid-value", f"must be 'host' or 'service:NAME', not {found.node.shown}")
    return text == _HOST
