"""Full mode in a check: the findings whose keys it honors, and whether a definition loses something by it.

Owns both answers. Must not read the definition: it comes in, read once in each mode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from composeplat.codes import BY_KEY, Effect
from composeplat.compatibility.entries import Entry
from composeplat.compatibility.explanation import Statement
from composeplat.compatibility.findings import Check, Finding
from composeplat.compose.keys import is_honored_in_full_mode
from composeplat.compose.load import Loaded
from composeplat.compose.nodes import Mapping, Node, Scalar, Sequence, find_node
from composeplat.compose.parse.unsupported_keys import HOST_GATEWAY
from composeplat.diagnostics import Diagnostic, PathKey, dotted, join_some
from composeplat.names import is_dns_label
from composeplat.plan import Plan
from composeplat.plan.desired import RUNTIME_CLASS

#: The code of a finding about networks, whose keys have no message of their own.
NO_ISOLATION = "no-network-isolation"
#: Keys by which only some nodes take a pod; without full mode the service runs on any.
_CHOOSES_NODES = ("gpus", "runtime", "devices", "generic_resources", "placement")
#: Keys by which a service can join the pod of another one.
_JOINS = ("ipc", "network_mode", "pid")
_MAX_KEYS = 8


def is_honored(diagnostic: Diagnostic, document: Node) -> bool:
    """Whether full mode honors the key that a message of the default mode is about, with its value."""
    if diagnostic.code in BY_KEY:
        return is_honored_in_full_mode(diagnostic.path) and not _has_no_meaning(diagnostic.path, document)
    return diagnostic.code == NO_ISOLATION


def _has_no_meaning(path: PathKey, document: Node) -> bool:
    """Whether the value of a service's key is one that full mode does not honor."""
    node = find_node(document, *map(str, path))
    match path:
        case ("services", _, "container_name"):
            return isinstance(node, Scalar) and not is_dns_label(node.text.lower())
        case ("services", _, "network_mode"):
            return isinstance(node, Scalar) and node.text.startswith("container:")
        case ("services", _, "extra_hosts"):
            return all(isinstance(entry, Scalar) and entry.text.endswith(HOST_GATEWAY) for entry in _entries_of(node))
        case ("services", name, "devices"):
            return find_node(document, "services", str(name), "x-devices") is None
    return False


def _entries_of(node: Node | None) -> list[Node]:
    if isinstance(node, Mapping):
        return [entry for _, entry in node]
    return node.items if isinstance(node, Sequence) else []


def is_chosen(loaded: Loaded) -> bool:
    """Whether a file or a variable says that full mode is on, or off."""
    written = find_node(loaded.document, "x-platform", "full")
    return written is not None or bool(loaded.variables.lookup("PLATFORM_FULL"))


def honored_in(full: Check, default: Check, document: Node) -> tuple[Diagnostic, ...]:
    """Return the keys that full mode honors here: a key may have no effect for a service of another kind."""
    without_effect = {found.diagnostic.path for found in full.all_findings if found.diagnostic.code == "no-effect"}
    fixed = Counter(found.diagnostic.path[:-1] for found in full.all_findings if found.fix)
    parts = _parts_without_effect(full)
    return tuple(
        diagnostic
        for diagnostic in default.honored
        # Of what chooses nodes, such a finding is about a part: one device instead of all.
        if diagnostic.path[-1] in _CHOOSES_NODES
        or not (diagnostic.path in without_effect or _is_left_out(diagnostic.path, fixed, document))
        if not _chooses_no_nodes(diagnostic.path, parts, document)
    )


def _parts_without_effect(full: Check) -> Counter[PathKey]:
    """Count for each path the parts of its value that have no effect in full mode."""
    codes = ("no-effect", "unsupported-key")
    paths = {found.diagnostic.path for found in full.all_findings if found.diagnostic.code in codes}
    return Counter(path[:depth] for path in paths for depth in range(len(path)))


