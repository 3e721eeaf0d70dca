"""``platform init``: writes ``compose.platform.yaml``, which mends what ``platform check`` finds.

Owns the file: which one it is, the difference that is shown first, and the question.
The user's own files are never changed.
"""

from __future__ import annotations

import difflib
import os
import stat
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli.arguments import App
from composeplat.cli.console import show_report, wants_color, write_unmasked
from composeplat.cli.gathering import Gathered, gather
from composeplat.cli.help_text import Guide
from composeplat.cli.questions import confirm
from composeplat.cli.selection import PLANNING, Choice, with_choice
from composeplat.codes import Effect, Severity
from composeplat.compatibility.entries import Entry
from composeplat.compatibility.findings import Check, Finding
from composeplat.compatibility.full_mode import honored_in, honored_keys, is_chosen, obstacles, turn_on
from composeplat.compatibility.platform_file import add_entries
from composeplat.compose.discovery import MAX_DEFINITION_BYTES, PLATFORM_NAMES
from composeplat.diagnostics import ComposeplatError, Diagnostic, Exit, format_count, join_and_count, printable
from composeplat.system import files
from composeplat.system.atomic import write_file
from composeplat.system.records import record

app = App()

_MAX_LISTED = 8
#: An entry of a round can make one of the next needed: at most three rounds were seen.
_MAX_ROUNDS = 6
_COLORS = {"+": "32", "-": "31", "@": "36"}


@record(kw_only=True)
class _Mended:
    """A definition with the text of its platform file, and how it is read."""

    choice: Choice
    gathered: Gathered
    text: str
    reasons: tuple[str, ...] = ()
    """Why full mode stays off, which would honor keys."""


def run(choice: Choice, *, offline: bool, yes: bool, dry_run: bool) -> Exit:
    first = gather(choice, offline=offline, asks_cluster=False)
    is_named = bool(choice.file or first.loaded.variables.lookup("COMPOSE_FILE"))
    path = _platform_file(first.loaded.folder)
    before = _read(path)
    gathered = _again(choice, first, before) if before and not _reads(first, path) else first
    if not gathered.loaded.project.services:
        show_report(gathered.loaded.report, as_json=choice.json_diagnostics)
        return Exit.INVALID
    mended = _mend(_Mended(choice=choice, gathered=gathered, text=before))
    for line in mended.reasons:
        progress.conclude(line)
    if mended.text == before:
        needless = f"{path.name} needs no change" if files.exists(path) else f"there is nothing to write to {path.name}"
        progress.conclude(needless)
    else:
        write_unmasked(_difference(before, mended.text, path.name, color=wants_color(sys.stdout)))
        if dry_run:
            progress.conclude("nothing was written: --dry-run")
            return Exit.DONE
        _confirm(path, yes=yes)
        _write(path, mended.text)
    if is_named and files.exists(path) and not _reads(first, path):
        _show_how_to_read(choice, path)
    _show_rest(mended.gathered.check)
    return Exit.DONE


def _mend(mended: _Mended) -> _Mended:
    """Add entries until none is left to add.

    With entries, others may be needed: a service that was a job is a server then, with an address that others use.
    """
    before, name = mended.text, _platform_file(mended.gathered.loaded.folder).name
    entries: dict[Entry, None] = {}
    for _ in range(_MAX_ROUNDS):
        mended, first = _with_full_mode(mended)
        fixes = (entry for finding in _of_all_profiles(mended).all_findings for entry in finding.fix)
        known = len(entries)
        entries.update(dict.fromkeys((*first, *fixes)))
        # All of them into the file as it was: so those of a service are together, and a new file is written as a whole.
        after = add_entries(before, entries, name) if len(entries) > known else mended.text
        if after == mended.text:
            break
        mended = replace(mended, text=after, gathered=_again(mended.choice, mended.gathered, after))
    return mended


def _reads(gathered: Gathered, path: Path) -> bool:
    return any(_is_same(name, path) for name in gathered.loaded.files)


def _is_same(name: str, path: Path) -> bool:
    return os.path.realpath(name) == os.path.realpath(path)


def _again(choice: Choice, gathered: Gathered, text: str) -> Gathered:
    """Read the definition again, with a text as its platform file, and with what the registries said."""
    path, names = _platform_file(gathered.loaded.folder), gathered.loaded.files
    names = names if _reads(gathered, path) or not text else (*names, str(path))
    return gather(
        choice,
        offline=gathered.is_offline,
        asks_cluster=False,
        images=gathered.images,
        files=names,
        contents={name: text.encode() for name in names if _is_same(name, path)},
    )


def _with_full_mode(mended: _Mended) -> tuple[_Mended, tuple[Entry, ...]]:
    """Turn full mode on where it is asked for, or where it honors keys and nothing is lost by it; else note why not."""
    choice, gathered = mended.choice, mended.gathered
    loaded, check = gathered.loaded, gathered.check
    if is_chosen(loaded) or loaded.settings.full:
        is_missing = choice.full and not is_chosen(loaded)
        default = _again(replace(choice, full=False), gathered, mended.text) if is_missing else gathered
        return replace(mended, reasons=()), (turn_on(default.check.honored),) if is_missing else ()
    full = replace(choice, full=True)
    read = _again(full, gathered, mended.text) if check.honored else gathered
    honored = honored_in(read.check, check, loaded.document)
    if not honored:
        return replace(mended, reasons=()), ()
    against = obstacles(check, read.check, read.plan, loaded.document)
    if against:
        return replace(mended, reasons=_reasons(honored, against)), ()
    return replace(mended, choice=full, gathered=read, reasons=()), (turn_on(honored),)


