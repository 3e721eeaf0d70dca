"""``platform init``: writes ``compose.platform.yaml``, which mends what ``platform check`` finds.

Owns the file: which one it is, the difference that is shown first, and the question.
The user's own files are never changed.
"""

from __future__ import annotations

import difflib
import os
import stat
import sys
from collections.abc import Iterable
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
from composeplat.diagnostics import ComposeplatError, Exit, format_count, join_and_count, printable
from composeplat.system import files
from composeplat.system.atomic import write_file

app = App()

_MAX_LISTED = 8
_COLORS = {"+": "32", "-": "31", "@": "36"}


def run(choice: Choice, *, offline: bool, yes: bool, dry_run: bool) -> Exit:
    first = gather(choice, offline=offline, asks_cluster=False)
    is_named = bool(choice.file or first.loaded.variables.lookup("COMPOSE_FILE"))
    gathered = _with_platform_file(choice, first)
    loaded = gathered.loaded
    if not loaded.project.services:
        show_report(loaded.report, as_json=choice.json_diagnostics)
        return Exit.INVALID
    path = _platform_file(loaded.folder)
    before = _read(path)
    choice, gathered, entries = _with_full_mode(choice, gathered)
    fixes = (entry for finding in _of_all_profiles(choice, gathered).all_findings for entry in finding.fix)
    after = add_entries(before, (*entries, *fixes), path.name)
    if after == before:
        needless = f"{path.name} needs no change" if files.exists(path) else f"there is nothing to write to {path.name}"
        progress.conclude(needless)
    else:
        write_unmasked(_difference(before, after, path.name, color=wants_color(sys.stdout)))
        if dry_run:
            progress.conclude("nothing was written: --dry-run")
            return Exit.DONE
        _confirm(path, yes=yes)
        _write(path, after)
        # With the entries, a service may be another kind of workload, to which other rules apply.
        gathered = _again(choice, gathered)
    if is_named and files.exists(path) and not _reads(first, path):
        _show_how_to_read(choice, path)
    _show_rest(gathered.check)
    return Exit.DONE


def _with_platform_file(choice: Choice, gathered: Gathered, *, asks_images: bool = True) -> Gathered:
    """Read the definition with the platform file too, if the files that the user names leave it out."""
    path = _platform_file(gathered.loaded.folder)
    if _reads(gathered, path) or not files.exists(path):
        return gathered
    paths = (*gathered.loaded.files, str(path))
    return gather(choice, offline=gathered.is_offline, asks_cluster=False, asks_images=asks_images, files=paths)


def _reads(gathered: Gathered, path: Path) -> bool:
    return any(os.path.realpath(name) == os.path.realpath(path) for name in gathered.loaded.files)


def _again(choice: Choice, gathered: Gathered) -> Gathered:
    """Read the definition again, with what the registries said."""
    read = gather(choice, offline=gathered.is_offline, asks_cluster=False, asks_images=False)
    return replace(_with_platform_file(choice, read, asks_images=False), images=gathered.images)


def _with_full_mode(choice: Choice, gathered: Gathered) -> tuple[Choice, Gathered, tuple[Entry, ...]]:
    """Turn full mode on where it is asked for, or where it honors keys and nothing is lost by it; else say why not."""
    loaded, check = gathered.loaded, gathered.check
    if is_chosen(loaded) or loaded.settings.full:
        is_missing = choice.full and not is_chosen(loaded)
        return (
            choice,
            gathered,
            (turn_on(_again(replace(choice, full=False), gathered).check.honored),) if is_missing else (),
        )
    full = replace(choice, full=True)
    read = _again(full, gathered) if check.honored else gathered
    honored = honored_in(read.check, check, loaded.document)
    if not honored:
        return choice, gathered, ()
    against = obstacles(check, read.check, read.plan, loaded.document)
    if not against:
        return full, read, (turn_on(honored),)
    keys = format_count(len(honored), "key")
    progress.conclude(f"full mode stays off, which honors {keys} ({honored_keys(honored)}):")
    for reason in against[:_MAX_LISTED]:
        progress.conclude(f"  {reason}")
    if len(against) > _MAX_LISTED:
        progress.conclude(f"  and {len(against) - _MAX_LISTED} more: 'platform check --full' lists them")
    return choice, gathered, ()


def _of_all_profiles(choice: Choice, gathered: Gathered) -> Check:
    """Check the services of all profiles: what they lose is mended too, before a profile is turned on."""
    if not gathered.loaded.project.inactive:
        return gathered.check
    # Only full mode leaves services out, and the first of the two readings may be without the file that chooses it.
    return _again(replace(choice, profile=("*",), full=True), gathered).check


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