def _chooses_no_nodes(path: PathKey, parts: Counter[PathKey], document: Node) -> bool:
    """Whether full mode chooses no nodes by a key of a service: by paths of devices, or by the roles of Swarm.

    Reserved devices choose nodes also with a message, such as that one device is requested instead of all.
    """
    is_such = path[2:] == ("devices",) or path[-1] == "placement"
    node = find_node(document, *map(str, path)) if is_such else None
    listed = node.get("constraints") if isinstance(node, Mapping) and len(node.entries) == 1 else node
    return isinstance(listed, Sequence) and 0 < len(listed.items) <= parts[path]


def _is_left_out(path: PathKey, fixed: Counter[PathKey], document: Node) -> bool:
    """Whether the fixes of full mode leave out each entry of a list or mapping."""
    return fixed[path] == len(_entries_of(find_node(document, *map(str, path)))) > 0


def turn_on(honored: Iterable[Diagnostic]) -> Entry:
    """Return the entry that turns full mode on; its comment has the keys that are honored then."""
    listed = honored_keys(honored)
    end = "" if listed.endswith("…") else "."
    reason = f"Honors keys that have no effect otherwise: {listed}{end}" if listed else "Full mode, as asked for."
    return Entry(("x-platform",), "full: true", reason)


def honored_keys(honored: Iterable[Diagnostic]) -> str:
    """List the keys that full mode would honor, by name."""
    names = dict.fromkeys(str(diagnostic.path[-1]) for diagnostic in honored)
    return join_some(names, _MAX_KEYS)


def obstacles(default: Check, full: Check, plan: Plan, document: Node) -> list[str]:
    """Return the reasons against full mode, whose plan it is: new losses, and what a cluster may lack."""
    required = (
        f"{dotted(found.path)} needs {found.kind} '{found.name}' in the cluster: it is external"
        for found in plan.required
        if found.kind != RUNTIME_CLASS
    )
    started = {service.service for service in full.services}
    parts = _parts_without_effect(full)
    chosen = (
        f"{dotted(key.path)} needs nodes for it, and the service could run on no other"
        for key in default.honored
        if key.path[-1] in _CHOOSES_NODES and key.path[1] in started
        if not _chooses_no_nodes(key.path, parts, document)
    )
    new = (
        f"{found.diagnostic.span.source.name}:{found.diagnostic.span.line}: {found.diagnostic.message}"
        for found in _new_losses(default, full)
    )
    provided = (f"services.{name} would be a program of this machine: --allow-providers" for name in plan.providers)
    return list(dict.fromkeys((*new, *required, *chosen, *provided)))


def is_worth_turning_on(default: Check, full: Check, plan: Plan, document: Node) -> bool:
    """Whether full mode, whose plan it is, honors keys and loses nothing."""
    return bool(honored_in(full, default, document)) and not obstacles(default, full, plan, document)


def _new_losses(default: Check, full: Check) -> Iterator[Finding]:
    """Yield the findings of full mode alone, but those within a key that has no effect without it."""
    known = {(found.diagnostic.code, found.diagnostic.path) for found in default.all_findings}
    honored = {
        found.diagnostic.path
        for found in default.all_findings
        if found.is_honored or is_honored_in_full_mode(found.diagnostic.path)
    }
    for found in full.all_findings:
        code, path = found.diagnostic.code, found.diagnostic.path
        is_fatal = found.effect is Effect.CANNOT_RUN or code == "needs-cluster-setting"
        is_within = (*path[:2], "extends") in honored or any(path[: n + 1] in honored for n in range(len(path)))
        # Two services in one pod start together; in two, the one has no part in the network of the other.
        is_within |= path[2:3] == ("depends_on",) and any((*path[:2], key) in honored for key in _JOINS)
        is_lost = found.effect is not Effect.NONE and (is_fatal or not is_within)
        if is_lost and not found.fix and (code, path) not in known:
            yield found


def full_mode_statements(findings: Iterable[Finding]) -> tuple[Statement, ...]:
    """Say for an explanation which keys of a service full mode would honor."""
    honored = (found.diagnostic for found in findings if found.is_honored)
    return tuple(Statement("full mode", f"would honor {dotted(found.path)}", found.span) for found in honored)
