"""Record sessions in a real terminal, and draw them, as NAME.cast and NAME.svg beside this script.

Owns what is typed, the recording (in the form of asciinema), and how it is drawn.
Everything shown has happened, on a real cluster:

- ``up``: two panes of a terminal, the example ``develop``, which is deployed in the namespace ``demo``;
- ``deploy``: the example ``shop``, which is not deployed there.

It needs tmux, ``platform`` on PATH, and a cluster that ``KUBECONFIG`` leads to and that has the images of the shop,
as after ``make demo``.
The settings are those of any command: ``PLATFORM_DOMAIN=apps.example.com`` gives the addresses of the pages.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pexpect
import pyte

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 100
_KEY = 0.04
_CHAR_WIDTH, _LINE_HEIGHT, _PAD = 8.4, 17, 10
_LAST_FRAME = 4.0
_LONGEST_PAUSE = 1.2
_COLORS = {
    "black": "#1e1e2e", "red": "#f38ba8", "green": "#a6e3a1", "brown": "#f9e2af", "blue": "#89b4fa",
    "magenta": "#cba6f7", "cyan": "#94e2d5", "white": "#cdd6f4", "default": "#cdd6f4",
}  # fmt: skip
_BACKGROUND = "#1e1e2e"


@dataclass
class Recorder:
    """A terminal multiplexer with one or two panes, and what it has shown at which moment."""

    folder: Path
    rows: int
    child: pexpect.spawn[str] = field(init=False)
    shown: list[tuple[float, str]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        config = self.folder / "tmux.conf"
        config.write_text(
            "set -g status off\nset -g prefix C-a\nset -g escape-time 0\n"
            "set -g default-command \"env 'PS1=$ ' bash --norc\"\n"
        )
        variables = {**os.environ, "PLATFORM_NAMESPACE": "demo", "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        self.child = pexpect.spawn(
            str(shutil.which("tmux")), ["-f", str(config), "-L", f"record-{os.getpid()}", "new-session"],
            cwd=str(self.folder), env=variables, encoding="utf-8", dimensions=(self.rows, COLUMNS), timeout=1,
        )  # fmt: skip

    def take(self, seconds: float) -> None:
        """Let time pass, and note what is shown meanwhile."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                text = self.child.read_nonblocking(65536, timeout=0.02)
            except pexpect.TIMEOUT:
                continue
            self.shown.append((time.monotonic() - self.began, text))

    def type(self, line: str) -> None:
        for key in line:
            self.child.send(key)
            self.take(_KEY)
        self.child.send("\r")

    def until(self, words: str, seconds: float = 90) -> None:
        """Wait until the screen has these words."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.take(0.1)
            if words in self.screen:
                return
        raise SystemExit(f"the terminal never showed {words!r}:\n{self.screen}")

    @property
    def screen(self) -> str:
        screen = pyte.Screen(COLUMNS, self.rows)
        stream = pyte.Stream(screen)
        for _, text in self.shown:
            stream.feed(text)
        return "\n".join(screen.display)

    def begin(self) -> None:
        """What was shown until now is the first picture."""
        self.began, self.shown = time.monotonic(), [(0.0, text) for _, text in self.shown]

    def other_pane(self) -> None:
        self.child.send("\x01o")
        self.take(0.3)

    def end(self) -> None:
        self.child.send("\x01:kill-server\r")
        self.child.close(force=True)


def play_deploy(recorder: Recorder) -> None:
    """What a person does who deploys, looks at it, changes something, and looks at what that would do."""
    recorder.take(0.8)
    recorder.begin()
    recorder.take(0.5)
    recorder.type("platform deploy")
    recorder.until("deployed shop in", 240)
    recorder.take(2.5)
    recorder.type("clear; platform status")
    recorder.until("Addresses")
    recorder.take(2.5)
    recorder.type("sed -i '/^  web:/a\\    scale: 2' compose.yaml")
    recorder.type("platform preview")
    recorder.until("to update")
    recorder.take(2.0)


def play_up(recorder: Recorder) -> None:
    """What a person does who edits a program that runs in the cluster."""
    recorder.take(0.8)
    recorder.child.send('\x01"')
    recorder.take(0.5)
    recorder.other_pane()
    recorder.begin()
    recorder.take(0.5)
    recorder.type("platform up web")
    recorder.until("is forwarded to port 8080")
    recorder.until("synced")
    recorder.take(1.0)
    recorder.other_pane()
    recorder.type("curl localhost:8080/cgi-bin/hello")
    recorder.until("Hello from")
    recorder.take(1.0)
    recorder.type("sed -i 's/english/french/' site/cgi-bin/hello")
    recorder.type("curl localhost:8080/cgi-bin/hello")
    recorder.until("Bonjour from")
    recorder.take(1.5)
    recorder.other_pane()
    recorder.child.send("\x03")
    recorder.until("is still under development")
    recorder.take(0.5)
    recorder.type("platform down web")
    recorder.until("runs as it was deployed again")
    recorder.take(1.0)


class Awaited:
    """Stands in for a recorder, and notes which texts a session waits for."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def until(self, text: str, _seconds: float = 0) -> None:
        self.texts.append(text)

    def __getattr__(self, _: str) -> Any:
        return self

    def __call__(self, *_: object) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class Session:
    name: str
    example: str
    rows: int
    play: Callable[[Any], None]

    @property
    def title(self) -> str:
        return f"platform {self.name}"

    def record(self, output: Path) -> None:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / self.example
            shutil.copytree(ROOT / "examples" / self.example, place)
            recorder = Recorder(place, self.rows)
            try:
                self.play(recorder)
            finally:
                recorder.end()
        write_cast(recorder.shown, self.rows, self.title, output / f"{self.name}.cast")

    def draw(self, output: Path) -> None:
        (output / f"{self.name}.svg").write_text(self.drawn(output), encoding="utf-8")

    def drawn(self, output: Path) -> str:
        return draw(hasten(read_cast(output / f"{self.name}.cast")), self.rows, self.title)

    def problems(self, output: Path) -> list[str]:
        """Say what is wrong with a recording and its picture: they show what was, or not what is waited for now."""
        drawn = (output / f"{self.name}.svg").read_text(encoding="utf-8") == self.drawn(output)
        awaited, shown = Awaited(), "\n".join(screens(read_cast(output / f"{self.name}.cast"), self.rows))
        self.play(awaited)
        return [
            *([] if drawn else [f"{self.name}.svg is not of {self.name}.cast: run docs/record.py"]),
            *(f"{self.name}.cast never shows {text!r}: record it again" for text in awaited.texts if text not in shown),
        ]


