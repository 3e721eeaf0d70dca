"""Draw the figures of the benchmarks as SVG: lines by number of services, and bars beside those of peers.

Owns the scales and the drawing. Axes of lines are logarithmic, so that a straight line at 45 degrees is linear growth;
bars begin at zero, and a mark shows the limit.
Must not measure: it reads the files that ``--json`` of the benchmarks has written.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

Line = Sequence[tuple[float, float]]
"""Services and seconds, from few services to many."""

_WIDTH, _HEIGHT = 300, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 30, 34
_LEGEND_HEIGHT = 28
_COLORS = {
    "platform": "#2f7de1",
    "kompose": "#c2630c",
    "kubectl": "#c2630c",
    "pulumi": "#7a5195",
    "pulumi that waits": "#3a8f5c",
}
_OTHER_COLOR = "#666666"
_PEER_COLOR = _COLORS["kubectl"]
_LEGEND_STEP = 130
_NUMBER_WIDTH = 44
_LIMIT_COLOR = "#c9252d"
_BAR_WIDTH, _BAR_STEP, _BARS_LEFT, _BARS_RIGHT = 720, 18, 290, 80
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
#: With very many services a step has another name.
_STEPS_OF_MANY = {step.replace("again", "no change"): title for step, title in _STEPS.items()}


@dataclass(frozen=True)
class Chart:
    title: str
    lines: Mapping[str, Line]
    """By tool."""


@dataclass(frozen=True)
class Bar:
    name: str
    value: float
    limit: float | None = None
    is_peer: bool = False


@dataclass(frozen=True)
class Bars:
    title: str
    unit: str
    bars: Sequence[Bar]


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


def scale_charts(content: Mapping[str, Any]) -> list[Chart]:
    """The charts of the figures of ``scale.py --json``, a chart for each step."""
    ours, peers = content["table"], content["kubectl"]
    sizes = sorted(map(int, ours))
    return [
        Chart(
            title,
            {
                "platform": [(size, ours[str(size)][step]["seconds"]) for size in sizes],
                "kubectl": [(size, peers[str(size)][step]) for size in sizes if step in peers.get(str(size), {})],
            },
        )
        for step, title in _STEPS_OF_MANY.items()
    ]


def startup_bars(content: Mapping[str, Any]) -> list[Bars]:
    """The processor time of short commands, beside the start of Python alone."""
    bars = [
        Bar(name, row["processor"] * 1000, row["limit"] and row["limit"] * 1000, is_peer=name == "python")
        for name, row in content["rows"].items()
    ]
    return [Bars("Processor time of short commands", "ms", bars)]


def builds_bars(content: Mapping[str, Any]) -> list[Bars]:
    """The medians of builds, a chart for each case; the limit is a part of the peer's time."""
    return [
        Bars(
            case,
            "s",
            [
                Bar(tool, median(times), _limit_of_build(found, tool), is_peer=tool == found["peer"])
                for tool, times in found["seconds"].items()
            ],
        )
        for case, found in content.items()
    ]


def _limit_of_build(case: Mapping[str, Any], tool: str) -> float | None:
    """The limit of a tool in a case of ``builds.py``."""
    return case["at_most"] * median(case["seconds"][case["peer"]]) if tool in case["judged"] else None


def sync_bars(content: Mapping[str, Any]) -> list[Bars]:
    """Saved files, and many files, beside the tools that copy by hand."""
    figures, limits = content["figures"], content["limits"]

    def bar(title: str, name: str, times: float = 1) -> Bar:
        limit = limits.get(name)
        return Bar(title, figures[name] * times, limit and limit * times, is_peer=limit is None)

    saves = [
        bar("a save with platform up, median", "saved_median", 1000),
        bar("the same, 95 of 100", "saved_p95", 1000),
        bar("the same with a delay on the wire, median", "delayed_median", 1000),
        bar("a save with platform watch, median", "watched_median", 1000),
        bar("a save with kubectl cp, median", "copied_median", 1000),
    ]
    copies = [
        bar("first sync of 10,000 files", "first_sync"),
        bar("tar over exec, the same files", "tar_over_exec"),
        bar("first sync of sources, slow wire", "slow_sync"),
        bar("tar over exec, the same files", "slow_tar"),
        bar("3,000 files change at once", "switch"),
        bar("tar over exec of as many files", "switch_tar"),
    ]
    return [Bars("Until a saved file is there", "ms", saves), Bars("Many files", "s", copies)]


def idle_bars(content: Mapping[str, Any]) -> list[Bars]:
    """What following commands cost while nothing happens."""
    rows = content["rows"].items()
    shares = [Bar(name, row["share"] * 100, None if _is_peer(name) else 1, _is_peer(name)) for name, row in rows]
    sent = [Bar(name, row["bytes_per_s"], is_peer=_is_peer(name)) for name, row in rows]
    return [Bars("Share of a core while nothing happens", "%", shares), Bars("Sent to the API server", "bytes/s", sent)]


