"""The published schemas and the names that they promise.

``docs/schemas/names.txt`` lists every diagnostic code and every field of the JSON output: scripts rely on them.
A name that is renamed or removed fails a test here. ``pytest tests/test_schemas.py --bless`` writes the list again;
commit it only if the change is intended, and give the document a new number (``platform/deploy/2``) if a reader would
break.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships no types
from jsonschema.exceptions import ValidationError  # type: ignore[import-untyped]

from composeplat.codes import CODES
from composeplat.codes.causes import CauseCode
from composeplat.local.supervisor import PartProcess
from tests.conftest import ROOT, Project
from tests.in_process import run_here
from tests.schemas import FOLDER, NAMES, checked, checked_event, fields, published

_GO_EVENT = re.compile(r'\.(?:[Tt]ell|[Ee]mit)\("([a-z-]+)"')
SCHEMAS = sorted(FOLDER.glob("*.json"))
SLEPT = {
    "schema": "platform/sleep/1", "environment": "shop", "namespace": "team", "status": "done", "services": ["web"],
    "in_development": [], "failures": [], "seconds": 1.5,
}  # fmt: skip


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.stem)
def test_schema(path: Path) -> None:
    """A schema is valid, and the page of the commands links to it."""
    Draft202012Validator.check_schema(json.loads(path.read_text()))

    assert f"(schemas/{path.name})" in (ROOT / "docs" / "commands.md").read_text()


def test_valid_document() -> None:
    """A valid document is returned unchanged."""
    assert checked(SLEPT) is SLEPT


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"services": "web"}, id="another-type"),
        pytest.param({"status": "asleep"}, id="an-unknown-value"),
        pytest.param({"more": 1}, id="an-undocumented-field"),
        pytest.param({"failures": [{"service": "web"}]}, id="a-missing-inner-field"),
    ],
)
def test_invalid_document(change: dict[str, object]) -> None:
    """A document that differs from its schema is an error."""
    with pytest.raises(ValidationError):
        checked({**SLEPT, **change})


def test_new_fields_are_allowed() -> None:
    """A published schema allows new fields: they are added without a new number."""
    Draft202012Validator(json.loads((FOLDER / "sleep.json").read_text())).validate({**SLEPT, "more": 1})


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(
            {"compose.yaml": "services:\n  web:\n    image: nginx\n    container_name: x\n"}, id="with-a-place"
        ),
        pytest.param({}, id="without"),
    ],
)
def test_messages(project: Project, files: dict[str, str]) -> None:
    """Messages as JSON match their schema."""
    lines = run_here("render", "--json-diagnostics", folder=project(files).path).stderr.splitlines()

    assert len(lines) == 1
    checked_event(lines[0])


def test_parts_of_the_local_cluster() -> None:
    """The supervisor writes the fields of a part as documented, before and after the part has run."""
    never = PartProcess({"name": "etcd"}).state()
    ended = PartProcess({"name": "etcd"}, starts=2, last_exit=1).state()

    parts = {"a": never, "b": ended}
    disk = {"folder": "", "used": {"volumes": 1}, "free": 0, "images": 0, "limit": None, "nearly_full": True}
    volume = {"namespace": "demo", "claim": "data", "storage_class": "local", "size": 1, "used": None}
    objects = {"size": 2, "used": 1, "limit": 3, "full": False}
    classes = {"local": {"enforces_sizes": False}}
    more = {"ports": {"api": 16443}, "storage_classes": classes, "volumes": [volume], "objects": objects, "disk": disk}
    checked({"schema": "platform/cluster/1", "running": True, "kubeconfig": "", "parts": parts, **more})


def test_events_of_the_link() -> None:
    """The schema of the progress events has the kinds that the Go program writes."""
    sources = (ROOT / "composeplat" / "dev" / "link" / "internal" / "machine").glob("*.go")
    texts = [path.read_text() for path in sources if not path.stem.endswith("_test")]
    written = {kind for text in texts for kind in _GO_EVENT.findall(text)}
    kinds = [event["properties"]["event"] for event in published("progress")["oneOf"]]

    assert written
    assert written <= {name for kind in kinds for name in kind.get("enum", [kind.get("const")])}


def promised_names() -> str:
    codes = sorted(f"code {name}: {code.severity}" for name, code in CODES.items())
    causes = sorted(f"cause {code}" for code in CauseCode)
    names = (line for path in SCHEMAS for line in fields(published(path.stem), path.stem))
    return "\n".join([*codes, *causes, *names]) + "\n"


def test_names_are_a_promise(request: pytest.FixtureRequest) -> None:
    """No diagnostic code, cause of a failure or field of the JSON output changes by accident."""
    if request.config.getoption("--bless"):
        NAMES.write_text(promised_names())

    assert NAMES.read_text().splitlines() == promised_names().splitlines(), "scripts rely on these names: see above"
