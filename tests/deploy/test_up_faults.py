"""`platform up` continues through trouble: each part is killed again and again during a stream of edits on both sides.

At the end both trees are the same by hash, and hold what each side wrote last.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from composeplat.cluster.api import ApiError
from composeplat.cluster.kinds import kind_path
from tests.conftest import ENDURANCE, has_long_round
from tests.deploy.conftest import SLEEP, Environment, until
from tests.deploy.test_trouble import ApiServer
from tests.deploy.test_up import up_args

ROUNDS = 10 if ENDURANCE else 1
BETWEEN = 3.0
STABLE_WITHIN_S = 120
FILE = f"""\
services:
  web:
    image: 'busybox:1.37'
    command: "{SLEEP}"
    stop_grace_period: 0
    volumes: ['./src:/app']
"""
#: Writes files of its own in the container, and remembers in one of them how far it came. It always writes once: the
#: writer before may have been killed after it had emptied a file.
WRITER = """
mkdir -p /app/there; n=$(cat /app/there/count 2>/dev/null || echo 0)
while
  n=$((n+1)); echo "there $n" > /app/there/f$((n % 40)); echo $n > /app/there/count
  [ $((n % 7)) = 0 ] && rm -f /app/there/f$(((n + 20) % 40))
  [ ! -e /tmp/over ]
do usleep 50000; done
touch /tmp/ended
"""
#: Killed, it may have emptied a file that it was about to write.
END_OF_WRITER = "touch /tmp/over; for i in $(seq 300); do [ -e /tmp/ended ] && exit; usleep 100000; done; exit 1"


@dataclass
class Session:
    """A `platform up` that is started again where it has ended."""

    environment: Environment
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        log = (self.environment.folder / "up.log").open("ab")
        with log:
            self.process = subprocess.Popen(
                up_args(self.environment, "--take-over", "web", "--", "sh", "-c", WRITER), cwd=self.environment.folder,
                env=self.environment.variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        # Its end is seen to by the environment, whatever happens to the test.
        self.environment.started.append(self.process)  # type: ignore[arg-type]

    def see_to_it(self) -> None:
        if self.process.poll() is not None:
            self.start()

    @property
    def output(self) -> str:
        return (self.environment.folder / "up.log").read_text(errors="replace")


class Editor(threading.Thread):
    """Writes, renames and deletes files here, and knows what there must be in the end."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder = folder
        self.over = threading.Event()
        self.wanted: dict[str, str] = {}
        self.random = random.Random(1)  # noqa: S311 -- the same edits in each run

    def run(self) -> None:
        number = 0
        self.folder.mkdir(parents=True)
        while not self.over.wait(0.04):
            number += 1
            name, text = f"f{number % 60}", f"here {number}\n" * self.random.choice((1, 1, 1, 2000))
            path = self.folder / name
            match self.random.random():
                case chance if chance < 0.5:
                    path.write_text(text)
                    self.wanted[name] = text
                case chance if chance < 0.85:
                    aside = self.folder / f".{name}.swp"
                    aside.write_text(text)
                    aside.replace(path)
                    self.wanted[name] = text
                case _ if name in self.wanted:
                    path.unlink()
                    del self.wanted[name]
                case _:
                    pass

    def stop(self) -> None:
        self.over.set()
        self.join()


def here(environment: Environment) -> dict[str, str]:
    root = environment.folder / "src"
    return {
        str(path.relative_to(root)): hashlib.md5(path.read_bytes()).hexdigest()  # noqa: S324 -- no secret
        for path in sorted(root.rglob("*"))
        if path.is_file() and "platform" not in path.name
    }


def there(environment: Environment) -> dict[str, str]:
    (pod,) = environment.pods("web")
    listed = environment.exec(
        pod["metadata"]["name"], "sh", "-c", "cd /app && find . -type f | xargs -r md5sum 2>/dev/null; true"
    )
    lines = (line.split(maxsplit=1) for line in listed.splitlines())
    return {name.removeprefix("./"): digest for digest, name in lines}


