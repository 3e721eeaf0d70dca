"""``platform state``: where the state of an environment is, its passphrase, its lock, and moving it."""

from __future__ import annotations

import os
from functools import partial
from typing import Annotated

import typer

from composeplat import progress
from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.console import table, write_output
from composeplat.cli.help_text import Guide, Guided
from composeplat.cli.operations import document, show_document
from composeplat.cli.selection import WORKING, Choice, with_choice
from composeplat.cli.state_place import StatePlace, confirm_change, is_ours, new_passphrase
from composeplat.diagnostics import Exit, printable
from composeplat.engine.moved_mark import read_moved
from composeplat.engine.operations import state as operation
from composeplat.engine.passphrase import find_passphrase, salt_of
from composeplat.engine.preflight import resources_of_others
from composeplat.engine.pulumi_errors import Busy
from composeplat.engine.state_list import list_stacks
from composeplat.engine.state_store import Deployment, StateStore, is_empty

app = App(
    "state",
    guide=Guide({"Where the state of this environment is": "platform state show"}, "state.md"),
    cls=Guided,
    no_args_is_help=True,
    help="Show where the state is, move it, change its passphrase, remove a lock that was left.",
)

_Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


# show -----------------------------------------------------------------------------------------------------------------


@app.command("show", guide=Guide({"As JSON": "platform state show --json"}, "state.md"))
@with_choice()
def state_show_command(choice: Choice, as_json: opt.Json = False) -> int:
    """Print the backend of an environment, the size of its state, and where its passphrase comes from."""
    place = StatePlace(choice)
    if notice := place.notice_of_other_project():
        progress.note(notice)
    store = place.current()
    state = store.read()
    if state is None and read_moved(store.folder):
        error = operation.no_state(store)
        progress.note(f"{error}: {error.hint}")
    resources = len((state or {}).get("resources") or ())
    source = _passphrase_source(place, store, state or {})
    if as_json:
        show_document(
            _document(place, "show", backend=store.backend.shown, resources=resources, passphrase=source), as_json=True
        )
        return Exit.DONE
    rows = [("environment", place.environment_name), ("namespace", place.namespace), ("backend", store.backend.shown)]
    rows.append(("resources", "no state" if state is None else str(resources)))
    rows.append(("passphrase", source))
    write_output(table(rows))
    return Exit.DONE


def _passphrase_source(place: StatePlace, store: StateStore, state: Deployment) -> str:
    kind = (state.get("secrets_providers") or {}).get("type")
    if kind and not salt_of(state):
        return str(kind)
    return str(find_passphrase(os.environ, place.data_folder, store.folder).source)


# unlock ---------------------------------------------------------------------------------------------------------------


@app.command("unlock", guide=Guide({"After the machine that deployed is gone": "platform state unlock"}, "state.md"))
@with_choice(*WORKING)
def state_unlock_command(choice: Choice, yes: _Yes = False, as_json: opt.Json = False) -> int:
    """Remove the lock that a run left which is gone for good, such as one on another machine."""
    place = StatePlace(choice)
    place.check_project("unlock")
    store = place.current()
    with store.lock("state unlock"):
        state = store.read()
        if state is None:
            raise operation.no_state(store)
        holder = _holder(store, state)
        if holder:
            progress.note(holder)
            confirm_change("Remove the lock? A run that still works would continue without it.", yes=yes)
            store.remove_lock()
    show_document(_document(place, "unlock", backend=store.backend.shown, unlocked=bool(holder)), as_json=as_json)
    progress.conclude(f"removed the lock of {place.where}" if holder else f"{place.where} is not locked")
    return Exit.DONE


def _holder(store: StateStore, state: Deployment) -> str:
    """Return the message that names the holder of the lock; empty if it is not locked."""
    if is_empty(state):
        return "the state is empty, and Pulumi can't show whether it is locked"
    try:
        store.check_unlocked(state)
    except Busy as error:
        return str(error)
    return ""


# passphrase -----------------------------------------------------------------------------------------------------------


