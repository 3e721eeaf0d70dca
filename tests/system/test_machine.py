"""Which machine this is."""

from __future__ import annotations

from pathlib import Path

import pytest

from composeplat.system import machine
from composeplat.system.machine import machine_id, system_machine_id


def test_machine_id(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first id that the system gives counts, and differs from machine to machine; none is none."""
    files = [tmp_path / name for name in ("first", "second")]
    monkeypatch.setattr(machine, "_MACHINE_ID_FILES", tuple(files))
    found = [system_machine_id()]
    for text, path in (("b\n", files[1]), ("", files[0]), ("a\n", files[0])):
        path.write_text(text)
        found.append(system_machine_id())

    assert found[0] == ""
    assert found[1] == found[2] != found[3]
    assert len(found[1]) == 32


def test_a_machine_without_an_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that the system gave no id is known by its host name."""
    monkeypatch.setattr(machine, "_MACHINE_ID_FILES", ())
    found = machine_id()
    monkeypatch.setattr("socket.gethostname", lambda: "another")

    assert system_machine_id() == ""
    assert len(found) == 32
    assert machine_id() != found


def test_a_mac(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Mac has its id in what the system prints of the hardware; without it, there is none."""
    text = '+-o Mac  <class IOPlatformExpertDevice>\n  {\n    "IOPlatformUUID" = "0A1B2C3D-1111-2222-3333-444455556666"'
    monkeypatch.setattr(machine, "printed_by", lambda *_: text)
    found = system_machine_id("darwin")
    monkeypatch.setattr(machine, "printed_by", lambda *_: "")

    assert len(found) == 32
    assert "0A1B2C3D" not in found
    assert system_machine_id("darwin") == ""
    assert machine_id()


def test_printed_by() -> None:
    """A program that is not there, or that fails, printed nothing."""
    assert machine.printed_by("ps", "-o", "pid=", "-p", "1") == "1"
    assert machine.printed_by("ps", "-p", str(2**22 + 1)) == ""
    assert machine.printed_by("no-such-program") == ""
