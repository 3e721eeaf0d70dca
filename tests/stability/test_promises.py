"""The names that users, their programs and deployed stacks rely on, as lists in ``promises/``.

- ``resources.txt``: type and URN of each resource of ``environment/``, which has an object of each kind. A name that
  changes makes Pulumi replace the object.
- ``objects.txt``: the parts of each object that Kubernetes can't change in place, or that others select by.
- ``cluster.txt``: labels, annotations and objects that the platform reads back from a cluster.
- ``command-line.txt``: commands, options, settings with their variables and configuration keys, exit statuses.
- ``python.txt``: names, arguments and attributes for programs.
- ``provider.txt``: types, inputs and outputs for programs in other languages.

Diagnostic codes and the fields of JSON have a list of their own: see ``tests/test_schemas.py``.

``pytest tests/stability --bless`` adds new names. It removes none: delete the line by hand, with a line in the
changelog, and only where ``docs/stability.md`` allows it.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pulumi
import pytest

import composeplat
from composeplat.cluster.api import FIELD_MANAGER
from composeplat.cluster.variables import SECRET_NAME
from composeplat.components.program import _registries as program_registries, declare, declare_configured
from composeplat.compose.options import SETTINGS
from composeplat.diagnostics import Exit
from composeplat.engine.history import secret_name
from composeplat.engine.provenance import record_key
from composeplat.names import LABEL_PREFIX, MANAGED_BY
from composeplat.plan import Plan
from composeplat.plan.resource_keys import ResourceKind
from composeplat.registry.credentials import read_logins
from tests.components.test_stack import run
from tests.conftest import ROOT, Folder

HERE = Path(__file__).parent
PROMISES = HERE / "promises"
#: The classes that a program of the user makes and reads.
COMPONENTS = (
    composeplat.ComposeStack,
    composeplat.Service,
    composeplat.ComposeService,
    composeplat.ComposeVolume,
    composeplat.ComposeNetwork,
    composeplat.ComposeEndpoints,
)
#: Ingresses for the endpoints, or HTTPRoutes.
GATEWAYS = ("", "infra/edge")
#: Arguments that ``platform deploy`` alone gives.
_OF_THE_DEPLOY = ("plan", "gate", "loader", "building", "needed", "rewritten")
_OWN_KEY = re.compile(r'LABEL_PREFIX\}/([a-z-]+)"')
_CONFIG_KEY = re.compile(r'config\.get(?:_object)?\("(\w+)"\)')
_VARIABLE = re.compile(r"^\| `([A-Z_]+)` \|", re.MULTILINE)
_FIXED_FIELDS = ("selector", "podSelector", "clusterIP", "accessModes", "storageClassName", "serviceName", "type")


def plan_of_each_kind(folder: Path, *, gateway: str = "") -> Plan:
    copy = folder / "environment"
    shutil.copytree(HERE / "environment", copy, dirs_exist_ok=True)
    reading = Folder(copy, {"TOKEN": "do-not-print"}).read(
        "compose.yaml",
        "more.yaml",
        name="shop",
        namespace="team",
        registry="registry.example.com/team",
        gateway=gateway,
        pull_secret=True,
        logins=read_logins([{"address": "registry.example.com", "username": "me", "password": "do-not-print"}]),
    )
    assert reading.plan is not None, reading.messages
    return reading.plan


# the lists ------------------------------------------------------------------------------------------------------------


def resources(folder: Path) -> Iterator[str]:
    for gateway in GATEWAYS:
        plan = plan_of_each_kind(folder, gateway=gateway)
        registered = run(partial(declare, plan, cluster="here", gate=None, builder=""), preview=True)
        yield from urns(registered.requests)


def urns(requests: list[Any], environment: str = "shop") -> Iterator[str]:
    """The URNs as the engine makes them; the mocks of Pulumi's SDK have the type of the parent alone."""
    chains = {"": "", "pulumi:pulumi:Stack::shop-team": ""}
    for request in requests:
        parent = "::".join(request.parent.rpartition("$")[2].split("::")[-2:])
        chain = f"{chains[parent]}{request.type}"
        chains[f"{request.type}::{request.name}"] = f"{chain}$"
        yield f"urn:pulumi:team::{environment}::{chain}::{request.name}"


def objects(folder: Path) -> Iterator[str]:
    for gateway in GATEWAYS:
        for desired in plan_of_each_kind(folder, gateway=gateway).objects:
            head = f"{desired.manifest['apiVersion']} {desired.kind} {desired.name}"
            yield from (f"{head} {fact}" for fact in _facts(desired.manifest))


def _facts(manifest: dict[str, Any]) -> Iterator[str]:
    yield from _metadata("", manifest["metadata"])
    spec = manifest.get("spec") or {}
    yield from (f"{name} {json.dumps(spec[name], sort_keys=True)}" for name in _FIXED_FIELDS if name in spec)
    for claim in spec.get("volumeClaimTemplates") or ():
        yield f"claim {claim['metadata']['name']}"
        yield from _metadata("claim ", claim["metadata"])
    template = (spec.get("jobTemplate") or {}).get("spec", spec).get("template")
    if template:
        yield from _metadata("pod ", template.get("metadata") or {})
        for section in ("containers", "initContainers", "volumes"):
            yield from (f"{section} {part['name']}" for part in template["spec"].get(section) or ())
    for section in ("data", "stringData", "binaryData"):
        yield from (f"{section} {key}" for key in manifest.get(section) or ())