@app.command(
    "passphrase",
    guide=Guide(
        {
            "A new generated one": "platform state passphrase",
            "One from a file": "platform state passphrase --new-passphrase-file new.txt",
            "For all environments of the backend": "platform state passphrase --all",
        },
        "state.md",
    ),
)
@with_choice(*WORKING)
def state_passphrase_command(
    choice: Choice,
    new_file: Annotated[
        str,
        typer.Option(
            "--new-passphrase-file",
            metavar="FILE",
            help="Read the new passphrase from here, else from PLATFORM_NEW_PASSPHRASE or the terminal.",
        ),
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="Change it for all environments of the backend.")] = False,
    yes: _Yes = False,
    as_json: opt.Json = False,
) -> int:
    """Encrypt the state with a new passphrase."""
    place = StatePlace(choice)
    if not everything:
        place.check_project("passphrase")
    store = place.current()
    stores = _environments(store) if everything else [store]
    new, ours = new_passphrase(new_file), is_ours()
    if everything:
        names = ", ".join(f"{found.environment_name} in namespace {found.namespace}" for found in stores)
        progress.note(f"environments of {store.backend.shown}: {names}")
        confirm_change(f"Change the passphrase of {len(stores)} environments?", yes=yes)
    rows = []
    for found in stores:
        outcome = operation.change_passphrase(found, partial(place.passphrases, found), new, is_ours=ours)
        rows.append({"environment": found.environment_name, "namespace": found.namespace, "outcome": str(outcome)})
    show_document(_document(place, "passphrase", backend=store.backend.shown, environments=rows), as_json=as_json)
    for row in rows:
        done = "has a new passphrase" if row["outcome"] == "changed" else "has this passphrase already"
        progress.conclude(f"the state of {row['environment']} in namespace {row['namespace']} {done}")
    if not ours:
        progress.conclude("give everyone the new passphrase, and set PULUMI_CONFIG_PASSPHRASE to it from now on")
    return Exit.DONE


def _environments(store: StateStore) -> list[StateStore]:
    """Return the environments of a backend; a note names the stacks of other Pulumi programs, which stay."""
    found = [store.of(*names) for names in list_stacks(store)]
    foreign = [other for other in found if resources_of_others(other.read() or {}, other.environment_name)]
    for other in foreign:
        progress.note(f"stack {other.namespace} of project {other.environment_name} is of another program, and stays")
    return [other for other in found if other not in foreign]


# move -----------------------------------------------------------------------------------------------------------------


@app.command(
    "move",
    guide=Guide(
        {
            "From the files of this machine to a bucket": "platform state move own s3://team-state",
            "To a database, whose URL has a login": "platform state move own env:TEAM_STATE",
        },
        "state.md",
    ),
)
@with_choice(*WORKING)
def state_move_command(
    choice: Choice,
    source: Annotated[str, typer.Argument(metavar="FROM", help="The URL of a backend, own, or env:VARIABLE.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The same.")],
    source_file: Annotated[
        str,
        typer.Option("--from-passphrase-file", metavar="FILE", help="The passphrase of FROM, if it is another one."),
    ] = "",
    keep: Annotated[bool, typer.Option("--keep", help="Leave the state in FROM, as a copy.")] = False,
    yes: _Yes = False,
    as_json: opt.Json = False,
) -> int:
    """Move the state of an environment to another backend."""
    place = StatePlace(choice)
    place.check_project("move")
    move = _make_move(place, source, target, source_file, keep=keep)
    names = {"from": move.source.backend.shown, "backend": move.target.backend.shown}
    with move.locked():
        preview = move.read()
        if preview is not None:
            _show_preview(preview, move, place)
            confirm_change("Move the state?", yes=yes)
            move.run()
    moved = 0 if preview is None else preview.resources
    show_document(_document(place, "move", **names, resources=moved, kept=keep), as_json=as_json)
    if preview is None:
        progress.conclude(f"the state of {place.where} is in {names['backend']} already")
    else:
        done = "copied" if keep else "moved"
        progress.conclude(f"{done} the state of {place.where} to {names['backend']}; both were compared")
    progress.conclude("set PULUMI_BACKEND_URL to it for every command from now on, or log in: pulumi login URL")
    return Exit.DONE


def _make_move(place: StatePlace, source: str, target: str, source_file: str, *, keep: bool) -> operation.Move:
    old, new = place.at(source), place.at(target)
    return operation.Move(
        source=old,
        target=new,
        passphrases=place.passphrases(old, source_file),
        passphrase=find_passphrase(os.environ, place.data_folder, new.folder),
        keep=keep,
    )


def _show_preview(preview: operation.MovePreview, move: operation.Move, place: StatePlace) -> None:
    verb = "copies" if move.keep else "moves"
    progress.note(f"{verb} the state of {place.where}, {preview.resources} resources")
    progress.note(f"  from {printable(move.source.backend.shown)}")
    progress.note(f"  to   {printable(move.target.backend.shown)}")
    if preview.reencrypts:
        progress.note(f"  with another passphrase: {move.passphrase.source}")
    if preview.is_continued:
        progress.note("  the target has it already: an interrupted move continues")


def _document(place: StatePlace, action: str, **fields: object) -> dict[str, object]:
    return document("state", place.environment_name, place.namespace, action=action, **fields)
