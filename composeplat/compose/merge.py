"""Merge one definition into another, by Compose's rules.

Owns what happens to each key when several files set it: replaced, merged by name, appended, or made one list; and the
tags ``!reset`` and ``!override``.
Must not know what the keys mean, or read files: it merges two trees of nodes into one, with their places.

Rules are rows keyed by path pattern. Without a row, mappings are merged, lists appended, and scalars replaced.
Entries of a list with the same identity (:mod:`~composeplat.compose.list_entries`) are then deduplicated: the later
entry takes the place of the earlier one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import PurePath

from composeplat.compose.discovery import PLATFORM_NAMES
from composeplat.compose.keys import path_of_key
from composeplat.compose.list_entries import IDENTITIES, KEYS_OF_PAIRS, Pattern, by_target, new_entries
from composeplat.compose.nodes import OVERRIDE, RESET, Mapping, Node, Scalar, Sequence, kind_of
from composeplat.compose.system_paths import without_mount
from composeplat.diagnostics import PathKey, Report, dotted


def merge(base: Node, over: Node, report: Report) -> Node:
    """Merge ``over`` into ``base``."""
    return _merge(base, over, (), report)


def merge_service(name: str, base: Node, over: Node, report: Report) -> Node:
    """Merge a service into the one that it extends, whose own tags are applied before."""
    path = ("services", name)
    return _merge(_apply_tags(base, path, None), over, path, report)


def apply_tags(node: Node, report: Report | None = None) -> Node:
    """Apply the remaining tags after the last merge: drop entries with ``!reset``; deduplicate lists.

    Two mounts of one file at the same path are deduplicated as Compose does, and reported.
    """
    return _apply_tags(node, (), report)


def _apply_tags(node: Node, path: PathKey, report: Report | None) -> Node:
    match node:
        case Mapping():
            entries = {
                name: (key, _apply_tags(value, (*path, name), report))
                for name, (key, value) in node.entries.items()
                if value.tag != RESET
            }
            return Mapping(node.span, entries, "", node.size)
        case Sequence():
            if report is not None:
                _report_mount_clashes(node.items, path, report)
            return _filter_items(node, path, report)
        case Scalar() if node.tag:
            return replace(node, tag="")
        case _:
            return node


def _filter_items(node: Sequence, path: PathKey, report: Report | None) -> Sequence:
    """Drop reset entries and duplicates; the other entries keep their indices."""
    kept = [(index, item) for index, item in node.indexed_items if item.tag != RESET]
    identify = IDENTITIES.get(_pattern(path))
    if identify is not None:
        kept = list({identify(item): (index, item) for index, item in kept}.values())
    indices = tuple(index for index, _ in kept) if len(kept) < len(node.items) else node.indices
    items = [_apply_tags(item, (*path, index), report) for index, item in kept]
    return Sequence(node.span, items, "", node.size, indices)


def _merge(base: Node, over: Node, path: PathKey, report: Report) -> Node:
    is_null = isinstance(over, Scalar) and over.is_null
    if over.tag in (OVERRIDE, RESET) or (base.tag == RESET and not is_null):
        return over
    pattern = _pattern(path)
    rule = _RULES.get(pattern) or _rule_of_two_forms(pattern, base, over)
    if rule is not None:
        base, over = rule(base), rule(over)
    # A command of nothing is that of the image.
    if is_null and rule is not _replaced:
        return base
    is_other_driver = pattern == ("services", "*", "logging") and not _same_driver(base, over)
    if rule is _replaced or is_other_driver or (isinstance(base, Scalar) and base.is_null):
        return over
    return _merge_by_type(base, over, path, report)


def _rule_of_two_forms(pattern: Pattern, base: Node, over: Node) -> Callable[[Node], Node] | None:
    """Return the rule for a key that has different forms in the two files; its equal forms are merged as usual."""
    is_null = isinstance(over, Scalar) and over.is_null
    return None if is_null or type(base) is type(over) else _RULES_OF_TWO_FORMS.get(pattern)


def _merge_by_type(base: Node, over: Node, path: PathKey, report: Report) -> Node:
    """Merge two values that should have the same type."""
    match base, over:
        case Mapping(), Mapping():
            return _merge_mappings(base, over, path, report)
        case Sequence(), Sequence():
            _report_mount_clashes(base.items, path, report)
            _report_mount_clashes(over.items, path, report)
            _report_removed_mounts(base.items, over.items, path, report)
            # First each alone: what counts of a list is the last entry of a name, also where the other list has it.
            earlier, later = _deduplicate(base.items, path), _deduplicate(over.items, path)
            added = new_entries(later, earlier) if _pattern(path) not in IDENTITIES else later
            items = _deduplicate([*_replaced_by(later, earlier, path), *added], path)
            return Sequence(over.span, items, "", base.size + over.size)
        case Scalar(), Scalar():
            return over
        case _:
            expected = "a single value" if isinstance(base, Scalar) else kind_of(base)
            where = dotted(path) or "the definition"
            message = f"{where} must be {expected}, as in the file it overrides, not {kind_of(over)}"
            report.add("invalid-type", over.span, path, message)
            return base


def _merge_mappings(base: Mapping, over: Mapping, path: PathKey, report: Report) -> Mapping:
    entries = dict(base.entries)
    for name, (key, value) in over.entries.items():
        known = entries.get(name)
        if known is None:
            entries[name] = (key, value)
        else:
            # The key of two mappings keeps its first place, which messages then name.
            merged = _merge(known[1], value, (*path, name), report)
            entries[name] = (key if merged is value else known[0], merged)
    return Mapping(base.span, entries, base.tag, base.size + over.size)


def _pattern(path: PathKey) -> Pattern:
    """Write a path with ``*`` for user-defined names."""
    steps = [str(step) if isinstance(step, str) else "*" for step in path_of_key(path)]
    if len(steps) > 1 and steps[0] in _NAMED:
        steps[1] = "*"
    for keys in _NAMED_KEYS:
        name = slice(2 + len(keys), 3 + len(keys))
        if steps[2 : name.start] == keys and steps[name]:
            steps[name] = ["*"]
    return tuple(steps)


#: Keys of a service whose entries have names that the user chooses.
_NAMED_KEYS = (["networks"], ["ulimits"], ["build", "ulimits"], ["provider", "options"])
_NAMED = ("services", "volumes", "networks", "secrets", "configs", "models")


# conversions before merging -----------------------------------------------------------------------------


def _replaced(node: Node) -> Node:
    return node


def _as_list(node: Node, *, several: bool = False) -> Node:
    """Convert ``NAME: value`` pairs to a list of ``NAME=value``, and a single text to a list with one entry.

    With ``several``, a name may have a list of values.
    """
    match node:
        case Mapping():
            items: list[Node] = []
            for _, (key, value) in sorted(node.entries.items()):
                values = value.items if several and isinstance(value, Sequence) and value.tag != RESET else [value]
                items += [_joined(key, item) for item in values]
            return Sequence(node.span, items, node.tag, node.size)
        case Scalar() if not node.is_null:
            return Sequence(node.span, [node], "", 2)
        case _:
            return node


def _joined(key: Scalar, value: Node) -> Node:
    if value.tag == RESET:
        return Scalar(value.span, key.text, key.text, tag=RESET)
    if not isinstance(value, Scalar):
        return value
    if value.is_null:
        return Scalar(key.span, key.text, key.text)
    written, text = f"{key.text}={value.written}", f"{key.text}={value.text}"
    return Scalar(value.span, text, written, is_substituted=value.is_substituted)


def _as_mapping(node: Node, inner: str = "", default: str = "") -> Node:
    """Convert the list ``[a, b]`` to the mapping ``{a: , b: }``."""
    if not isinstance(node, Sequence):
        return node
    entries: dict[str, tuple[Scalar, Node]] = {}
    for item in node.items:
        if not isinstance(item, Scalar):
            return node
        value: Node = Scalar(item.span, "", "", plain=True, tag=item.tag)
        if inner:
            key = Scalar(item.span, inner, inner)
            value = Mapping(item.span, {inner: (key, Scalar(item.span, default, default))}, item.tag, 3)
        entries[item.text] = (item, value)
    return Mapping(node.span, entries, node.tag, node.size)


def _as_build(node: Node) -> Node:
    if isinstance(node, Scalar) and not node.is_null:
        key = Scalar(node.span, "context", "context")
        return Mapping(node.span, {"context": (key, node)}, node.tag, 3)
    return node


def _with_name_of_external(node: Node) -> Node:
    """Convert ``external: {name: a}`` of old files to ``external: true`` and ``name: a``."""
    external = node.get("external") if isinstance(node, Mapping) else None
    if not isinstance(node, Mapping) or not isinstance(external, Mapping):
        return node
    names = {name: entry for name, entry in external.entries.items() if name == "name"}
    key, _ = node.entries["external"]
    is_external = Scalar(external.span, "true", "true", plain=True, tag=external.tag)
    entries = {**names, **node.entries, "external": (key, is_external)}
    return Mapping(node.span, entries, node.tag, node.size)


def _as_requests(node: Node) -> Node:
    """Convert ``gpus: all`` to a list with one request."""
    if not isinstance(node, Scalar) or node.is_null:
        return node
    key = Scalar(node.span, "count", "count")
    return Sequence(node.span, [Mapping(node.span, {"count": (key, node)}, "", 3)], node.tag, 4)


def _same_driver(base: Node, over: Node) -> bool:
    if not (isinstance(base, Mapping) and isinstance(over, Mapping)):
        return True
    first, second = base.get("driver"), over.get("driver")
    return not (isinstance(first, Scalar) and isinstance(second, Scalar)) or first.text == second.text


#: Keys of a service whose mapping, or single text, is converted to a list.
_LIST_KEYS = [*KEYS_OF_PAIRS, "dns", "dns_opt", "dns_search", "env_file", "label_file", "tmpfs"]


def _rules() -> dict[Pattern, Callable[[Node], Node]]:
    rules: dict[Pattern, Callable[[Node], Node]] = {}
    service = ("services", "*")
    for key in ("command", "entrypoint", "healthcheck.test"):
        rules[(*service, *key.split("."))] = _replaced
    for key in _LIST_KEYS:
        rules[(*service, *key.split("."))] = _as_list
    for key in ("build.extra_hosts", "extra_hosts"):
        rules[(*service, *key.split("."))] = partial(_as_list, several=True)
    for section in ("networks", "volumes", "secrets", "configs"):
        rules[(section, "*")] = _with_name_of_external
        rules[(section, "*", "labels")] = _as_list
    rules[(*service, "build")] = _as_build
    rules[(*service, "depends_on")] = partial(_as_mapping, inner="condition", default="service_started")
    rules[(*service, "networks")] = rules[(*service, "models")] = _as_mapping
    rules[(*service, "ulimits", "*")] = _replaced
    rules[("models", "*", "runtime_flags")] = _replaced
    return rules


_RULES = _rules()
_RULES_OF_TWO_FORMS: dict[Pattern, Callable[[Node], Node]] = {
    ("services", "*", "gpus"): _as_requests,
    ("services", "*", "build", "no_cache_filter"): _replaced,
    ("services", "*", "build", "ulimits", "*"): _replaced,
    ("services", "*", "provider", "options", "*"): _replaced,
}


# lists ---------------------------------------------------------------------------------------------------------------


def _deduplicate(items: list[Node], path: PathKey) -> list[Node]:
    """Return the last entry of each name, in the place of the first."""
    identify = IDENTITIES.get(_pattern(path))
    return items if identify is None else list({identify(item): item for item in items}.values())


def _replaced_by(over: list[Node], base: list[Node], path: PathKey) -> list[Node]:
    """Put later entries in the place of those that one file may have twice: a host's addresses, volumes in memory."""
    is_tmpfs = _pattern(path) == ("services", "*", "tmpfs")
    if not is_tmpfs and path[-1:] != ("extra_hosts",):
        return base
    later = {_head(item): item for item in over if is_tmpfs or item.tag == RESET}
    return [later.get(_head(item), item) for item in base]


