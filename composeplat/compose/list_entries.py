"""Which entries of two lists are the same when files are merged.

Owns the identity of the entries of each key: a variable's name, a mount's target, a port, the place of a file.
Must not know how files are merged.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterable, Iterator

from composeplat.compose.nodes import Mapping, Node, Scalar, to_plain
from composeplat.compose.port_values import parse_port
from composeplat.compose.values import BadValue, clean_target, parse_mount

Pattern = tuple[str, ...]


def new_entries(over: list[Node], base: list[Node]) -> Iterator[Node]:
    """Leave out entries that the other list has already; a path in one is relative to the folder of its file."""
    known = {_content(item) for item in base}
    return (item for item in over if item.tag or _content(item) not in known)


def _content(item: Node) -> tuple[object, str]:
    return item.span.source.base, repr(to_plain(item))


def _by_name(item: Node) -> object:
    return item.text.partition("=")[0] if isinstance(item, Scalar) else id(item)


def _by_text(item: Node) -> object:
    return item.text if isinstance(item, Scalar) else id(item)


def by_target(item: Node) -> object:
    """Identify a mount by its target."""
    target = item.get("target") if isinstance(item, Mapping) else item
    if not isinstance(target, Scalar):
        return id(item)
    try:
        return clean_target(target.text) if target is not item else parse_mount(target.text).target
    except BadValue:
        return id(item)


def _by_device(item: Node) -> object:
    """Identify a device by its path in the container."""
    if isinstance(item, Mapping):
        target = item.get("target")
        return target.text if isinstance(target, Scalar) else id(item)
    return item.text.split(":")[1] if isinstance(item, Scalar) and ":" in item.text else _by_text(item)


def _by_port(item: Node) -> object:
    if isinstance(item, Mapping):
        steps = (item.get(key) for key in ("host_ip", "published", "target", "protocol"))
        host_ip, published, target, protocol = (s.text if isinstance(s, Scalar) else "" for s in steps)
        return (host_ip, published, target, protocol.lower() or "tcp")
    if not isinstance(item, Scalar):
        return id(item)
    try:
        port = parse_port(item.text)
    except BadValue:
        return id(item)
    if len(port.pairs) != 1:
        return (port.host_ip, port.pairs[0], port.pairs[-1], port.protocol)
    published_port, target_port = port.pairs[0]
    return (port.host_ip, str(published_port or ""), str(target_port), port.protocol)


def _by_path(item: Node) -> object:
    """Identify a file by its place: a path is relative to the folder of the file that has it.

    As in Compose, `./a.env` and `a.env` of one folder are two.
    """
    path = item.get("path") if isinstance(item, Mapping) else item
    if not isinstance(path, Scalar):
        return id(item)
    base = path.span.source.base
    is_clean = os.path.normpath(path.text) == path.text
    return os.path.normpath(os.path.join(base, path.text)) if is_clean else (base, path.text)


#: Keys of a service that are a mapping, or a list of ``NAME=value``, whose entries are identified by their names.
KEYS_OF_PAIRS = [
    "annotations",
    "build.additional_contexts",
    "build.args",
    "build.labels",
    "build.ssh",
    "deploy.labels",
    "environment",
    "labels",
    "sysctls",
]
#: Keys of a service whose list entries are identified by their text.
_KEYS_BY_TEXT = [
    "build.extra_hosts",
    "build.platform",
    "build.platforms",
    "build.tags",
    "cap_add",
    "cap_drop",
    "dns",
    "dns_opt",
    "dns_search",
    "expose",
    "extra_hosts",
    "networks.*.aliases",
    "networks.*.link_local_ips",
    "profiles",
    "tmpfs",
]


def _identities() -> dict[Pattern, Callable[[Node], object]]:
    identities: dict[Pattern, Callable[[Node], object]] = {}
    rows: tuple[tuple[Iterable[str], Callable[[Node], object]], ...] = (
        ((*KEYS_OF_PAIRS, "links"), _by_name),
        (_KEYS_BY_TEXT, _by_text),
        (("volumes",), by_target),
        (("devices",), _by_device),
        (("ports",), _by_port),
        (("env_file", "label_file"), _by_path),
    )
    for keys, identify in rows:
        for key in keys:
            identities[("services", "*", *key.split("."))] = identify
    for section in ("networks", "volumes", "secrets", "configs"):
        identities[(section, "*", "labels")] = _by_name
    return identities


IDENTITIES = _identities()