def _is_peer(name: str) -> bool:
    return not name.startswith("platform")


def draw(charts: Sequence[Chart]) -> str:
    """Draw charts beside each other, with one legend."""
    tools = list(dict.fromkeys(tool for chart in charts for tool, line in chart.lines.items() if line))
    colors = {tool: _COLORS.get(tool, _OTHER_COLOR) for tool in tools}
    width, height = _WIDTH * len(charts), _HEIGHT + _LEGEND_HEIGHT
    label = f"{', '.join(chart.title for chart in charts)}: seconds by services"
    parts: list[str] = []
    for number, chart in enumerate(charts):
        parts += [f'<g transform="translate({number * _WIDTH} 0)">', *_draw_chart(chart, colors), "</g>"]
    return _svg(width, height, label, [*parts, *_legend(colors)])


def _svg(width: int, height: int, label: str, parts: Iterable[str]) -> str:
    box = f"0 0 {width} {height}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" role="img" aria-label="{escape(label)}">'
    return "\n".join([head, f"<style>{_STYLE}</style>", *parts, "</svg>"]) + "\n"


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
        left, top = _LEFT + number * _LEGEND_STEP, _HEIGHT + 12
        yield f'<rect x="{left}" y="{top - 9}" width="10" height="10" fill="{color}"/>'
        yield f'<text x="{left + 16}" y="{top}">{escape(tool)}</text>'


def draw_bars(charts: Sequence[Bars]) -> str:
    """Draw charts of bars below each other; a peer's have another color, and a limit is a mark."""
    label = ", ".join(f"{chart.title} ({chart.unit})" for chart in charts)
    parts: list[str] = []
    top = 0
    for chart in charts:
        parts += _draw_bars(chart, top)
        top += 30 + _BAR_STEP * len(chart.bars)
    return _svg(_BAR_WIDTH, top + 10, label, parts)


def _draw_bars(chart: Bars, top: int) -> Iterator[str]:
    most = max([*(bar.value for bar in chart.bars), *(bar.limit or 0 for bar in chart.bars)]) or 1
    width = (_BAR_WIDTH - _BARS_LEFT - _BARS_RIGHT) / most
    yield f'<text class="title" x="8" y="{top + 18}">{escape(f"{chart.title}, {chart.unit}")}</text>'
    for number, bar in enumerate(chart.bars):
        y = top + 28 + number * _BAR_STEP
        value = f"{bar.value:.3g}" if bar.value < 1000 else f"{bar.value:,.0f}"  # noqa: PLR2004 -- as people write it
        title = f"{bar.name}: {value} {chart.unit}" + (f", at most {bar.limit:.3g}" if bar.limit else "")
        yield f'<text x="{_BARS_LEFT - 8}" y="{y + 11}" text-anchor="end">{escape(bar.name)}</text>'
        yield (
            f'<rect x="{_BARS_LEFT}" y="{y + 1}" width="{max(bar.value * width, 1):.1f}" height="{_BAR_STEP - 5}"'
            f' fill="{_PEER_COLOR if bar.is_peer else _COLORS["platform"]}"><title>{escape(title)}</title></rect>'
        )
        end, limit = bar.value * width, (bar.limit or 0) * width
        # Not across the mark of the limit.
        behind = limit if end < limit < end + _NUMBER_WIDTH else end
        yield f'<text x="{_BARS_LEFT + behind + 8:.1f}" y="{y + 11}">{value}</text>'
        if bar.limit:
            x = _BARS_LEFT + limit
            yield (
                f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 1}" y2="{y + _BAR_STEP - 2}"'
                f' stroke="{_LIMIT_COLOR}" stroke-width="2"/>'
            )


def _range(values: Sequence[float]) -> tuple[float, float]:
    """The ends of an axis, with a margin, and never the same."""
    return min(values) / 1.25, max(values) * 1.25


_LINES = {"render": render_charts, "deploy": deploy_charts, "scale": scale_charts}
_BARS = {"startup": startup_bars, "builds": builds_bars, "sync": sync_bars, "idle": idle_bars}


def main(args: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the files of the benchmarks are, and the plots go")
    folder = parser.parse_args(args).folder
    for name in (*_LINES, *_BARS):
        path = folder / f"{name}.json"
        if path.exists():
            content = json.loads(path.read_text())
            drawn = draw(_LINES[name](content)) if name in _LINES else draw_bars(_BARS[name](content))
            (folder / f"{name}.svg").write_text(drawn)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
