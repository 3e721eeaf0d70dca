"""``platform graph``: which nodes and edges there are, and that no text can break out of the notations."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Mapping

import pytest
from hypothesis import given, strategies as st

from composeplat.plan.service_graph import Graph, GraphEdge, Node, NodeKind, make_graph
from composeplat.render.graph_layout import Layout, Size, lay_out
from composeplat.render.graph_svg import render_svg
from composeplat.render.graph_text import render_dot, render_mermaid
from tests.conftest import Folder, Project
from tests.in_process import run_here

SHOP = """\
name: shop
services:
  web:
    image: nginx
    ports: ["8080:80"]
    depends_on: {api: {condition: service_healthy}, cache: {condition: service_started}}
  api:
    build: .
    ports: ["9000"]
    scale: 3
    depends_on: [migrate]
    volumes: ["data:/data", "data:/copy:ro"]
  migrate: {image: tool, restart: "no"}
  cache: {image: redis, volumes: ["kept:/data"]}
volumes: {data: {size: 5Gi}, kept: {}}
endpoints:
  front:
    - {path: /, service: web, port: 80}
    - {path: /api, service: api, port: 9000}
"""
SVG = "{http://www.w3.org/2000/svg}"


def graph_of(folder: Folder) -> Graph:
    reading = folder.read()
    assert reading.plan is not None, reading.messages
    return make_graph(reading.loaded.project, reading.plan)


def test_nodes(project: Project) -> None:
    """Endpoints, services and volumes are nodes, with a short description."""
    graph = graph_of(project(SHOP))

    assert {node.key: node.details for node in graph.nodes} == {
        "endpoint/front": ("https://front-default.example.com",),
        "endpoint/web": ("https://web-default.example.com",),
        "service/web": ("Deployment", "nginx"),
        "service/api": ("StatefulSet, 3 replicas", "demo-api, built"),
        "service/migrate": ("Job", "tool"),
        "service/cache": ("StatefulSet", "redis"),
        "volume/data": ("5Gi",),
        "volume/kept": ("1Gi",),
    }


def test_edges(project: Project) -> None:
    """Routes, dependencies with their conditions, and mounts are edges; those between the same nodes are one."""
    graph = graph_of(project(SHOP))

    assert sorted((edge.source, edge.target, edge.label) for edge in graph.edges) == [
        ("endpoint/front", "service/api", "/api to :9000"),
        ("endpoint/front", "service/web", "/ to :80"),
        ("endpoint/web", "service/web", "/ to :80"),
        ("service/api", "service/migrate", "started"),
        ("service/api", "volume/data", "/data, /copy, read-only"),
        ("service/cache", "volume/kept", "/data"),
        ("service/web", "service/api", "healthy"),
        ("service/web", "service/cache", "started"),
    ]


def test_networks_in_full_mode(project: Project) -> None:
    """Networks that keep services apart are nodes; others tie nothing together."""
    text = """\
services:
  web: {image: nginx, networks: [front]}
  db: {image: db, networks: [back]}
