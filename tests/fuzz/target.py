"""What is fuzzed: bytes, read as far as they can be.

Must not import the fuzzer: a plain test replays what was found.
The bytes are a definition, then, each behind a line ``%%%%``, one that is laid over it, an env file, and a file that
may be named.
"""

from __future__ import annotations

from pathlib import Path

from composeplat.compose.load import Request, load
from composeplat.compose.resolved import resolved_definition, variable_rows
from composeplat.diagnostics import ComposeplatError, Severity, end_of
from composeplat.plan import make_plan
from composeplat.render.manifests import render_files, render_json, render_yaml, to_yaml

BORDER = b"\n%%%%\n"
NAMES = ("compose.yaml", "compose.override.yaml", ".env", "more")


def read_to_the_end(content: bytes, folder: Path) -> None:
    """Read, check, plan and render in a folder; any exception from here is a find."""
    for name in NAMES:
        (folder / name).unlink(missing_ok=True)
    for name, part in zip(NAMES, content.split(BORDER, len(NAMES) - 1), strict=False):
        (folder / name).write_bytes(part)
    first = rendered(folder)
    assert first == rendered(folder), "two readings differ"


def rendered(folder: Path) -> list[str]:
    shell = {"SET": "a", "NUMBER": "80", "EMPTY": "", "DOLLAR": "$SET"}
    try:
        loaded = load(Request(folder=folder, shell=shell, name="demo", domain="example.com"))
    except ComposeplatError as error:
        return [str(error)]
    plan = None
    if not loaded.report.errors:
        plan = make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report)
    texts = []
    for diagnostic in loaded.report.at_least(Severity.NOTE):
        span = diagnostic.span
        assert span.line >= 1, diagnostic
        assert span.column >= 1, diagnostic
        assert span.line <= end_of(span.source.text)[0], diagnostic
        assert diagnostic.message.isprintable(), diagnostic
        assert diagnostic.hint.isprintable(), diagnostic
        texts.append(f"{span.source.name}:{span.line}:{span.column} {diagnostic.message} {diagnostic.hint}")
    if plan is not None and not loaded.report.errors:
        texts += [render_yaml(plan), render_json(plan), *render_files(plan).values()]
        texts += [to_yaml(resolved_definition(loaded)), str(variable_rows(loaded.references))]
    return texts