def _reasons(honored: Collection[Diagnostic], against: Sequence[str]) -> tuple[str, ...]:
    keys, more = format_count(len(honored), "key"), len(against) - _MAX_LISTED
    return (
        f"full mode stays off, which honors {keys} ({honored_keys(honored)}):",
        *(f"  {reason}" for reason in against[:_MAX_LISTED]),
        *([f"  and {more} more: 'platform check --full' lists them"] if more > 0 else ()),
    )


def _of_all_profiles(mended: _Mended) -> Check:
    """Check the services of all profiles: what they lose is mended too, before a profile is turned on."""
    if not mended.gathered.loaded.project.inactive:
        return mended.gathered.check
    # Only full mode leaves services out, and the first of the two readings may be without the file that chooses it.
    return _again(replace(mended.choice, profile=("*",), full=True), mended.gathered, mended.text).check


def _platform_file(folder: Path) -> Path:
    return next((folder / name for name in PLATFORM_NAMES if files.exists(folder / name)), folder / PLATFORM_NAMES[0])


def _read(path: Path) -> str:
    """Read the platform file; a link is refused, as it would be replaced by a file."""
    try:
        is_link = stat.S_ISLNK(path.lstat().st_mode)
    except FileNotFoundError:
        return ""
    if is_link:
        raise ComposeplatError(f"{path.name} is a link, and is not changed", "put a file in its place")
    try:
        return files.read_bytes(path, limit=MAX_DEFINITION_BYTES).decode("utf-8-sig")
    except (files.Unreadable, UnicodeDecodeError) as error:
        raise ComposeplatError(f"{path.name} can't be read: {error}") from error


def _difference(before: str, after: str, name: str, *, color: bool) -> str:
    """Return the changed lines; an entry has no value of a variable, and a word of it can be one, such as 'true'."""
    old, new = before.splitlines(), after.splitlines()
    found = difflib.unified_diff(old, new, name if before else os.devnull, name, lineterm="")
    lines = (line if line.startswith("+") else progress.masked_text(line) for line in found)
    return "".join(f"{_colored(line, color=color)}\n" for line in map(printable, lines))


def _colored(line: str, *, color: bool) -> str:
    code = _COLORS.get(line[:1]) if color else None
    return f"\x1b[{code}m{line}\x1b[0m" if code else line


def _confirm(path: Path, *, yes: bool) -> None:
    if yes:
        return
    no_terminal = ComposeplatError(
        f"{path.name} was not written: there is no terminal to confirm that on", "give --yes too"
    )
    confirm(f"Write {path.name}?", no_terminal, refused="nothing was written", default=True)


def _write(path: Path, text: str) -> None:
    try:
        write_file(path, text)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ComposeplatError(f"can't write {path.name}: {reason}") from error
    progress.conclude(f"wrote {path.name}")


def _show_how_to_read(choice: Choice, path: Path) -> None:
    name = os.path.relpath(path)
    if choice.file:
        progress.conclude(f"it is read only if you name it: add --file {name} after the other files")
    else:
        progress.conclude(f"it is read only if COMPOSE_FILE names it: add {name} to it")


def _show_rest(check: Check) -> None:
    """Report the number of findings that no entry fixes, and of those a deploy is refused for; of shared lines once."""
    left = [finding for finding in check.all_findings if finding.effect.rank > Effect.CHANGED.rank and not finding.fix]
    if left:
        progress.conclude(f"{_counted(_count_places(left))} left{_in(left)}: 'platform check' lists them")
    errors = [finding for finding in left if finding.diagnostic.severity is Severity.ERROR]
    if errors:
        progress.conclude(f"before a deploy, mend {_errors(_count_places(errors))}{_in(errors)}")


def _count_places(findings: Iterable[Finding]) -> int:
    return len({(finding.diagnostic.code, finding.diagnostic.span) for finding in findings})


def _counted(count: int) -> str:
    return f"{count} finding is" if count == 1 else f"{count} findings are"


def _errors(count: int) -> str:
    return "the error" if count == 1 else f"the {count} errors"


def _in(findings: Iterable[Finding]) -> str:
    paths = (finding.diagnostic.path for finding in findings)
    names = sorted({str(path[1]) for path in paths if path[:1] == ("services",) and len(path) > 1})
    return f" ({join_and_count(names, _MAX_LISTED)})" if names else ""


@app.command(
    "init",
    guide=Guide(
        {
            "Show the file, and write nothing": "platform init --dry-run",
            "Without being asked, and without asking registries": "platform init --yes --offline",
        },
        "moving-in.md",
    ),
)
@with_choice(*PLANNING, cluster=False)
def init_command(
    choice: Choice,
    offline: Annotated[bool, typer.Option("--offline", help="Do not ask registries about the images.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference, and write nothing.")] = False,
) -> int:
    """Write compose.platform.yaml, which adapts the Compose file to a cluster. Other files are not changed."""
    return run(choice, offline=offline, yes=yes, dry_run=dry_run)
