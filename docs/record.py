"""Record a session of `platform up` in a real terminal, and draw it, as up.cast and up.svg beside this script.

Owns what is typed, the recording (in the form of asciinema), and how it is drawn.
Everything shown has happened: two panes of a terminal, a real cluster, the example ``develop``.

It wants tmux, and a cluster that ``KUBECONFIG`` leads to.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pexpect
import pyte

ROOT = Path(__file__).resolve().parent.parent
CAST, PICTURE = "up.cast", "up.svg"
COLUMNS, ROWS = 100, 24
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
    """A terminal multiplexer with two panes, and what it has shown at which moment."""

    folder: Path
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
            cwd=str(self.folder), env=variables, encoding="utf-8", dimensions=(ROWS, COLUMNS), timeout=1,
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
            if words in "\n".join(screen_of(self.shown).display):
                return
        raise SystemExit(f"the terminal never showed {words!r}:\n" + "\n".join(screen_of(self.shown).display))

    def other_pane(self) -> None:
        self.child.send("\x01o")
        self.take(0.3)

    def end(self) -> None:
        self.child.send("\x01:kill-server\r")
        self.child.close(force=True)


def screen_of(shown: Iterable[tuple[float, str]]) -> pyte.Screen:
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.Stream(screen)
    for _, text in shown:
        stream.feed(text)
    return screen


def play(recorder: Recorder) -> None:
    """What a person does who edits a program that runs in the cluster."""
    recorder.take(0.8)
    recorder.child.send('\x01"')
    recorder.take(0.5)
    recorder.other_pane()
    recorder.began, recorder.shown = time.monotonic(), [(0.0, text) for _, text in recorder.shown]
    recorder.take(0.5)
    recorder.type("platform up web")
    recorder.until("leads to port 8080")
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
    recorder.until("stays under development")
    recorder.take(0.5)
    recorder.type("platform down web")
    recorder.until("is as it was deployed again")
    recorder.take(1.0)


def write_cast(shown: Sequence[tuple[float, str]], path: Path) -> None:
    head = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "platform up"}
    lines = [json.dumps(head), *(json.dumps([round(at, 3), "o", text]) for at, text in shown)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_cast(path: Path) -> list[tuple[float, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    return [(at, text) for at, _, text in map(json.loads, lines)]


def hasten(shown: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Leave out what is longer than a pause that reads well."""
    made: list[tuple[float, str]] = []
    before, at = 0.0, 0.0
    for moment, text in shown:
        at += min(moment - before, _LONGEST_PAUSE)
        before = moment
        made.append((at, text))
    return made


def draw(shown: Sequence[tuple[float, str]]) -> str:
    """The recording as an SVG that plays by itself: one group for each picture, shown in its time."""
    screen = pyte.Screen(COLUMNS, ROWS)
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
    width, height = COLUMNS * _CHAR_WIDTH + 2 * _PAD, ROWS * _LINE_HEIGHT + 2 * _PAD
    rules, groups = [], []
    for number, (at, picture) in enumerate(frames):
        end = frames[number + 1][0] if number + 1 < len(frames) else total
        first, last = 100 * at / total, 100 * end / total
        rules.append(
            f"@keyframes k{number}{{0%,{first:.3f}%{{visibility:hidden}}{first:.3f}%,{last:.3f}%{{visibility:visible}}"
            f"{last:.3f}%,100%{{visibility:hidden}}}}#f{number}{{animation:k{number} {total:.2f}s step-end infinite}}"
        )
        groups.append(f'<g id="f{number}" visibility="hidden">{picture}</g>')
    style = f"text{{font:14px ui-monospace,Menlo,Consolas,monospace;white-space:pre}}{''.join(rules)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">'
        f"<title>platform up, in a terminal</title><style>{style}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="{_BACKGROUND}"/>{"".join(groups)}</svg>\n'
    )


def _picture(screen: pyte.Screen) -> str:
    lines = []
    for row in range(ROWS):
        runs: list[tuple[str, str, bool]] = []
        for column in range(COLUMNS):
            char = screen.buffer[row][column]
            color = _COLORS.get(char.fg, f"#{char.fg}" if len(char.fg) == 6 else _COLORS["default"])  # noqa: PLR2004
            if runs and runs[-1][1:] == (color, char.bold):
                runs[-1] = (runs[-1][0] + char.data, color, char.bold)
            else:
                runs.append((char.data, color, char.bold))
        runs[-1] = (runs[-1][0].rstrip(), *runs[-1][1:])
        if not "".join(text for text, _, _ in runs).strip():
            continue
        spans = "".join(_span(*run) for run in runs)
        lines.append(f'<text x="{_PAD}" y="{_PAD + 13 + row * _LINE_HEIGHT}">{spans}</text>')
    return "".join(lines)


def _span(text: str, color: str, bold: bool) -> str:  # noqa: FBT001 -- a cell's own fields
    weight = ' font-weight="bold"' if bold else ""
    return f'<tspan fill="{color}"{weight}>{html.escape(text)}</tspan>'


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", metavar="DIR", default=str(ROOT / "docs"), help="where the two files go")
    parser.add_argument("--check", action="store_true", help="only see that the picture is of the recording there")
    options = parser.parse_args(words)
    output = Path(options.output)
    if options.check:
        return int((output / PICTURE).read_text(encoding="utf-8") != draw(hasten(read_cast(output / CAST))))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "develop"
        shutil.copytree(ROOT / "examples" / "develop", place)
        recorder = Recorder(place)
        try:
            play(recorder)
        finally:
            recorder.end()
    write_cast(recorder.shown, output / CAST)
    (output / PICTURE).write_text(draw(hasten(read_cast(output / CAST))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
