"""What the pages show a reader to type, as one script a page.

Each block of shell commands is marked by a comment before it, which a reader does not see:

- ``<!-- run -->``: it is run, in the page's folder, after the blocks before it and in the same shell;
- ``<!-- run until: WORDS -->``: it continues until one ends it: when it has said these words, it is ended by Ctrl-C;
- ``<!-- run beside: WORDS -->``: the same, but the blocks that follow are run before it is ended;
- ``<!-- run by: FILE -->``: a test in this file does what it says;
- ``<!-- not run: REASON -->``: it can't be run by a test, for this reason.

Others say what the blocks work on, and the result of them:

- ``<!-- file: NAME -->``: the block that follows is this file; ``<!-- example: … -->``: it is ``compose.yaml``;
- ``<!-- shows -->``: the block that follows is all that the block before it prints on standard output.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"(?:<!-- ([a-z ]+?)(?:: (.*?))? -->\n+)?^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHELL = ("sh", "bash", "shell", "console")
RUN = ("run", "run until", "run beside")
MARKS = (*RUN, "run by", "not run", "file")

#: What differs from one run to the next: digests, the ends of pods' names, times, the port of the endpoints.
_PASSING = (
    (re.compile(r"sha256:[0-9a-f]+"), "sha256:#"),
    (re.compile(r"(?<=[a-z])-[0-9a-f]{6,10}-[a-z0-9]{5}\b"), "-#"),
    (re.compile(r"(?<=[a-z])-[bcdfghjklmnpqrstvwxz2456789]{5}\b"), "-#"),
    (re.compile(r"\b\d+(?:\.\d+)?\s?(?:ms|s|m|h|d)\b"), "#"),
    (re.compile(r"(?<=https://)([a-z0-9.-]+):\d+"), r"\1"),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True, slots=True)
class Step:
    """A block of a page, and what its mark says."""

    mark: str
    argument: str
    language: str
    content: str
    line: int


def read_steps(text: str) -> Iterator[Step]:
    for found in _BLOCK.finditer(text):
        mark, argument, language, content = (part or "" for part in found.groups())
        yield Step(mark, argument, language, content, text.count("\n", 0, found.start(3)) + 1)


def unmarked(text: str) -> list[int]:
    """The lines of shell blocks without a mark, or with one that lacks its reason."""
    return [
        step.line
        for step in read_steps(text)
        if step.language in SHELL and (step.mark not in MARKS or (step.mark != "run" and not step.argument))
    ]


def is_stable(text: str) -> list[str]:
    """Lines without what differs from one run to the next."""
    for pattern, instead in _PASSING:
        text = pattern.sub(instead, text)
    return [line.strip() for line in text.strip().splitlines()]


def make_script(steps: Sequence[Step], page: str, outputs: Path, before: str = "") -> str:
    """One script of bash that types what the page says; what each block prints goes into a file named for its line."""
    parts = [_BEGIN.format(outputs=shlex.quote(str(outputs))), f"at {shlex.quote(page)} 0\n{before}"]
    for step in steps:
        if step.mark in {"file", "example"}:
            name = shlex.quote(step.argument if step.mark == "file" else "compose.yaml")
            parts.append(f"mkdir -p \"$(dirname {name})\"\ncat > {name} <<'END OF FILE'\n{step.content}END OF FILE\n")
        elif step.mark in RUN:
            parts.append(f"at {shlex.quote(page)} {step.line}\n{_typed(step)}")
    parts.append('end_beside\nexec >>"$outputs/said" 2>&1\n')
    return "\n".join(parts)


def _typed(step: Step) -> str:
    if step.mark == "run":
        return step.content
    after = "begun+=($!)" if step.mark == "run beside" else "end_it $!"
    return (
        f'set -m\n(\n{step.content}) > "$outputs/{step.line}.out" 2>&1 &\nset +m\n'
        f'wait_for $! "$outputs/{step.line}.out" {shlex.quote(step.argument)}\n{after}\n'
    )


_BEGIN = """\
set -eo pipefail
outputs={outputs}
begun=()
exec </dev/null
at() {{
  echo "$1:$2" >> "$outputs/steps"
  exec > "$outputs/$2.out" 2> "$outputs/$2.err"
}}
wait_for() {{
  for _ in $(seq 900); do
    grep -qF -- "$3" "$2" && return
    kill -0 "$1" 2> /dev/null || break
    sleep 0.1
  done
  cat "$2" >&2
  echo "it never said: $3" >&2
  return 1
}}
end_it() {{
  kill -INT -- "-$1"
  wait "$1" || [ $? = 130 ]
}}
end_beside() {{
  for one in "${{begun[@]}}"; do end_it "$one"; done
  begun=()
}}
trap 'for one in "${{begun[@]}}"; do kill -KILL -- "-$one" 2> /dev/null || true; done' EXIT
"""