def _head(item: Node) -> object:
    """Return the text before the first ``=`` or ``:``."""
    return re.split("[=:]", item.text)[0] if isinstance(item, Scalar) else id(item)


def _report_mount_clashes(items: list[Node], path: PathKey, report: Report) -> None:
    """Report two mounts at the same path in one list; a later file may replace a mount."""
    if _pattern(path) != ("services", "*", "volumes"):
        return
    seen: set[object] = set()
    for where, item in (((*path, index), item) for index, item in enumerate(items) if item.tag != RESET):
        target = by_target(item)
        if target in seen:
            shown = _shown_part(item, "target")
            message = f"{dotted(where)} mounts at the same path as another volume of this service: {shown}"
            report.add("duplicate-mount", item.span, where, message, "remove one of them")
        seen.add(target)


def _report_removed_mounts(base: list[Node], over: list[Node], path: PathKey, report: Report) -> None:
    """Report mounts that the platform file removes: Docker Compose, which does not read that file, has them."""
    if _pattern(path) != ("services", "*", "volumes"):
        return
    mounted = {by_target(item): item for item in base if item.tag != RESET}
    for index, item in enumerate(over):
        removed = mounted.get(by_target(item))
        if item.tag == RESET and removed is not None and PurePath(item.span.source.name).name in PLATFORM_NAMES:
            where = (*path, index)
            message = f"{dotted(where)} removes a mount that Docker Compose has: {_shown_part(removed, 'source')}"
            report.add("removed-mount", item.span, where, message, without_mount(by_target(item)))


def _shown_part(mount: Node, key: str) -> str:
    part = mount.get(key) if isinstance(mount, Mapping) else mount
    return part.shown if isinstance(part, Scalar) else "a volume"
