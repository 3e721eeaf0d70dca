"""Plans as text: what any reader of YAML takes as it was meant."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from composeplat.compose.nodes import to_plain
from composeplat.compose.yaml_reader import read_nodes
from composeplat.diagnostics import Report, Source
from composeplat.render.manifests import FILE_MARK, render_files, render_json, render_yaml, to_yaml
from tests.conftest import ROOT, Project


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"a": "b"}, "a: b\n", id="mapping"),
        pytest.param({"a": {"b": {"c": 1}}}, "a:\n  b:\n    c: 1\n", id="nested"),
        pytest.param({"a": ["b", "c"]}, "a:\n- b\n- c\n", id="list"),
        pytest.param({"a": [{"b": 1, "c": 2}]}, "a:\n- b: 1\n  c: 2\n", id="list-of-mappings"),
        pytest.param({"a": [{"b": {"c": 1}}]}, "a:\n- b:\n    c: 1\n", id="mapping-in-a-list"),
        pytest.param({"a": [["b"], []]}, "a:\n- - b\n- []\n", id="list-in-a-list"),
        pytest.param({"a": {}, "b": [], "c": ""}, 'a: {}\nb: []\nc: ""\n', id="empty"),
        pytest.param({"a": True, "b": None, "c": 1, "d": 0.5}, "a: true\nb: null\nc: 1\nd: 0.5\n", id="types"),
        pytest.param({"a": "x\ny\n"}, "a: |\n  x\n  y\n", id="block"),
        pytest.param({"a": "x\ny"}, "a: |-\n  x\n  y\n", id="block-without-a-last-newline"),
        pytest.param({"a": ["x\n\ny\n"]}, "a:\n- |\n  x\n\n  y\n", id="block-in-a-list"),
        pytest.param({"a": " x\ny"}, 'a: " x\\ny"\n', id="indented-text"),
        pytest.param({"a": "100m", "b": "1Gi"}, "a: 100m\nb: 1Gi\n", id="quantities"),
        pytest.param([], "[]\n", id="nothing"),
    ],
)
def test_form(value: Any, expected: str) -> None:
    """Objects look as people write them."""
    assert expected == to_yaml(value)


TEXTS = [
    "", " ", "a", "a b", " a", "a ", "a: b", "a:b", "a #b", "a#b", "#a", "- a", "-", "--- a", "? a", "!a", "&a", "*a",
    "@a", "`a", "%a", "|", ">", "{a}", "[a]", "'a'", '"a"', "\\", "a\\b", "true", "True", "no", "No", "on", "y", "n",
    "null", "~", "NaN", ".inf", "1", "1.0", "01", "0x1F", "0o17", "1_000", "22:22", "190:20:30", "2024-01-02", "1e3",
    "+1", "-1", "=", "<<", "a\nb", "a\n", "\na", "a\n\n", "a\n b\n", "\ta", "a\tb", "a\r\nb", "a\x07b", "a\x7f", "\x85",
    "\u2028", "\ufeffa", "é", "漢字", "😀", "$A", "a=b", "x" * 500, "a: |\n  b", "---\n...", "a\n---\nb", "1m", "5h",
    "0m", "a\n\tb", "\xa0", "a,b", "C:\\x", "http://a/b?c=d&e", "key: [", "|-\n",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_any_text_comes_back(text: str) -> None:
    """A text is read back as the same text, by readers of YAML 1.1 and 1.2, as a value, an item and a key."""
    value = {"value": text, "list": [text, {"deep": text}], "keys": {text: 1}}

    written = to_yaml(value)

    (node,) = read_nodes(Source("x", ROOT, written), Report())
    assert value == yaml.safe_load(written)
    assert value == to_plain(node)


SHOP = """\
services:
  web: {image: nginx, ports: ['8080:80'], environment: {A: b}, depends_on: [db]}
  db: {image: postgres, volumes: ['data:/data']}
volumes: {data: {}}
"""


def test_forms_agree(project: Project) -> None:
    """YAML, JSON and files hold the same objects in the same order."""
    plan = project(SHOP).read().plan
    assert plan is not None
    objects = json.loads(json.dumps([desired.manifest for desired in plan.objects], default=str))

    listed = json.loads(render_json(plan))

    assert objects == list(yaml.safe_load_all(render_yaml(plan)))
    assert listed == {"apiVersion": "v1", "kind": "List", "items": objects}
    assert objects == [o for text in render_files(plan).values() for o in yaml.safe_load_all(text)]


def test_files(project: Project) -> None:
    """Each volume, service and endpoint has its file."""
    plan = project(SHOP).read().plan
    assert plan is not None

    assert list(render_files(plan)) == ["volume-data.yaml", "service-db.yaml", "service-web.yaml", "endpoint-web.yaml"]


def test_documents(project: Project) -> None:
    """Every object begins a document."""
    plan = project(SHOP).read().plan
    assert plan is not None

    text = render_yaml(plan)

    assert text.startswith("---\napiVersion: v1\nkind: PersistentVolumeClaim\n")
    assert text.splitlines().count("---") == len(plan.objects)
    assert text.endswith("\n")


def test_the_name_of_an_image_to_build(project: Project) -> None:
    """An image that is still to be built stands under the name it will have, in YAML and JSON."""
    plan = project("services: {web: {build: .}}").read().plan
    assert plan is not None

    assert "image: demo-web\n" in render_yaml(plan)
    assert '"image": "demo-web"' in render_json(plan)


def test_nothing() -> None:
    """A file's mark is a comment: it changes nothing of what is read."""
    assert yaml.safe_load(f"{FILE_MARK}\n") is None
