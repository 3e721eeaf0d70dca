"""The lint of Go finds what is wrong, remembers what is right, and looks again when a source changes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from composeplat.toolchain.cache import Cache
from composeplat.toolchain.tools import FRONTDOOR
from tests.golang import lint as linting
from tests.golang.lint import OTHER_SYSTEMS, lint
from tests.golang.modules import MODULES, go

_UNUSED = "\nfunc unused() {}\n"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a module, which is linted as the module is."""
    copy = tmp_path / "module"
    shutil.copytree(FRONTDOOR.module, copy)
    monkeypatch.setattr(linting, "MODULES", (copy,))
    return copy


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


@pytest.mark.timeout(300)
def test_findings_of_each_linter(tmp_path: Path, module: Path) -> None:
    """gofmt, go vet and staticcheck each say what they find, again in each run."""
    append(module / "main.go", '\nfunc  vetted() { fmt.Printf("%d", "text") }\n')
    cache = Cache(tmp_path / "cache")
    first = lint(module, cache)

    assert "main.go: not formatted: run gofmt -w" in first
    assert any("fmt.Printf format %d has arg" in finding for finding in first)
    assert any("func vetted is unused (U1000)" in finding for finding in first)
    assert lint(module, cache) == first


@pytest.mark.timeout(300)
def test_a_module_that_passed_is_not_linted_again(
    tmp_path: Path, module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Go isn't started for sources that passed; a source that changed is linted."""
    cache = Cache(tmp_path / "cache")
    assert lint(module, cache) == []
    with monkeypatch.context() as without_go:
        without_go.setattr(linting, "_findings", lambda module: pytest.fail(f"{module} is linted again"))
        assert lint(module, cache) == []

    append(module / "main.go", _UNUSED)
    assert [finding.partition(": ")[2] for finding in lint(module, cache)] == ["func unused is unused (U1000)"]


@pytest.mark.parametrize("system", ["linux", *(system for system, _ in OTHER_SYSTEMS)])
def test_each_system_has_one_set_of_files(system: str) -> None:
    """No file is for one processor alone, so a system that is vetted for one is vetted for all."""
    form = "{{.ImportPath}} {{.GoFiles}} {{.TestGoFiles}} {{.XTestGoFiles}}"
    for module in MODULES:
        amd, arm = (go(module, "list", "-f", form, "./...", GOOS=system, GOARCH=name) for name in ("amd64", "arm64"))
        assert (amd.returncode, amd.stdout) == (0, arm.stdout)