def _metadata(of: str, metadata: dict[str, Any]) -> Iterator[str]:
    yield from (f"{of}label {key}={value}" for key, value in (metadata.get("labels") or {}).items())
    yield from (f"{of}annotation {key}" for key in metadata.get("annotations") or {})


def cluster(_: Path) -> Iterator[str]:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "composeplat").rglob("*.py")]
    yield from (f"key {LABEL_PREFIX}/{name}" for source in sources for name in _OWN_KEY.findall(source))
    yield f"project {'/'.join(record_key('ENVIRONMENT'))}"
    yield f"history Secret/{secret_name('ENVIRONMENT', 'NUMBER')}"
    yield f"variables Secret/{SECRET_NAME}"
    yield f"field manager {FIELD_MANAGER}"
    yield f"managed by {MANAGED_BY}"


def command_line(_: Path) -> Iterator[str]:
    grammar = json.loads((ROOT / "composeplat" / "cli" / "grammar.json").read_text(encoding="utf-8"))
    for command, entry in grammar.items():
        yield command
        for argument in entry["arguments"]:
            yield f"{command} argument: {_show(argument)}"
        for option in entry["options"]:
            yield f"{command} {', '.join(option['names'])}: {_show(option)}"
    for row in SETTINGS.values():
        yield f"setting {row.name}: {row.variable or 'no variable'}, composeplat:{row.config_key}"
    program = inspect.getsource(declare_configured) + inspect.getsource(program_registries)
    yield from (f"configuration composeplat:{key}" for key in _CONFIG_KEY.findall(program))
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    yield from (f"variable {name}" for name in _VARIABLE.findall(page.partition("\n## Environment variables\n")[2]))
    yield from (f"exit status {status.value}: {status.name}" for status in Exit)


def _show(part: dict[str, Any]) -> str:
    value = part["value"]
    kind = "flag" if value is None else "a value" if isinstance(value, str) else " | ".join(value)
    return f"{kind}{', may repeat' if part['repeats'] else ''}"


def python(_: Path) -> Iterator[str]:
    yield from (f"composeplat.{name}" for name in composeplat.__all__)
    for cls in COMPONENTS:
        yield from (f"{cls.__name__}.{name}: {kind}" for name, kind in _attributes(cls))
    for cls in (composeplat.ComposeStack, composeplat.Service):
        for name, parameter in inspect.signature(cls).parameters.items():
            if name not in _OF_THE_DEPLOY:
                yield f"{cls.__name__}({parameter})"


def _attributes(cls: type) -> Iterator[tuple[str, str]]:
    """Yield the public attributes and properties of a component with their types, as they are written."""
    for owner in cls.__mro__[: cls.__mro__.index(pulumi.ComponentResource)]:
        yield from inspect.get_annotations(owner).items()
        for name, value in vars(owner).items():
            read = getattr(value, "func", getattr(value, "fget", None))
            if read is not None and not name.startswith("_"):
                yield name, inspect.get_annotations(read)["return"]


def provider(_: Path) -> Iterator[str]:
    schema = json.loads((ROOT / "composeplat" / "components" / "schema.json").read_text(encoding="utf-8"))
    for section, parts in (("resources", ("inputProperties", "properties")), ("types", ("properties",))):
        for token, found in schema[section].items():
            for part in parts:
                for name, kind in found[part].items():
                    shape = {key: value for key, value in kind.items() if key != "description"}
                    yield f"{token} {part} {name}: {json.dumps(shape, sort_keys=True)}"


LISTS: dict[str, Callable[[Path], Iterator[str]]] = {
    "resources": resources,
    "objects": objects,
    "cluster": cluster,
    "command-line": command_line,
    "python": python,
    "provider": provider,
}


@pytest.mark.parametrize("name", LISTS)
def test_promise(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """No name of the list goes, and none comes without a line in it."""
    path = PROMISES / f"{name}.txt"
    promised = set(path.read_text(encoding="utf-8").splitlines()) if path.exists() else set()
    found = set(LISTS[name](tmp_path))
    if request.config.getoption("--bless"):
        promised |= found
        path.write_text("".join(f"{line}\n" for line in sorted(promised)), encoding="utf-8")

    assert sorted(promised - found) == [], "somebody relies on these names: see docs/stability.md"
    assert sorted(found - promised) == [], "new names: pytest tests/stability --bless promises them"


def test_promises_have_each_kind(tmp_path: Path) -> None:
    """Each kind of resource is in the list, so that none can be renamed unseen."""
    names = {urn.rpartition("::")[2].partition("/")[0].removeprefix("shop-") for urn in resources(tmp_path)}

    assert {str(kind) for kind in ResourceKind} <= names
