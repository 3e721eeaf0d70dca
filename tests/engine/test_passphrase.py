"""The passphrase of a state: where it comes from, and what an interrupted change leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from composeplat.diagnostics import MissingPiece
from composeplat.engine.backend import DataFolder
from composeplat.engine.passphrase import (
    Passphrase,
    PassphraseChange,
    Source,
    find_passphrase,
    read_passphrase,
    salt_of,
)


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    folder = DataFolder(tmp_path / "data")
    folder.prepare()
    return folder


@pytest.fixture
def change(data: DataFolder) -> PassphraseChange:
    folder = data.path / "stacks" / "x"
    folder.mkdir()
    return PassphraseChange(folder)


def test_sources(data: DataFolder, change: PassphraseChange, tmp_path: Path) -> None:
    """The variable comes first, then the file that a variable names, the stack's own file, and the generated one."""
    file = tmp_path / "file"
    file.write_text(" from a file \n")
    named = {"PULUMI_CONFIG_PASSPHRASE_FILE": str(file)}
    generated = find_passphrase({}, data, change.folder)
    change.file.write_text("of the stack")

    assert generated == Passphrase(data.passphrase.read_text(), Source.GENERATED)
    assert find_passphrase({}, data, change.folder) == Passphrase("of the stack", Source.STACK)
    assert find_passphrase(named, data, change.folder) == Passphrase("from a file", Source.FILE_VARIABLE)
    both = {**named, "PULUMI_CONFIG_PASSPHRASE": ""}
    assert find_passphrase(both, data, change.folder) == Passphrase("", Source.VARIABLE)
    assert "of the stack" not in repr(find_passphrase({}, data, change.folder))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "can't be read: no such file or directory"),
        (b"\xff", "can't be read: it is not utf-8 text"),
        (b" \n", ""),
    ],
)
def test_unreadable_file(tmp_path: Path, content: bytes | None, reason: str) -> None:
    """A file without a passphrase is an error with its path."""
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    message = f"the passphrase in '{path}' {reason}" if reason else f"the file '{path}' has no passphrase"

    with pytest.raises(MissingPiece) as caught:
        read_passphrase(path)

    assert str(caught.value) == message


def test_salt_of() -> None:
    """A state has a salt if it is encrypted with a passphrase."""
    state = {"secrets_providers": {"type": "passphrase", "state": {"salt": "v1:a"}}}

    assert salt_of(state) == "v1:a"
    assert [salt_of(other) for other in ({}, {"secrets_providers": {"type": "cloud", "state": {}}})] == ["", ""]


@pytest.mark.parametrize("is_ours", [True, False])
def test_interrupted_before_the_state_was_written(change: PassphraseChange, *, is_ours: bool) -> None:
    """The old passphrase stays, and nothing of the new one."""
    change.file.write_text("old")
    change.begin("new", "v1:new", is_ours=is_ours)

    assert change.is_pending
    assert "had no effect" in change.resolve("v1:old")
    assert {path.name: path.read_text() for path in change.folder.iterdir()} == {"passphrase": "old"}
    assert change.resolve("v1:old") == ""


@pytest.mark.parametrize(("is_ours", "kept"), [(True, "new"), (False, "old")])
def test_interrupted_after_the_state_was_written(change: PassphraseChange, kept: str, *, is_ours: bool) -> None:
    """One of ours becomes the passphrase of the stack; one of the user's is in no file."""
    change.file.write_text("old")
    change.begin("new", "v1:new", is_ours=is_ours)

    assert "was complete" in change.resolve("v1:new")
    assert {path.name: path.read_text() for path in change.folder.iterdir()} == {"passphrase": kept}


def test_interrupted_at_its_end(change: PassphraseChange) -> None:
    """A kill between the steps of the end leaves a note without a file, which changes nothing."""
    change.begin("new", "v1:new", is_ours=True)
    (change.folder / "passphrase.new").replace(change.file)

    assert "was complete" in change.resolve("v1:new")
    assert change.file.read_text() == "new"


def test_a_broken_note(change: PassphraseChange) -> None:
    """A note that can't be read counts as a change that had no effect."""
    change.note.write_text("{")

    assert "had no effect" in change.resolve("v1:any")
    assert not change.is_pending
