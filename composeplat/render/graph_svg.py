"""A graph as an SVG picture.

Owns the shapes, the colors and the texts for people who don't see the picture. It has no script and loads nothing, so a
page may show it; its colors follow the reader's choice of light or dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from composeplat.plan.service_graph import Graph, GraphEdge, Node, NodeKind
from composeplat.render.graph_layout import Box, Layout, Size, lay_out

_MARGIN = 24
_LINE_HEIGHT, _PADDING = 18, 12
#: Fonts differ in width: texts of this many pixels for each character fit in common ones.
_CHAR_WIDTH = 7.4
_MIN_WIDTH, _MAX_CHARS = 90, 48
_MAX_LABEL_CHARS = 20
_ROUND = {NodeKind.ENDPOINT: 24, NodeKind.SERVICE: 6, NodeKind.PROVIDER: 6, NodeKind.VOLUME: 14, NodeKind.NETWORK: 0}

_FOR_READERS = 'role="img" aria-labelledby="title desc"'
_ARROW = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>'
)
_STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #1b1f24 }
.name { font-weight: 600 }
.detail, .label { fill: #4a5563; font-size: 12px }
.label { font-size: 11px; paint-order: stroke; stroke: #fff; stroke-width: 4px }
.back { fill: #fff }
.box { stroke-width: 1.5 }
.endpoint .box { fill: #e8f1ff; stroke: #1f5fbf }
.service .box { fill: #eef7ee; stroke: #2f7d32 }
.provider .box { fill: #f4f0fa; stroke: #6b47a8 }
.volume .box { fill: #fff6e0; stroke: #8a6100 }
.network .box { fill: #f1f3f5; stroke: #57606a }
.line { fill: none; stroke: #57606a; stroke-width: 1.3 }
.tip { fill: #57606a }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.detail, .label { fill: #b3bcc7 }
.label { stroke: #14181d }
.back { fill: #14181d }
.endpoint .box { fill: #13243d; stroke: #6ea8fe }
.service .box { fill: #13291a; stroke: #6bbf73 }
.provider .box { fill: #241a38; stroke: #b89af0 }
.volume .box { fill: #302507; stroke: #d9a93a }
.network .box { fill: #22272e; stroke: #9aa4b0 }
.line { stroke: #9aa4b0 }
.tip { fill: #9aa4b0 }
}"""


def lay_out_graph(graph: Graph) -> Layout:
    """Lay out a graph with boxes that hold the texts of its nodes."""
    sizes = {node.key: _size(node) for node in graph.nodes}
    return lay_out(sizes, ((edge.source, edge.target) for edge in graph.edges))


def render_svg(graph: Graph) -> str:
    layout = lay_out_graph(graph)
    width, height = (max(side, _MIN_WIDTH) + 2 * _MARGIN for side in (layout.size.width, layout.size.height))
    extent = f'width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {extent} {_FOR_READERS}>',
        f'<title id="title">{_text(graph.title)}</title>',
        f'<desc id="desc">{_text(_description(graph))}</desc>',
        f"<style>\n{_STYLE}\n</style>",
        _ARROW,
        f'<rect class="back" {extent}/>',
        f'<g transform="translate({_MARGIN} {_MARGIN})">',
        *(_line(layout.lines[edge.source, edge.target]) for edge in graph.edges),
        *(_node(node, layout.boxes[node.key]) for node in graph.nodes),
        *(_label(edge, layout) for edge in graph.edges if edge.label),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _description(graph: Graph) -> str:
    names = {node.key: f"{node.kind} {node.name}" for node in graph.nodes}
    if not graph.edges:
        return ", ".join(names.values())
    return "; ".join(
        f"{names[edge.source]} to {names[edge.target]}{f' ({edge.label})' if edge.label else ''}"
        for edge in graph.edges
    )


def _texts(node: Node) -> list[str]:
    return [_shorten(text, _MAX_CHARS) for text in (node.name, *node.details)]


def _size(node: Node) -> Size:
    texts = _texts(node)
    width = round(max(map(len, texts)) * _CHAR_WIDTH) + 2 * _PADDING
    return Size(max(width, _MIN_WIDTH), len(texts) * _LINE_HEIGHT + 2 * _PADDING - 4)


def _node(node: Node, box: Box) -> str:
    whole = _text(" - ".join((f"{node.kind} {node.name}", *node.details)))
    size = f'width="{box.size.width}" height="{box.size.height}" rx="{_ROUND[node.kind]}"'
    lines = "".join(
        f'<text class="{"detail" if index else "name"}" x="{box.x + box.size.width // 2}"'
        f' y="{box.y + _PADDING + 11 + index * _LINE_HEIGHT}" text-anchor="middle">{_text(text)}</text>'
        for index, text in enumerate(_texts(node))
    )
    return f'<g class="{node.kind}"><title>{whole}</title><rect class="box" x="{box.x}" y="{box.y}" {size}/>{lines}</g>'


def _line(points: Sequence[tuple[int, int]]) -> str:
    """Draw an edge as curves that begin and end horizontally."""
    (x, y), *others = points
    path = [f"M{x} {y}"]
    for to_x, to_y in others:
        middle = (x + to_x) // 2
        path.append(f"C{middle} {y} {middle} {to_y} {to_x} {to_y}")
        x, y = to_x, to_y
    return f'<path class="line" d="{"".join(path)}" marker-end="url(#tip)"/>'


def _label(edge: GraphEdge, layout: Layout) -> str:
    """Write the label of an edge in the gap before its target, of its first column."""
    points = layout.lines[edge.source, edge.target]
    (x, y), (to_x, to_y) = points[0], points[1]
    text = _text(_shorten(edge.label, _MAX_LABEL_CHARS))
    return (
        f'<text class="label" x="{(x + to_x) // 2}" y="{(y + to_y) // 2 - 4}" text-anchor="middle">'
        f"<title>{_text(edge.label)}</title>{text}</text>"
    )


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _text(text: str) -> str:
    """Escape a text; XML has no control characters, not even escaped."""
    return escape("".join(char if char.isprintable() else " " for char in text))
