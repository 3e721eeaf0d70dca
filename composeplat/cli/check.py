"""``platform check``: whether the definition runs here as it does with Compose."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Annotated

import typer

from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.console import place_row, table, wants_color, write_json, write_output
from composeplat.cli.gathering import gather
from composeplat.cli.help_text import Guide
from composeplat.cli.operations import document
from composeplat.cli.selection import PLANNING, Choice, with_choice
from composeplat.codes import Effect
from composeplat.compatibility.entries import Entry
from composeplat.compatibility.explanation import Statement
from composeplat.compatibility.findings import Check, Finding, ServiceCheck
from composeplat.compatibility.platform_file import entry_lines
from composeplat.compose.parse.unsupported_keys import FULL_MODE_ALONE
from composeplat.diagnostics import Exit, Span, dotted, format_count, join_and_count, printable
from composeplat.plan.selection import no_such_service

app = App()

_VERDICTS = {
    Effect.NONE: "runs as written",
    Effect.CHANGED: "changed",
    Effect.LOST: "lost",
    Effect.CANNOT_RUN: "can't run",
}
_COUNTED = {Effect.CHANGED: "changed", Effect.LOST: "with something lost", Effect.CANNOT_RUN: "can't run"}
_MAX_LISTED = 8
_COLORS = {Effect.NONE: "32", Effect.CHANGED: "33", Effect.LOST: "31", Effect.CANNOT_RUN: "31"}


def run(choice: Choice, *, offline: bool, service: str, as_json: bool) -> Exit:
    gathered = gather(choice, offline=offline)
    check = gathered.check
    if service:
        check = _limited_to(check, service, gathered.plan.providers)
    if as_json:
        write_json(check_document(check))
    else:
        write_output(check_text(check, explained=bool(service), color=wants_color(sys.stdout)))
    if not check.is_valid:
        return Exit.INVALID
    return Exit.DONE if check.verdict is Effect.NONE else Exit.FAILED


def _limited_to(check: Check, name: str, providers: Collection[str]) -> Check:
    """Leave out the other services; the file itself stays."""
    from dataclasses import replace

    names = [service.service for service in check.services]
    if name not in names:
        raise no_such_service(name, names, providers)
    return replace(check, services=tuple(service for service in check.services if service.service == name))


# for people -----------------------------------------------------------------------------------------------------------


def check_text(check: Check, *, explained: bool, color: bool) -> str:
    lines = _verdict_table(check)
    if color:
        lines = [lines[0], *(_colored(line, s) for line, s in zip(lines[1:], check.services, strict=True))]
    shared = _shared_findings(check)
    for service in check.services:
        lines += _section(service.service, (f for f in service.findings if _identity(f) not in shared))
        lines += _explanation(service.explain()) if explained else ()
    for names, findings in _by_services(shared).items():
        lines += _section(f"{join_and_count(names, _MAX_LISTED)}, from shared lines", findings, shown_for=names[0])
    lines += _section("The whole file", check.findings)
    lines += ["", "Not asked", *(f"  {printable(note)}" for note in check.notes)] if check.notes else []
    return "\n".join([*lines, "", _summary(check)]) + "\n"


def _verdict_table(check: Check) -> list[str]:
    """Write a line for each service; the last column says what full mode would honor, where it would honor anything."""
    rows = [("SERVICE", "KIND", "VERDICT", "FULL MODE")]
    rows += [(s.service, s.kind, _VERDICTS[s.verdict], _honored_text(s)) for s in check.services]
    has_last = any(row[-1] for row in rows[1:])
    return table([row if has_last else row[:-1] for row in rows]).splitlines()


def _honored_text(service: ServiceCheck) -> str:
    count = len({finding.diagnostic.span for finding in service.findings if finding.is_honored})
    return f"honors {format_count(count, 'key')}" if count else ""


_Identity = tuple[object, ...]


def _identity(finding: Finding) -> _Identity:
    """Return the same for findings of several services from one line whose entries are the same but for the service."""
    entries = tuple((entry.parent[:1], entry.parent[2:], entry.line, entry.reason) for entry in finding.fix)
    return (finding.diagnostic.span, finding.diagnostic.code, entries)


def _shared_findings(check: Check) -> dict[_Identity, tuple[Finding, list[str]]]:
    """Return the findings that several services have from the same line, such as one of an anchor."""
    found: dict[_Identity, tuple[Finding, list[str]]] = {}
    for service in check.services:
        for finding in service.findings:
            found.setdefault(_identity(finding), (finding, []))[1].append(service.service)
    return {identity: (finding, names) for identity, (finding, names) in found.items() if len(set(names)) > 1}


def _by_services(shared: dict[_Identity, tuple[Finding, list[str]]]) -> dict[tuple[str, ...], list[Finding]]:
    by_services: dict[tuple[str, ...], list[Finding]] = {}
    for finding, names in shared.values():
        by_services.setdefault(tuple(dict.fromkeys(names)), []).append(finding)
    return by_services


def _colored(line: str, service: ServiceCheck) -> str:
    verdict = _VERDICTS[service.verdict]
    before, _, after = line.rpartition(verdict)
    return f"{before}\x1b[{_COLORS[service.verdict]}m{verdict}\x1b[0m{after}"


def _section(title: str, findings: Iterable[Finding], *, shown_for: str = "") -> list[str]:
    """Write findings below a title; ``shown_for`` is the one of several services whose entries are shown."""
    shown: set[tuple[Entry, ...]] = set()
    lines: list[str] = []
    for finding in findings:
        lines += _finding_lines(finding, shown_for, is_repeated=finding.fix in shown)
        shown.add(finding.fix)
    return ["", printable(title), *lines] if lines else []


def _finding_lines(finding: Finding, shown_for: str, *, is_repeated: bool) -> Iterator[str]:
    diagnostic = finding.diagnostic
    weight = f"{_VERDICTS[finding.effect]}: " if finding.effect is not Effect.NONE else ""
    yield f"  {_place(diagnostic.span)}: {weight}{diagnostic.message} [{diagnostic.code}]"
    if finding.fix and is_repeated:
        yield "    mended by the same entry"
    elif finding.fix:
        service = f", here for {printable(shown_for)}" if shown_for else ""
        yield f"    in compose.platform.yaml, where 'platform init' writes it{service}:"
        yield from (f"      {line}" for line in entry_lines(finding.fix, comments=True))
        if finding.is_honored:
            yield f"    or: {FULL_MODE_ALONE}"
        elif diagnostic.code == "outside-project":
            # The volume of the entry is empty; the files may be needed.
            yield f"    or: {diagnostic.hint}"
    elif diagnostic.hint:
        yield f"    hint: {diagnostic.hint}"


def _explanation(statements: Iterable[Statement]) -> list[str]:
    rows = [(s.topic, s.text, _place(s.span) if s.span else "") for s in statements]
    width = max((len(topic) for topic, _, _ in rows), default=0)
    return [
        "",
        *(f"  {topic:<{width}}  {printable(text)}" + (f"  ({place})" if place else "") for topic, text, place in rows),
    ]


def _place(span: Span) -> str:
    return f"{printable(span.source.name)}:{span.line}:{span.column}"


def _summary(check: Check) -> str:
    counts = Counter(service.verdict for service in check.services)
    mode = " in full mode" if check.is_full else ""
    whole = f"{counts[Effect.NONE]} of {len(check.services)} services run as written{mode}"
    rest = [f", {counts[effect]} {phrase}" for effect, phrase in _COUNTED.items() if counts[effect]]
    mended = sum(bool(finding.fix) for finding in check.all_findings)
    more = f"; 'platform init' mends {format_count(mended, 'finding')}" if mended else ""
    count = len(check.honored)
    verb = "is" if count == 1 else "are"
    honored = (
        f"\n{format_count(count, 'key')} {verb} honored by full mode: --full or x-platform: {{full: true}}"
        if count
        else ""
    )
    return "".join([whole, *rest, more, honored])


# for programs ---------------------------------------------------------------------------------------------------------


def check_document(check: Check) -> dict[str, object]:
    services = [
        {
            "service": service.service,
            "kind": service.kind,
            "verdict": service.verdict,
            "findings": [_finding_data(finding) for finding in service.findings],
            "explanation": [_statement_data(statement) for statement in service.explain()],
        }
        for service in check.services
    ]
    return document(
        "check",
        check.environment,
        check.namespace,
        verdict=check.verdict,
        valid=check.is_valid,
        full=check.is_full,
        services=services,
        findings=[_finding_data(finding) for finding in check.findings],
        notes=list(check.notes),
    )


def _finding_data(finding: Finding) -> dict[str, object]:
    diagnostic = finding.diagnostic
    return {
        "effect": finding.effect,
        "severity": str(diagnostic.severity),
        "code": diagnostic.code,
        **place_row(diagnostic.span),
        "path": dotted(diagnostic.path),
        "message": diagnostic.message,
        "hint": diagnostic.hint,
        "fix": entry_lines(finding.fix),
        "honored_in_full": finding.is_honored,
    }


def _statement_data(statement: Statement) -> dict[str, object]:
    return {
        "topic": statement.topic,
        "text": statement.text,
        **(place_row(statement.span) if statement.span else {}),
    }


@app.command(
    "check",
    guide=Guide(
        {
            "Without asking registries or a cluster": "platform check --offline",
            "How one service becomes its objects": "platform check --explain web",
            "For a program": "platform check --json",
        },
        "moving-in.md",
    ),
)
@with_choice(*PLANNING)
def check_command(
    choice: Choice,
    offline: Annotated[bool, typer.Option("--offline", help="Ask neither registries nor a cluster.")] = False,
    explain: Annotated[
        str,
        typer.Option("--explain", metavar="SERVICE", help="Show only this service, and the line behind each decision."),
    ] = "",
    as_json: opt.Json = False,
) -> int:
    """Check whether the Compose file runs here as with Docker Compose. Changes nothing."""
    return run(choice, offline=offline, service=explain, as_json=as_json)