def processes(*args: bytes) -> list[int]:
    """The processes whose command line has all these words."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if all(word in (entry / "cmdline").read_bytes() for word in args):
                found.append(int(entry.name))
    return found


def kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(part) for part in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def kill_up(session: Session) -> None:
    kill([session.process.pid])
    session.process.wait()


def kill_link(session: Session) -> None:
    """Also where this machine is so busy that the session has only begun: a build is its child before its link is."""
    kill(until(lambda: links_of(session)))
    session.process.wait(30)


def links_of(session: Session) -> list[int]:
    session.see_to_it()
    return [pid for pid in children(session.process.pid) if b"platform-link" in command(pid)]


def sleep_link(session: Session) -> None:
    """As a machine that is put to sleep: longer than a silence is borne."""
    for pid in children(session.process.pid):
        os.kill(pid, signal.SIGSTOP)
    time.sleep(9)
    for pid in children(session.process.pid):
        os.kill(pid, signal.SIGCONT)


def kill_connection(session: Session) -> None:
    """The agent's end of the stream, in the container."""
    root = str(session.environment.cluster.layout.folder).encode()
    kill([pid for pid in processes(b"platform-agent", b"\0connect\0") if is_below(pid, root)])


def kill_agent(session: Session) -> None:
    """What holds the container: the container is started again."""
    root = str(session.environment.cluster.layout.folder).encode()
    kill([pid for pid in processes(b"platform-agent", b"\0hold\0") if is_below(pid, root)])


def is_below(pid: int, root: bytes) -> bool:
    """Return whether a process runs in this test's own cluster: its mounts lie in the cluster's folder."""
    with contextlib.suppress(OSError):
        return root in Path(f"/proc/{pid}/mountinfo").read_bytes()
    return False


def kill_pod(session: Session) -> None:
    environment = session.environment
    with environment.api() as api, contextlib.suppress(ApiError):
        for pod in environment.pods("web"):
            api.delete(f"{kind_path('v1', 'Pod', environment.namespace)}/{pod['metadata']['name']}")


def kill_server(session: Session) -> None:
    server = ApiServer(session.environment.cluster)
    server.send(signal.SIGKILL)
    until(server.answers)


def silence_server(session: Session) -> None:
    """As a network that is cut: nothing comes and nothing is refused."""
    server = ApiServer(session.environment.cluster)
    with server.silent():
        time.sleep(9)
    until(server.answers)


def kill_node(session: Session) -> None:
    """The kubelet and what runs containers, as when a node's services are restarted."""
    supervisor = session.environment.cluster.status().pid
    kill([pid for pid in children(supervisor or 0) if is_of_node(command(pid).split(b"\0"))])


def is_of_node(args: list[bytes]) -> bool:
    """Return whether a command line is that of a part of the node: other parts have paths and options of such names."""
    return b"kubelet" in args or b"containerd" in args[0].rpartition(b"/")[2]


def command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


PARTS: dict[str, Callable[[Session], None]] = {
    "up": kill_up,
    "link": kill_link,
    "sleep": sleep_link,
    "connection": kill_connection,
    "agent": kill_agent,
    "pod": kill_pod,
    "server": kill_server,
    "network": silence_server,
    "node": kill_node,
}
SHORT = ("up", "connection", "pod")


@pytest.fixture
def session(environment: Environment) -> Iterator[Session]:
    environment.write("begin\n", "src/begin")
    environment.deploy(FILE).expect()
    session = Session(environment)
    until(lambda: "synced" in session.output)
    yield session
    session.process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        session.process.wait(20)
    environment.platform("down", "web", "--volumes")


@has_long_round
@pytest.mark.parametrize("part", PARTS if ENDURANCE else SHORT)
def test_nothing_is_lost(session: Session, part: str) -> None:
    """Whatever is killed while both sides are edited, in the end they are the same, and nothing written is missing."""
    environment = session.environment
    editor = Editor(environment.folder / "src" / "here")
    editor.start()
    for _ in range(ROUNDS):
        time.sleep(BETWEEN)
        PARTS[part](session)
        time.sleep(BETWEEN)
        session.see_to_it()
    editor.stop()
    until(lambda: is_connected(session), seconds=STABLE_WITHIN_S)
    # The program in the container stops writing, so that there is an end that both sides can have.
    (pod,) = until(lambda: environment.pods("web"))
    environment.exec(pod["metadata"]["name"], "sh", "-c", END_OF_WRITER)
    until(lambda: there(environment) == here(environment), seconds=STABLE_WITHIN_S)
    mine = {name: (editor.folder / name).read_text() for name in editor.wanted if (editor.folder / name).exists()}
    assert editor.wanted == mine
    assert not [name for name in here(environment) if ".conflict-" in name]
    count = int((environment.folder / "src" / "there" / "count").read_text())
    last = (environment.folder / "src" / "there" / f"f{count % 40}").read_text()
    assert last in (f"there {count}\n", f"there {count - 40}\n")


def is_connected(session: Session) -> bool:
    """Return whether the trees can be compared: a pod is there, and the last message was not of a loss."""
    session.see_to_it()
    with contextlib.suppress(subprocess.CalledProcessError, ValueError):
        return bool(there(session.environment))
    return False
