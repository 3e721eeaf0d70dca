"""Programs that are built with Go."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from composeplat.system.folders import cache_folder
from composeplat.toolchain.cache import Cache
from composeplat.toolchain.golang import build, need_go
from composeplat.toolchain.tools import Tool

_MAIN = 'package main\n\nfunc main() { println("it runs") }\n'


@pytest.mark.parametrize("is_in_file", [False, True])
def test_a_build_is_for_this_machine(tmp_path: Path, *, is_in_file: bool) -> None:
    """Where the user builds for another system, by the shell or ``go env -w``, tools are for this one."""
    (tmp_path / "go.mod").write_text("module it\n\ngo 1.26\n")
    (tmp_path / "main.go").write_text(_MAIN)
    go = need_go(os.environ, Cache(cache_folder(os.environ)))
    other = {"GOOS": "windows", "GOARCH": "arm64"}
    file = tmp_path / "env"
    file.write_text("".join(f"{name}={value}\n" for name, value in other.items()))
    tool = Tool(name="it", version="1.0.0", module=tmp_path, package=".")

    build(tool, go, tmp_path / "it", {**os.environ, **({"GOENV": str(file)} if is_in_file else other)})

    done = subprocess.run([tmp_path / "it"], capture_output=True, text=True, check=False)
    assert done.stderr == "it runs\n"
