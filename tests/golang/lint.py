"""Lint of the Go modules of our own: ``python -m tests.golang.lint``, a step of ``make check``.

Owns which linters run, and remembers in the cache which modules passed: a hash of all that decides the verdict names
them, so that a module that has not changed costs no start of Go.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from composeplat.system.folders import cache_folder
from composeplat.toolchain.cache import Cache
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import KUBE, KUBERNETES_PROVIDER, LINK, Tool
from tests.conftest import ROOT
from tests.golang.modules import MODULES, go, run_with_go

STATICCHECK = Tool(
    name="staticcheck",
    version="0.8.2",
    module=ROOT / "tests" / "golang" / "staticcheck",
    package="honnef.co/go/tools/cmd/staticcheck",
)
#: Systems and processors of other machines. No file is for one processor alone, so each other system is vetted once.
OTHER_SYSTEMS = (("darwin", "arm64"), ("windows", "amd64"))
_FORMATTED = (*MODULES, KUBE.module, KUBERNETES_PROVIDER.module, ROOT / "tests" / "languages" / "generator")
_SOURCES = {".go", ".mod", ".sum"}


def lint(module: Path, cache: Cache) -> list[str]:
    """The findings in a module; a module without any is remembered."""
    passed = cache.folder / "lint" / _fingerprint(module)
    if passed.exists():
        return []
    findings = list(_findings(module))
    if not findings:
        passed.parent.mkdir(parents=True, exist_ok=True)
        passed.touch()
    return findings


def _fingerprint(module: Path) -> str:
    """A hash of the module's sources, the linters and how they are started."""
    digest = hashlib.sha256(Path(__file__).read_bytes() + STATICCHECK.fingerprint.encode())
    for path in sorted(path for path in module.rglob("*") if path.suffix in _SOURCES):
        digest.update(f"{path.relative_to(module)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:24]


def _findings(module: Path) -> Iterator[str]:
    unformatted = go(module, "run", "cmd/gofmt", "-l", ".")
    yield from (f"{name}: not formatted: run gofmt -w" for name in unformatted.stdout.split())
    yield from _failures(unformatted)
    if module in MODULES:
        # The others would need all of Kubernetes to be built.
        yield from _failures(go(module, "vet", "./..."))
        yield from _failures(run_with_go(module, str(_staticcheck()), "-checks", "all", "./..."))
    if module == LINK.module:
        yield from _failures(go(module, "vet", "-tags", "portable", "./..."))
        for system, processor in OTHER_SYSTEMS:
            yield from _failures(go(module, "vet", "./...", GOOS=system, GOARCH=processor))


def _staticcheck() -> Path:
    return Toolchain(os.environ).need(STATICCHECK).path


def _failures(done: subprocess.CompletedProcess[str]) -> list[str]:
    return (done.stdout + done.stderr).splitlines() if done.returncode else []


def main() -> None:
    cache = Cache(cache_folder(os.environ))
    findings = [f"{module.relative_to(ROOT)}: {text}" for module in _FORMATTED for text in lint(module, cache)]
    print(*findings, sep="\n", end="\n" if findings else "")
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