networks: {front: {}, back: {}}
"""
    kept_apart = graph_of(project({"compose.yaml": text + "x-platform: {full: true}\n"}))
    together = graph_of(project(text))

    assert [edge.target for edge in kept_apart.edges] == ["network/front", "network/back"]
    assert [node.kind for node in together.nodes] == ["service", "service"]


def test_some_services(project: Project) -> None:
    """Named services come with what they need."""
    outcome = run_here("graph", "cache", folder=project(SHOP).path).assert_success()

    assert outcome.stdout == (
        'flowchart LR\n    n1["cache<br>StatefulSet<br>redis"]\n    n2[("kept<br>1Gi")]\n    n1 -->|"/data"| n2\n'
    )


def test_invalid(project: Project) -> None:
    """Nothing is printed of an invalid definition."""
    run_here("graph", folder=project("services: {web: {}}").path).assert_invalid()


def test_without_a_domain(project: Project) -> None:
    """An endpoint has no address as long as no domain is known."""
    outcome = run_here("graph", "--format", "dot", folder=project(SHOP).path).assert_success()

    assert 'n1 [shape=oval, label="web"];' in outcome.stdout
    assert "invalid" not in outcome.stdout


# the notations --------------------------------------------------------------------------------------------------------

TEXTS = st.text(max_size=30) | st.sampled_from(
    [
        '"]; evil',
        "</text><script>",
        "%%{init: {}}%%",
        "click n1 href",
        "a\\",
        "\\N",
        "&quot;",
        "#quot;",
        "`**b**`",
        "]]>",
    ]
)


def graph_with(name: str, detail: str, label: str) -> Graph:
    nodes = tuple(Node(kind=kind, name=name, details=(detail,)) for kind in NodeKind)
    edges = tuple(GraphEdge(first.key, second.key, label) for first, second in itertools.pairwise(nodes))
    return Graph(title=name, nodes=nodes, edges=edges)


@given(TEXTS, TEXTS, TEXTS)
def test_mermaid_is_closed(name: str, detail: str, label: str) -> None:
    """A text is letters, digits and codes of characters: none ends a label or is a directive."""
    lines = render_mermaid(graph_with(name, detail, label)).splitlines()

    text = r'"(?:[\w .,:/<>#;-]|<br>)*"'
    shapes = rf"(?:\(\[{text}\]\)|\[{text}\]|\[\[{text}\]\]|\[\({text}\)\]|\{{\{{{text}\}}\}})"
    assert lines[0] == "flowchart LR"
    assert all(re.fullmatch(rf"    n\d+(?:{shapes}| -->(?:\|{text}\|)? n\d+)", line) for line in lines[1:]), lines
    assert len(lines) == 1 + len(NodeKind) * 2 - 1


@given(TEXTS, TEXTS, TEXTS)
def test_svg_is_well_formed(name: str, detail: str, label: str) -> None:
    """A text is a text of the picture: it adds no element."""
    picture = ET.fromstring(render_svg(graph_with(name, detail, label)))  # noqa: S314 -- it is our own

    assert {element.tag.removeprefix(SVG) for element in picture.iter()} <= {
        "svg", "title", "desc", "style", "defs", "marker", "path", "rect", "g", "text",
    }  # fmt: skip
    assert len(picture.findall(f".//{SVG}rect[@class='box']")) == len(NodeKind)


@pytest.mark.skipif(not shutil.which("dot"), reason="graphviz can't be installed here: make extras")
@pytest.mark.parametrize("text", ["plain", 'a "quoted" \\N \\l <b>x</b> &amp;', "line\nbreak", "ends with \\"])
def test_dot_is_read_by_graphviz(text: str) -> None:
    """Graphviz shows each text as it is written."""
    dot = render_dot(graph_with(text, "", text))
    drawn = subprocess.run(["dot", "-Tsvg"], input=dot, capture_output=True, text=True, check=True).stdout

    texts = [element.text for element in ET.fromstring(drawn).iter(f"{SVG}text")]  # noqa: S314 -- Graphviz's
    assert texts.count(text.replace("\n", " ")) >= 2 * len(NodeKind) - 1, texts


# the layout -----------------------------------------------------------------------------------------------------------


def overlaps(layout: Layout) -> list[tuple[str, str]]:
    def apart(first: str, second: str) -> bool:
        a, b = layout.boxes[first], layout.boxes[second]
        return (
            a.x + a.size.width <= b.x
            or b.x + b.size.width <= a.x
            or a.y + a.size.height <= b.y
            or b.y + b.size.height <= a.y
        )

    return [pair for pair in itertools.combinations(layout.boxes, 2) if not apart(*pair)]


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40))
def test_layout(pairs: list[tuple[int, int]]) -> None:
    """No node covers another, and without a cycle each is to the right of those that need it."""
    sizes: Mapping[str, Size] = {f"n{number}": Size(90 + number, 40) for number in range(12)}
    edges = [(f"n{min(pair)}", f"n{max(pair)}") for pair in pairs if pair[0] != pair[1]]

    layout = lay_out(sizes, edges)

    assert overlaps(layout) == []
    assert all(layout.boxes[source].right[0] < layout.boxes[target].x for source, target in edges)
    assert all(points[0] == layout.boxes[ends[0]].right for ends, points in layout.lines.items())


def test_a_cycle_ends() -> None:
    """A cycle is drawn, too: what a service needs and what is in its pods may lead back."""
    layout = lay_out({"a": Size(90, 40), "b": Size(90, 40)}, [("a", "b"), ("b", "a")])

    assert overlaps(layout) == []


def test_an_empty_graph() -> None:
    """A definition without services is a picture without nodes."""
    picture = ET.fromstring(render_svg(Graph(title="env", nodes=(), edges=())))  # noqa: S314 -- it is our own

    assert picture.findall(f".//{SVG}rect[@class='box']") == []
