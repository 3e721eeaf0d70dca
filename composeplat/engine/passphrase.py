"""The passphrases of states: where each comes from, and the change of one that a kill may interrupt.

Owns the files of a stack's folder that hold a passphrase, and which of two passphrases a state has after a change that
was interrupted: the salt in the state decides.
Must not encrypt: Pulumi does.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Any

from composeplat.diagnostics import MissingPiece
from composeplat.engine.backend import DataFolder, writing
from composeplat.system.atomic import write_private
from composeplat.system.records import record

VARIABLE, FILE_VARIABLE = "PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"
#: By the type of a provider of secrets in a state: the settings of a stack, and what the state calls them.
_SETTINGS = {
    "passphrase": {"encryptionsalt": "salt"},
    "cloud": {"secretsprovider": "url", "encryptedkey": "encryptedkey"},
}


class Source(StrEnum):
    """Where a passphrase comes from."""

    VARIABLE = VARIABLE
    FILE_VARIABLE = FILE_VARIABLE
    STACK = "a file of this environment in the data folder"
    GENERATED = "the generated file in the data folder"
    GIVEN = "given"


@record
class Passphrase:
    text: str = field(repr=False)
    source: Source = Source.GIVEN

    @property
    def is_ours(self) -> bool:
        """Whether it is in a file of the data folder."""
        return self.source in (Source.STACK, Source.GENERATED)

    @property
    def variables(self) -> dict[str, str]:
        return {VARIABLE: self.text}


def find_passphrase(environment: Mapping[str, str], data_folder: DataFolder, folder: Path) -> Passphrase:
    """Find the passphrase that a deploy would use for the stack with this folder."""
    if VARIABLE in environment:
        return Passphrase(environment[VARIABLE], Source.VARIABLE)
    if environment.get(FILE_VARIABLE):
        return Passphrase(read_passphrase(Path(environment[FILE_VARIABLE])), Source.FILE_VARIABLE)
    return own_passphrase(data_folder, folder)


def own_passphrase(data_folder: DataFolder, folder: Path) -> Passphrase:
    """Return the passphrase of the data folder for the stack with this folder."""
    change = PassphraseChange(folder)
    if change.file.exists():
        return Passphrase(read_passphrase(change.file), Source.STACK)
    return Passphrase(read_passphrase(data_folder.passphrase), Source.GENERATED)


def read_passphrase(path: Path) -> str:
    """Read a passphrase as Pulumi does: without the space around it."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or "it is not UTF-8 text").lower()
        raise MissingPiece(f"the passphrase in '{path}' can't be read: {reason}") from error
    if not text:
        raise MissingPiece(f"the file '{path}' has no passphrase")
    return text


def salt_of(state: Mapping[str, Any]) -> str:
    """Return the salt of a state, which differs with each passphrase; empty without one."""
    return settings_of(state).get("encryptionsalt", "")


def settings_of(state: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of a stack by which Pulumi keeps the provider of secrets that its state has.

    Without those of a cloud's key service, it would encrypt the state with a passphrase from then on.
    """
    providers = state.get("secrets_providers") or {}
    found = providers.get("state") or {}
    rows = _SETTINGS.get(str(providers.get("type")), {})
    return {name: str(found[key]) for name, key in rows.items() if found.get(key)}


@record
class PassphraseChange:
    """The change of the passphrase of one stack: files in its folder, each written whole.

    The note names the salt that the state will have; with it the next run knows whether the state was written.
    """

    folder: Path
    """The stack's."""

    @property
    def file(self) -> Path:
        """The passphrase of this stack alone; without it, the data folder's generated one counts."""
        return self.folder / "passphrase"

    @property
    def _new_file(self) -> Path:
        return self.folder / "passphrase.new"

    @property
    def note(self) -> Path:
        return self.folder / "passphrase-change.json"

    @property
    def is_pending(self) -> bool:
        return self.note.exists()

    def begin(self, new: str, salt: str, *, is_ours: bool) -> None:
        """Note a change, before the state is written; one of ours has its passphrase in a file."""
        with writing(self.folder):
            if is_ours:
                write_private(self._new_file, new)
            write_private(self.note, json.dumps({"salt": salt, "is_ours": is_ours}))

    def resolve(self, salt: str) -> str:
        """End a change that was begun, by the salt that the state has now; return what became of it."""
        if not self.is_pending:
            return ""
        was_written = salt == self._noted_salt()
        with writing(self.folder):
            if was_written:
                with contextlib.suppress(FileNotFoundError):
                    self._new_file.replace(self.file)
            else:
                self._new_file.unlink(missing_ok=True)
            self.note.unlink(missing_ok=True)
        if was_written:
            return "an interrupted change of the state's passphrase was complete: the new one is needed from now on"
        return "an interrupted change of the state's passphrase had no effect: the old one stays"

    def _noted_salt(self) -> str:
        try:
            return str(json.loads(self.note.read_text(encoding="utf-8"))["salt"])
        except (OSError, ValueError, KeyError, TypeError):
            return ""
