"""A program on PATH may be anything: what it prints, and whether it ends, is up to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from composeplat.toolchain import versions
from composeplat.toolchain.versions import version_output


def program(folder: Path, script: str) -> Path:
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("script", "output"),
    [
        pytest.param('echo "v1.2.3 $1"', "v1.2.3 version\n", id="a-version"),
        pytest.param("printf '\\377 v1.2.3'", "\ufffd v1.2.3", id="no-utf-8"),
        pytest.param("cat; echo v1.2.3", "v1.2.3\n", id="reads-its-input"),
        pytest.param("echo v1.2.3; exit 1", "", id="fails"),
    ],
)
def test_output(tmp_path: Path, script: str, output: str) -> None:
    """What a program prints is its output, whatever the bytes are; of one that fails there is none."""
    assert version_output(program(tmp_path, script), ("version",), {"PATH": "/usr/bin:/bin"}) == output


def test_a_program_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that hangs is as good as none, and so is one that isn't there."""
    monkeypatch.setattr(versions, "_TIMEOUT_S", 0.1)

    assert version_output(program(tmp_path, "exec sleep 9"), (), {"PATH": "/usr/bin:/bin"}) == ""
    assert version_output(tmp_path / "missing", (), {}) == ""
