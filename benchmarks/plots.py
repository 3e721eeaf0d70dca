"""Draw the figures of render.py and deploy.py as SVG: seconds by number of services, a line for each tool.

Owns the scales and the drawing; both axes are logarithmic, so that a straight line at 45 degrees is linear growth.
Must not measure: it reads the files that ``--json`` of the benchmarks has written.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

Line = Sequence[tuple[float, float]]
"""Services and seconds, from few services to many."""

_WIDTH, _HEIGHT = 300, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 30, 34
_LEGEND_HEIGHT = 28
_COLORS = ("#2f7de1", "#c2630c", "#7a5195", "#3a8f5c")
#: GitHub shows a page in the colors of the reader's system.
_STYLE = (
    "text{font:11px sans-serif;fill:#444}.grid{stroke:#8884;stroke-width:1}.title{font-weight:bold}"
    "@media(prefers-color-scheme:dark){text{fill:#ccc}}"
)
#: The steps of a deploy that are drawn, and their titles.
_STEPS = {
    "deploy": "First deploy",
    "preview": "Preview without a change",
    "again": "Deploy without a change",
    "destroy": "Destroy",
}


@dataclass(frozen=True)
class Chart:
    title: str
    lines: Mapping[str, Line]
    """By tool."""


@dataclass(frozen=True)
class Scale:
    """From a value to a place on an axis, by powers of ten."""

    least: float
    most: float
    start: float
    end: float

    def place(self, value: float) -> float:
        part = (math.log10(value) - math.log10(self.least)) / (math.log10(self.most) - math.log10(self.least))
        return self.start + part * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        lowest, highest = math.floor(math.log10(self.least)), math.ceil(math.log10(self.most))
        found = [10.0**power for power in range(lowest, highest + 1)]
        return [tick for tick in found if self.least <= tick <= self.most]


def render_charts(content: Mapping[str, Any]) -> list[Chart]:
    """The chart of the figures of ``render.py --json``."""
    rows = content["rows"]
    tools = [tool for tool in ("platform", "kompose") if any(row[tool] for row in rows)]
    lines = {tool: [(row["services"], row[tool]["median"]) for row in rows if row[tool]] for tool in tools}
    return [Chart("Rendering a file", lines)]


def deploy_charts(content: Mapping[str, Any]) -> list[Chart]:
    """The charts of the figures of ``deploy.py --json``, a chart for each step."""
    table = sorted((int(size), tools) for size, tools in content["table"].items())
    names = list(dict.fromkeys(name for _, tools in table for name in tools))
    return [
        Chart(
            title,
            {
                name: [(size, tools[name][step]["median"]) for size, tools in table if step in tools.get(name, {})]
                for name in names
            },
        )
        for step, title in _STEPS.items()
    ]


def draw(charts: Sequence[Chart]) -> str:
    """Draw charts beside each other, with one legend."""
    tools = list(dict.fromkeys(tool for chart in charts for tool, line in chart.lines.items() if line))
    colors = dict(zip(tools, _COLORS, strict=False))
    width, height = _WIDTH * len(charts), _HEIGHT + _LEGEND_HEIGHT
    label = f"{', '.join(chart.title for chart in charts)}: seconds by services"
    box = f"0 0 {width} {height}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" role="img" aria-label="{escape(label)}">',
        f"<style>{_STYLE}</style>",
    ]
    for number, chart in enumerate(charts):
        parts += [f'<g transform="translate({number * _WIDTH} 0)">', *_draw_chart(chart, colors), "</g>"]
    parts += [*_legend(colors), "</svg>"]
    return "\n".join(parts) + "\n"


def _draw_chart(chart: Chart, colors: Mapping[str, str]) -> Iterator[str]:
    points = [point for line in chart.lines.values() for point in line]
    x = Scale(*_range([services for services, _ in points]), _LEFT, _WIDTH - _RIGHT)
    y = Scale(*_range([seconds for _, seconds in points]), _HEIGHT - _BOTTOM, _TOP)
    yield f'<text class="title" x="{_LEFT}" y="16">{escape(chart.title)}</text>'
    for services in sorted({services for services, _ in points}):
        yield f'<text x="{x.place(services):.1f}" y="{_HEIGHT - 16}" text-anchor="middle">{services:g}</text>'
    for seconds in y.ticks:
        at = y.place(seconds)
        yield f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
        yield f'<text x="{_LEFT - 4}" y="{at + 4:.1f}" text-anchor="end">{seconds:g} s</text>'
    for tool, line in chart.lines.items():
        if not line:
            continue
        places = [(x.place(services), y.place(seconds)) for services, seconds in line]
        path = " ".join(f"{left:.1f},{top:.1f}" for left, top in places)
        yield f'<polyline points="{path}" fill="none" stroke="{colors[tool]}" stroke-width="2"/>'
        for (left, top), (services, seconds) in zip(places, line, strict=True):
            label = escape(f"{tool}, {services:g} services: {seconds:.2f} s")
            yield f'<circle cx="{left:.1f}" cy="{top:.1f}" r="3" fill="{colors[tool]}"><title>{label}</title></circle>'


def _legend(colors: Mapping[str, str]) -> Iterator[str]:
    for number, (tool, color) in enumerate(colors.items()):
        left, top = _LEFT + number * 110, _HEIGHT + 12
        yield f'<rect x="{left}" y="{top - 9}" width="10" height="10" fill="{color}"/>'
        yield f'<text x="{left + 16}" y="{top}">{escape(tool)}</text>'


def _range(values: Sequence[float]) -> tuple[float, float]:
    """The ends of an axis, with a margin, and never the same."""
    return min(values) / 1.25, max(values) * 1.25


def main(args: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where render.json and deploy.json are, and the plots go")
    folder = parser.parse_args(args).folder
    for name, charts_of in (("render", render_charts), ("deploy", deploy_charts)):
        path = folder / f"{name}.json"
        if path.exists():
            (folder / f"{name}.svg").write_text(draw(charts_of(json.loads(path.read_text()))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