SESSIONS = {
    session.name: session
    for session in (Session("up", "develop", 24, play_up), Session("deploy", "shop", 20, play_deploy))
}


def write_cast(shown: Sequence[tuple[float, str]], rows: int, title: str, path: Path) -> None:
    head = {"version": 2, "width": COLUMNS, "height": rows, "title": title}
    lines = [json.dumps(head), *(json.dumps([round(at, 3), "o", text]) for at, text in shown)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_cast(path: Path) -> list[tuple[float, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    return [(at, text) for at, _, text in map(json.loads, lines)]


def screens(shown: Sequence[tuple[float, str]], rows: int) -> set[str]:
    """Return all that was on the screen at some moment."""
    screen = pyte.Screen(COLUMNS, rows)
    stream = pyte.Stream(screen)
    found = set()
    for _, text in shown:
        stream.feed(text)
        found.add("\n".join(screen.display))
    return found


def hasten(shown: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Leave out what is longer than a pause that reads well."""
    made: list[tuple[float, str]] = []
    before, at = 0.0, 0.0
    for moment, text in shown:
        at += min(moment - before, _LONGEST_PAUSE)
        before = moment
        made.append((at, text))
    return made


def draw(shown: Sequence[tuple[float, str]], rows: int, title: str) -> str:
    """The recording as an SVG that plays by itself: one group for each picture, shown in its time."""
    screen = pyte.Screen(COLUMNS, rows)
    stream = pyte.Stream(screen)
    frames: list[tuple[float, str]] = []
    for at, text in shown:
        stream.feed(text)
        picture = _picture(screen)
        if frames and (picture == frames[-1][1] or at - frames[-1][0] < _KEY):
            frames[-1] = (frames[-1][0], picture)
        else:
            frames.append((at, picture))
    total = frames[-1][0] + _LAST_FRAME
    width, height = COLUMNS * _CHAR_WIDTH + 2 * _PAD, rows * _LINE_HEIGHT + 2 * _PAD
    rules, groups = [], []
    for number, (at, picture) in enumerate(frames):
        end = frames[number + 1][0] if number + 1 < len(frames) else total
        first, last = 100 * at / total, 100 * end / total
        rules.append(
            f"@keyframes k{number}{{0%,{first:.3f}%{{visibility:hidden}}{first:.3f}%,{last:.3f}%{{visibility:visible}}"
            f"{last:.3f}%,100%{{visibility:hidden}}}}#f{number}{{animation:k{number} {total:.2f}s step-end infinite}}"
        )
        # What shows no animation, shows the last picture.
        seen = "" if number == len(frames) - 1 else ' visibility="hidden"'
        groups.append(f'<g id="f{number}"{seen}>{picture}</g>')
    style = (
        f"text{{font:14px ui-monospace,Menlo,Consolas,monospace;white-space:pre}}{''.join(rules)}"
        "@media (prefers-reduced-motion:reduce){g{animation:none!important}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img" xml:space="preserve">'
        f"<title>{title}, in a terminal</title><style>{style}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="{_BACKGROUND}"/>{"".join(groups)}</svg>\n'
    )


def _picture(screen: pyte.Screen) -> str:
    lines = []
    for row in range(screen.lines):
        runs: list[tuple[str, str, bool]] = []
        begins: list[int] = []
        for column in range(COLUMNS):
            char = screen.buffer[row][column]
            color = _COLORS.get(char.fg, f"#{char.fg}" if len(char.fg) == 6 else _COLORS["default"])  # noqa: PLR2004
            if runs and runs[-1][1:] == (color, char.bold):
                runs[-1] = (runs[-1][0] + char.data, color, char.bold)
            else:
                runs.append((char.data, color, char.bold))
                begins.append(column)
        runs[-1] = (runs[-1][0].rstrip(), *runs[-1][1:])
        if not "".join(text for text, _, _ in runs).strip():
            continue
        spans = "".join(_span(begin, *run) for begin, run in zip(begins, runs, strict=True))
        lines.append(f'<text y="{_PAD + 13 + row * _LINE_HEIGHT}">{spans}</text>')
    return "".join(lines)


def _span(column: int, text: str, color: str, bold: bool) -> str:  # noqa: FBT001 -- a cell's own fields
    """A run has its own place, as a font's signs are not all of one width."""
    weight = ' font-weight="bold"' if bold else ""
    return f'<tspan x="{_PAD + column * _CHAR_WIDTH:.1f}" fill="{color}"{weight}>{html.escape(text)}</tspan>'


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "session", nargs="?", choices=sorted(SESSIONS), help="what to record; without it, what was is drawn anew"
    )
    parser.add_argument(
        "--output", metavar="DIR", default=str(ROOT / "docs"), help="where the recordings and pictures are"
    )
    parser.add_argument("--check", action="store_true", help="only see that the recordings are current")
    options = parser.parse_args(words)
    output = Path(options.output)
    if options.check:
        problems = [problem for session in SESSIONS.values() for problem in session.problems(output)]
        print(*problems, sep="\n", end="\n" if problems else "")
        return int(bool(problems))
    if options.session:
        SESSIONS[options.session].record(output)
    for session in SESSIONS.values():
        session.draw(output)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
