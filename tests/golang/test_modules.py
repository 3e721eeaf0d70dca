"""The Go modules of our own pass their own tests; the licenses of what is in the agent are kept."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from composeplat.dev.helper import NOTICES
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import AGENT, FRONTDOOR, LINK, MIRROR
from tests.conftest import for_endurance
from tests.golang.lint import OTHER_SYSTEMS
from tests.golang.modules import go
from tests.golang.notices import make_notices

#: Most tests wait for the end of a silence, and not for a processor, by whose number Go runs them side by side.
_WAITING = ("-parallel", "12")


@pytest.mark.timeout(900)
def test_the_link() -> None:
    """Syncing, sessions, forwards and the lies of a container: the module's own tests pass."""
    done = go(LINK.module, "test", *_WAITING, "./...")
    assert done.returncode == 0, done.stdout + done.stderr


# The agent runs on nodes with either processor, platform-link on all of these machines.
_NODES = (("linux", "amd64"), ("linux", "arm64"))
_SAME_CODE = (("darwin", "amd64"), ("windows", "arm64"))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("machine", [*_NODES, *OTHER_SYSTEMS, *for_endurance(*_SAME_CODE)], ids="-".join)
def test_the_link_is_built_for_other_machines(tmp_path: Path, machine: tuple[str, str]) -> None:
    """The program of a person's machine is built for macOS and Windows, the agent for both processors of nodes.

    Each compiles Go's library for its machine: those that take the same files are built in `make endurance`.
    """
    system, processor = machine
    for package in ("platform-link", "agent") if system == "linux" else ("platform-link",):
        output = str(tmp_path / package)
        done = go(LINK.module, "build", "-o", output, f"./{package}", GOOS=system, GOARCH=processor)
        assert done.returncode == 0, done.stdout + done.stderr
        assert Path(output).stat().st_size > 1_000_000


@pytest.mark.timeout(900)
def test_the_link_without_what_only_linux_has() -> None:
    """Folders, links in them and their watching by what macOS and Windows have: Go's roots, and events as kqueue's."""
    safety = "Agent|Link|Outside|Ignored|LostRoot"
    packages = [f"./internal/{name}" for name in ("beneath", "single", "tree")]
    done = go(LINK.module, "test", *_WAITING, "-tags", "portable", *packages)
    assert done.returncode == 0, done.stdout + done.stderr
    done = go(LINK.module, "test", *_WAITING, "-tags", "portable", "-run", safety, "./internal/machine")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(900)
def test_the_frontdoor_module() -> None:
    """Routes, certificates, pipes and whom the local cluster's entry point lets in: the module's own tests pass."""
    done = go(FRONTDOOR.module, "test", "./...")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(900)
def test_the_mirror_module() -> None:
    """Authorities, logins, tokens, redirects, broken transfers, rate limits, proxies: the module's own tests pass."""
    done = go(MIRROR.module, "test", "./...")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "package",
    [LINK.module / "internal" / "wire", LINK.module / "internal" / "tree", FRONTDOOR.module],
    ids=lambda path: path.name,
)
def test_a_line_of_test_for_a_line_of_code(package: Path) -> None:
    """Where other machines and users are not trusted, there is at least as much test as there is code."""
    lines = {path.name: len(path.read_text().splitlines()) for path in package.glob("*.go")}
    tested = sum(count for name, count in lines.items() if name.endswith("_test.go"))

    assert tested >= sum(lines.values()) - tested


@pytest.mark.endurance
@pytest.mark.timeout(900)
def test_hostile_agents_for_long() -> None:
    """Whatever an agent says, any tree, any path, any message: nothing outside the synced folder is opened."""
    done = go(
        LINK.module, "test", "-run", "^$", "-fuzz", "FuzzAHostileAgent", "-fuzztime", "180s", "./internal/machine"
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(900)
def test_the_notices_of_the_agent() -> None:
    """The helper image had libraries in it without their licenses; it has those of what is really in the agent."""
    notices = NOTICES.read_text(encoding="utf-8")
    assert notices == make_notices(), "run: python -m tests.golang.notices"
    assert all(name in notices for name in ("mutagen-io/mutagen", "golang.org/x/sys", "creack/pty", "protobuf", "MIT"))


def test_more_folders_than_can_be_watched(tmp_path: Path) -> None:
    """If the kernel has no more watches, that is reported with the setting to raise; changes are still synced."""
    toolchain = Toolchain(os.environ)
    link, agent = toolchain.need(LINK).path, toolchain.need(AGENT).path
    here, there, socket, event_log = (tmp_path / name for name in ("here", "there", "run/socket", "events"))
    for number in range(300):
        (here / f"d{number}").mkdir(parents=True)
    (tmp_path / "state").mkdir()
    config = tmp_path / "config.json"
    config.write_text(json.dumps({
        "agent_command": [str(agent), "connect", "--socket", str(socket)], "state": str(tmp_path / "state"),
        "folders": [{"local": str(here), "remote": str(there)}], "command": ["sleep", "100"],
    }))  # fmt: skip
    few = 'echo 50 > /proc/sys/user/max_inotify_watches && exec "$@"'
    with event_log.open("wb") as stream:
        number = stream.fileno()
        container = subprocess.Popen([agent, "hold", "--socket", str(socket)])
        machine = subprocess.Popen(
            [str(shutil.which("unshare")), "--user", "--map-root-user", "sh", "-c", few, "sh", str(link), "up",
             "--config", str(config), "--events", str(number)],
            pass_fds=(number,), stdin=subprocess.DEVNULL,
        )  # fmt: skip
    try:
        assert until(lambda: "raise fs.inotify.max_user_watches" in event_log.read_text())
        (here / "d299" / "saved").write_text("x")
        assert until((there / "d299" / "saved").exists)
    finally:
        for process in (machine, container):
            process.terminate()
            process.wait(20)


def until(done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not done():
        time.sleep(0.05)
    return done()
