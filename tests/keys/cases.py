"""The case files beside this module: how they are found, read and compared.

A file of ``tests/keys/<section>/<key>.yaml`` shows what one key does, ``values/`` has the rows of the specification's
other tables, ``rulings/`` the rulings that are no key's, and ``full/`` the keys of full mode, which its files turn on::

    says: deploy.replicas is the number of pods      # the behavior, as a message
    handling: supported                              # as in composeplat.compose.keys; files of keys alone
    definition: |                                    # compose.yaml
      services: ...
    files: {".env": "TAG=1"}                         # more files; {text, mode} or {size} where text is not enough
    use: [a.yaml, b.yaml]                            # files named with -f
    shell: {TAG: "1"}                                # variables of the shell
    settings: {domain: ""}                           # fields of the request that differ from the usual ones
    messages: []                                     # every error and warning, in order; none where left out
    notes: []                                        # every note
    names: [Service/web, Deployment/web]             # every object
    objects: {Service/web: {spec: {type: ClusterIP}}}
    pod: {Deployment/web: {restartPolicy: !absent }}
    container: {Deployment/web: {args: [a, b]}}
    environment: {web: {A: "1"}}                     # all variables of a service
    images: {web: {build: {context: ./app}}}         # what is built; paths are relative to the project
    edges: ["web waits for db: service_started"]     # every edge
    urls: ["https://web-default.example.com"]        # every address
    watch: {web: [{action: sync, path: ./src}]}      # the rules of a service; paths are relative to the project

A mapping is found where all its entries are found; a list must have the same length, and each of its items be found.
A case with ``deviates`` shows what should be and, in its words, why it is not yet.
``!absent`` says that something is not there, ``!exactly`` that a mapping has nothing more.
A file with several cases has them under ``cases``, each with a ``says`` of its own.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from composeplat.compose.keys import ROWS, Row
from composeplat.plan.templates import pod_template
from tests.conftest import Folder, Reading

HERE = Path(__file__).parent
COMPOSE = "compose.yaml"

#: The folder of each section of the table of keys; the others begin with the section's own words.
_FOLDERS = {"": "top-level", "endpoints": "endpoints", "endpoints.*": "endpoints.route"}

_TEMPLATES = {"template", "jobTemplate"}
EXPECTATIONS = ("names", "objects", "pod", "container", "environment", "images", "edges", "urls", "watch")
_FIELDS = {"says", "deviates", "definition", "files", "use", "shell", "settings", "messages", "notes", *EXPECTATIONS}
_OF_FILE = {"says", "handling", "no_effect", "table", "row", "cases"}


class Absent:
    """What ``!absent`` is for."""


@dataclass(frozen=True)
class Exactly:
    """What ``!exactly`` is for."""

    value: Mapping[Hashable, Any]


class _Loader(yaml.CSafeLoader):
    """Reads the case files."""


def _read_exactly(loader: _Loader, node: yaml.Node) -> Exactly:
    assert isinstance(node, yaml.MappingNode)
    return Exactly(loader.construct_mapping(node, deep=True))


_Loader.add_constructor("!absent", lambda _loader, _node: Absent())
_Loader.add_constructor("!exactly", _read_exactly)


@dataclass(frozen=True)
class Case:
    """One definition and the result."""

    title: str
    data: Mapping[str, Any]
    full: bool = False
    """Whether the case is one of full mode."""

    def write(self, folder: Folder, *, definition: str | None = None) -> Folder:
        """Write the files of the case, with modes that no umask changes."""
        text = self.data.get("definition", "") if definition is None else definition
        for name, content in {COMPOSE: text, **self.data.get("files", {})}.items():
            given = content if isinstance(content, dict) else {"text": content}
            folder.write({name: given["text"] if "text" in given else "x" * given["size"]})
            (folder.path / name).chmod(int(given.get("mode", "644"), 8))
        return dataclasses.replace(folder, shell=self.data.get("shell", {}))

    def read(self, folder: Folder, *, definition: str | None = None, full: bool | None = None) -> Reading:
        written = self.write(folder, definition=definition)
        settings = {"full": self.full if full is None else full, **self.data.get("settings", {})}
        return written.read(*self.data.get("use", ()), **settings)


@dataclass(frozen=True)
class CaseFile:
    """A file of cases."""

    path: Path
    data: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.path.relative_to(HERE).with_suffix(""))

    @property
    def cases(self) -> list[Case]:
        return [Case(row["says"], row, self.is_full) for row in self.data.get("cases") or [self.data]]

    @property
    def is_full(self) -> bool:
        return self.path.relative_to(HERE).parts[0] == "full"

    def unknown_fields(self) -> set[str]:
        if "cases" not in self.data:
            return set(self.data) - _FIELDS - _OF_FILE
        inner = {name for item in self.data["cases"] for name in item}
        return (set(self.data) - _OF_FILE) | (inner - _FIELDS)


@cache
def case_files() -> list[CaseFile]:
    found = sorted(HERE.rglob("*.yaml"))
    return [CaseFile(path, yaml.load(path.read_text(), Loader=_Loader)) for path in found]  # noqa: S506 -- a safe loader


def file_of(row: Row) -> str:
    """Name the file of a row: ``service.build/args``."""
    section = _FOLDERS.get(row.section)
    if section is None:
        args = [word for word in row.section.split(".") if word != "*"]
        section = ".".join([{"services": "service", "volumes": "volume"}.get(args[0], args[0]), *args[1:]])
    return f"{section}/{row.key}"


ROW_OF = {file_of(row): row for row in ROWS}
#: The rows of full mode, by their file.
FULL_ROW_OF = {f"full/{name}": row for name, row in ROW_OF.items() if row.full}


# what was found -------------------------------------------------------------------------------------------------------


def found_in(reading: Reading, folder: Path) -> dict[str, Any]:
    """Everything a case may speak of, in the shape it does."""
    plan = reading.plan
    assert plan is not None, reading.messages
    objects = {f"{o.kind}/{o.name}": o.manifest for o in plan.objects}
    pods = {name: pod_template(m)["spec"] for name, m in objects.items() if m.get("spec", {}).keys() & _TEMPLATES}
    return {
        "names": reading.names,
        "objects": objects,
        "pod": pods,
        "container": {name: pod["containers"][0] for name, pod in pods.items()},
        "environment": {service.name: _variables(objects, service.cluster_name) for service in plan.services},
        "images": {image.service: _plain(dataclasses.asdict(image), folder) for image in plan.images},
        "edges": [
            f"{e.service} waits for {e.dependency}: {e.condition}" + ("" if e.required else " (optional)")
            for e in plan.edges
        ],
        "urls": [url for endpoint in plan.endpoints for url in endpoint.urls],
        "watch": watch_rules(reading, folder),
    }


def watch_rules(reading: Reading, folder: Path) -> dict[str, Any]:
    services = reading.loaded.project.services.values()
    return {s.name: [_plain(dataclasses.asdict(rule), folder) for rule in s.watch] for s in services}


def _variables(objects: Mapping[str, Any], service: str) -> dict[str, str]:
    data = objects.get(f"Secret/{service}-env", {}).get("data", {})
    return {name: base64.b64decode(value).decode() for name, value in data.items()}


def _plain(value: Any, folder: Path) -> Any:
    match value:
        case dict():
            return {key: _plain(item, folder) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item, folder) for item in value]
        case str():
            return value.replace(str(folder), ".")
        case _:
            return value


def differences(expected: Any, found: Any, where: str) -> Iterator[str]:
    """Say what of the expected is not found; see the module's docstring for what counts as found."""
    match expected:
        case Exactly():
            more = sorted(set(found) - set(expected.value)) if isinstance(found, dict) else []
            yield from (f"{where}.{key} is {found[key]!r}, and should not be there" for key in more)
            yield from differences(expected.value, found, where)
        case dict() if isinstance(found, dict):
            for key, value in expected.items():
                if isinstance(value, Absent):
                    if key in found:
                        yield f"{where}.{key} is {found[key]!r}, and should not be there"
                elif key not in found:
                    yield f"{where}.{key} is missing; there are: {', '.join(map(str, found)) or 'none'}"
                else:
                    yield from differences(value, found[key], f"{where}.{key}")
        case list() if isinstance(found, list):
            if len(expected) != len(found):
                yield f"{where} is {found!r}, not {expected!r}"
            for index, (item, other) in enumerate(zip(expected, found, strict=False)):
                yield from differences(item, other, f"{where}[{index}]")
        case _:
            shown = found if isinstance(found, bool | int | float | str | list | dict | None) else str(found)
            if type(expected) is not type(shown) or expected != shown:
                yield f"{where} is {shown!r}, not {expected!r}"


# a definition without a key -------------------------------------------------------------------------------------------


def has_key(definition: str, row: Row) -> bool:
    return _take_out(yaml.compose(definition, Loader=yaml.SafeLoader), _steps(row)) > 0


def without(definition: str, row: Row) -> str:
    """Write the definition again with the row's key taken out wherever it stands."""
    root = yaml.compose(definition, Loader=yaml.SafeLoader)
    _take_out(root, _steps(row))
    return str(yaml.serialize(root))


def _steps(row: Row) -> list[str]:
    return [*row.section.split("."), row.key] if row.section else [row.key]


def _take_out(node: yaml.Node | None, steps: list[str]) -> int:
    step, *rest = steps
    if isinstance(node, yaml.SequenceNode) and step == "*":
        return sum(_take_out(item, rest) for item in node.value)
    if not isinstance(node, yaml.MappingNode):
        return 0
    if rest:
        return sum(_take_out(value, rest) for key, value in node.value if step in ("*", key.value))
    kept = [(key, value) for key, value in node.value if key.value != step]
    taken = len(node.value) - len(kept)
    node.value = kept
    return taken
