"""A graph as text for other programs: Mermaid, which repository browsers draw, and DOT for Graphviz.

Owns both notations. Names and images come from the definition, so every text is escaped: none can end a label, or add a
node, a link or a directive.
"""

from __future__ import annotations

import html
from collections.abc import Mapping

from composeplat.plan.service_graph import Graph, Node, NodeKind

#: The brackets of a node in Mermaid, by its kind.
_MERMAID_SHAPES: Mapping[NodeKind, tuple[str, str]] = {
    NodeKind.ENDPOINT: ("([", "])"),
    NodeKind.SERVICE: ("[", "]"),
    NodeKind.PROVIDER: ("[[", "]]"),
    NodeKind.VOLUME: ("[(", ")]"),
    NodeKind.NETWORK: ("{{", "}}"),
}
_DOT_SHAPES: Mapping[NodeKind, str] = {
    NodeKind.ENDPOINT: "oval",
    NodeKind.SERVICE: "box",
    NodeKind.PROVIDER: "component",
    NodeKind.VOLUME: "cylinder",
    NodeKind.NETWORK: "hexagon",
}


def render_mermaid(graph: Graph) -> str:
    ids = _short_ids(graph)
    lines = ["flowchart LR"]
    for node in graph.nodes:
        before, after = _MERMAID_SHAPES[node.kind]
        lines.append(f'    {ids[node.key]}{before}"{_mermaid_label(node)}"{after}')
    for edge in graph.edges:
        label = f'|"{_mermaid_text(edge.label)}"|' if edge.label else ""
        lines.append(f"    {ids[edge.source]} -->{label} {ids[edge.target]}")
    return "\n".join(lines) + "\n"


def render_dot(graph: Graph) -> str:
    ids = _short_ids(graph)
    lines = ["digraph environment {", "    rankdir=LR;", f"    label={_dot_text(graph.title)};"]
    for node in graph.nodes:
        label = _dot_text(node.name, *node.details)
        lines.append(f"    {ids[node.key]} [shape={_DOT_SHAPES[node.kind]}, label={label}];")
    for edge in graph.edges:
        label = f" [label={_dot_text(edge.label)}]" if edge.label else ""
        lines.append(f"    {ids[edge.source]} -> {ids[edge.target]}{label};")
    return "\n".join((*lines, "}")) + "\n"


def _short_ids(graph: Graph) -> dict[str, str]:
    """Return a name for each node that no notation reserves: ``n1``, and so on."""
    return {node.key: f"n{number}" for number, node in enumerate(graph.nodes, 1)}


def _mermaid_label(node: Node) -> str:
    return "<br>".join(map(_mermaid_text, (node.name, *node.details)))


def _mermaid_text(text: str) -> str:
    """Escape a text by the codes of its characters: Mermaid reads Markdown, HTML and its own brackets in labels."""
    return "".join(char if char.isalnum() or char in " .,:/_-" else f"#{ord(char)};" for char in _one_line(text))


def _dot_text(*lines: str) -> str:
    r"""Quote lines; an entity or an escape such as ``\N`` stays as it is written."""
    escaped = (html.escape(_one_line(line), quote=False).replace("\\", "\\\\") for line in lines)
    return '"' + "\\n".join(line.replace('"', '\\"') for line in escaped) + '"'


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
