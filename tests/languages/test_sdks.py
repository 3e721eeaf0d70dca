"""The SDKs for TypeScript and Go are made of the schema and compile, and so do the programs of the page with them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.golang.modules import go
from tests.languages.sdk import write_sdk
from tests.node_packages import node_modules
from tests.page_commands import read_steps

HERE = ROOT / "tests" / "languages"
PAGE = (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")
FILES = {step.argument: step.content for step in read_steps(PAGE) if step.mark == "file"}
#: A first run fetches and compiles Pulumi's own SDKs.
pytestmark = pytest.mark.timeout(900)
_TSC = ("--noEmit", "--strict", "--skipLibCheck", "--module", "commonjs", "--target", "es2022")


def type_check(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Compile a program with the SDK of the schema beside Pulumi's own, without output."""
    modules = node_modules(HERE / "typescript")
    (folder / "node_modules").mkdir(exist_ok=True)
    for name in modules.iterdir():
        if not name.name.startswith(".") and not (folder / "node_modules" / name.name).exists():
            (folder / "node_modules" / name.name).symlink_to(name)
    write_sdk("nodejs", folder / "node_modules" / "composeplat")
    (folder / "index.ts").write_text(text)
    compiler = modules / "typescript" / "bin" / "tsc"
    command = ["node", str(compiler), *_TSC, "--preserveSymlinks", "index.ts"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm: make extras installs it")
def test_typescript(tmp_path: Path) -> None:
    """The programs of the page compile, and one with a wrong input does not."""
    done = type_check(tmp_path, FILES["index.ts"])
    assert done.returncode == 0, done.stdout + done.stderr

    alone = type_check(tmp_path, FILES["alone.ts"])
    assert alone.returncode == 0, alone.stdout + alone.stderr

    wrong = type_check(tmp_path, FILES["index.ts"].replace('"localhost"', "8080"))
    assert "Type 'number' is not assignable to type 'Input<string | undefined>'" in wrong.stdout


def test_go(tmp_path: Path) -> None:
    """The programs of the page compile, and one with a wrong input does not."""
    for name in ("go.mod", "go.sum"):
        shutil.copy(HERE / "go_program" / name, tmp_path)
    write_sdk("go", tmp_path / "sdk" / "go")
    (tmp_path / "main.go").write_text(FILES["main.go"])
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "main.go").write_text(FILES["alone.go"])
    done = go(tmp_path, "vet", "./...")
    assert done.returncode == 0, done.stdout + done.stderr

    (tmp_path / "main.go").write_text(FILES["main.go"].replace('pulumi.String("localhost")', "8080"))
    wrong = go(tmp_path, "vet", ".")
    assert "main.go" in wrong.stderr
    assert "cannot use 8080" in wrong.stderr
