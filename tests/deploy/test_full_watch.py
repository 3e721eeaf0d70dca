"""`platform watch` in a real cluster: a save is in the containers, and builds, restarts and commands follow."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import queue
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from composeplat.compose.watch_model import WatchAction, WatchRule
from composeplat.dev.container_sync import Container
from composeplat.dev.folder_watch import FolderChange
from composeplat.dev.watch_copy import Copy, WatchedContainers
from composeplat.dev.watch_rules import WatchedFolder
from composeplat.dev.watch_state import Changes, WatchState
from composeplat.engine.target import find_target
from composeplat.local.cluster import LocalCluster
from tests.deploy.conftest import SLEEP, Environment, an_environment, until
from tests.schemas import checked_event

WITHIN = 60
TEXT = f"""\
x-platform: {{full: true}}
services:
  web:
    build: ./web
    stop_grace_period: 0
    scale: 2
    command: "{SLEEP}"
    develop:
      watch:
        - {{path: ./web/src, action: sync, target: /app/src, ignore: ['*.tmp']}}
        - {{path: ./web/image.txt, action: rebuild}}
  api:
    image: 'busybox:1.37'
    stop_grace_period: 0
    command: sh -c 'cat /etc/api.conf >/started; trap true TERM; sleep 1000000 & wait; true'
    develop:
      watch:
        - {{path: ./api.conf, action: sync+restart, target: /etc/api.conf}}
        - {{path: ./again, action: restart}}
        - path: ./api
          action: sync+exec
          target: /api
          initial_sync: true
          include: '*.txt'
          exec: {{command: 'sh -c "cat /api/*.txt >>log"', working_dir: /etc}}
  own:
    build: ./own
    stop_grace_period: 0
    command: "{SLEEP}"
    develop:
      watch:
        - {{path: ./own/src, action: sync, target: /app/src}}
        - {{path: ./own/image.txt, action: rebuild}}
"""
OWN_DOCKERFILE = "FROM busybox:1.37\nCOPY --chown=1000 . /app/\nUSER 1000\n"
DOCKERFILE = "FROM busybox:1.37\nWORKDIR /app\nCOPY . .\n"


class Watch:
    """A run of `platform watch`, and its events."""

    def __init__(self, environment: Environment, *args: str) -> None:
        self.environment = environment
        self.process = environment.start(*args, "--progress", "json", "--json-diagnostics", "--domain", "localhost")
        self.seen: list[dict[str, Any]] = []
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stderr or ():
            self._lines.put(line)
            if not line.startswith("{"):
                return

    def until(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Wait for an event of a kind with these fields, and forget it; the others can be waited for later."""
        for event in self._events():
            if event.get("event") == kind and all(event.get(name) == value for name, value in fields.items()):
                self.seen.remove(event)
                return event
        pytest.fail("\n".join(map(str, self.seen)))

    def _events(self) -> Iterator[dict[str, Any]]:
        yield from list(self.seen)
        with contextlib.suppress(queue.Empty):
            while line := self._lines.get(timeout=WITHIN):
                assert line.startswith("{"), line + (self.process.stderr or io.StringIO()).read()
                self.seen.append(checked_event(line))
                yield self.seen[-1]

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=20)


@pytest.fixture(scope="module")
def shop(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    with an_environment(cluster, tmp_path_factory.mktemp("shop"), tmp_path_factory.mktemp("private")) as made:
        made.write(DOCKERFILE, "web/Dockerfile")
        made.write(OWN_DOCKERFILE, "own/Dockerfile")
        for name in (
            "own/src/closed/a.py",
            "own/src/z.py",
            "own/image.txt",
            "web/src/a.py",
            "web/src/b.py",
            "web/image.txt",
            "api.conf",
            "api/one.txt",
            "api/other",
            "again",
        ):
            made.write("1\n", name)
        made.deploy(TEXT, "--domain", "localhost").expect()
        yield made


@pytest.fixture
def start(shop: Environment) -> Iterator[Callable[..., Watch]]:
    begun: list[Watch] = []

    def begin(service: str) -> Watch:
        watch = Watch(shop, "watch", service)
        begun.append(watch)
        watch.until("watching", service=service)
        watch.until("watching", service=service)
        return watch

    yield begin
    for watch in begun:
        assert watch.process.poll() is not None or watch.end() == 130


def in_all(environment: Environment, service: str, *args: str) -> set[str]:
    """The output of a command in each pod of a service."""
    found: set[str] = set()
    for pod in environment.pods(service):
        try:
            found.add(environment.exec(pod["metadata"]["name"], *args))
        except subprocess.CalledProcessError as error:
            found.add(f"status {error.returncode}")
    return found


def test_a_saved_file_is_in_every_pod(shop: Environment, start: Callable[..., Watch]) -> None:
    """A saved file is copied, an ignored one is not, a deleted one is deleted; a new pod gets what changed."""
    watch = start("web")
    shop.write("ignored\n", "web/src/a.tmp")
    shop.write("2\n", "web/src/sub/a.py")

    copied = watch.until("copied", files=1)
    assert (len(copied["pods"]), copied["new_pods"]) == (2, False)
    assert in_all(shop, "web", "cat", "/app/src/sub/a.py") == {"2\n"}
    assert in_all(shop, "web", "ls", "/app/src") == {"a.py\nb.py\nsub\n"}

    (shop.folder / "web/src/b.py").unlink()
    watch.until("copied", deleted=1)
    assert in_all(shop, "web", "ls", "/app/src") == {"a.py\nsub\n"}

    with shop.api() as api:
        gone = shop.pods("web")[0]["metadata"]["name"]
        api.delete(f"/api/v1/namespaces/{shop.namespace}/pods/{gone}")
    watch.until("copied", new_pods=True)
    assert in_all(shop, "web", "ls", "/app/src") == {"a.py\nsub\n"}

    shop.write("2\n", "web/image.txt")
    watch.until("replaced-pods", action="rebuild", done=True)
    until(lambda: in_all(shop, "web", "cat", "/app/image.txt") == {"2\n"})
    assert in_all(shop, "web", "ls", "/app/src") == {"a.py\na.tmp\nsub\n"}
    assert watch.end() == 130


def test_watching_continues_after_a_failed_build(shop: Environment, start: Callable[..., Watch]) -> None:
    """Watching continues after a build that failed, and the next change tries again."""
    watch = start("web")
    shop.write("FROM busybox:1.37\nRUN exit 7\n", "web/Dockerfile")
    shop.write("3\n", "web/image.txt")
    watch.until("replaced-pods", action="rebuild", done=False)
    shop.write("3\n", "web/src/a.py")
    watch.until("copied", files=1)

    shop.write(DOCKERFILE, "web/Dockerfile")
    shop.write("4\n", "web/image.txt")
    watch.until("replaced-pods", action="rebuild", done=True)

    until(lambda: in_all(shop, "web", "cat", "/app/image.txt", "/app/src/a.py") == {"4\n3\n"})


@pytest.mark.endurance
def test_a_restarted_program_reads_what_was_synced(shop: Environment, start: Callable[..., Watch]) -> None:
    """sync+restart gives a new pod the file before its program starts; sync+exec runs a command after the copy."""
    watch = start("api")
    watch.until("executed", status=0)
    assert in_all(shop, "api", "cat", "/etc/log") == {"1\n"}
    assert in_all(shop, "api", "ls", "/api") == {"one.txt\n"}
    shop.write("2\n", "api/two.txt")
    watch.until("executed", status=0)
    assert in_all(shop, "api", "cat", "/etc/log") == {"1\n1\n2\n"}

    shop.write("listen 81\n", "api.conf")
    watch.until("replaced-pods", action="sync+restart", done=True)
    until(lambda: in_all(shop, "api", "cat", "/started") == {"listen 81\n"})
    watch.until("executed", status=0)
    assert in_all(shop, "api", "cat", "/etc/log") == {"1\n2\n"}

    (before,) = shop.pods("api")
    shop.write("2\n", "again")
    watch.until("replaced-pods", action="restart", done=True)
    assert in_all(shop, "api", "cat", "/started") == {"listen 81\n"}
    assert [pod["metadata"]["uid"] for pod in shop.pods("api")] != [before["metadata"]["uid"]]


def test_files_that_a_container_can_not_write(shop: Environment, start: Callable[..., Watch]) -> None:
    """The others are written, and these once they can be, without another save: busybox stops at the first one.

    Its end is seen although there is more to read.
    """
    watch = start("own")
    large = os.urandom(8_000_000)
    (pod,) = (str(found["metadata"]["name"]) for found in shop.pods("own"))
    shop.exec(pod, "chmod", "555", "/app/src/closed")
    for path in ("closed/a.py", "closed/new/b c.py", "z.py"):
        shop.write("2\n", f"own/src/{path}")
    (shop.folder / "own/src/large").write_bytes(large)

    fix = "let the user of the container own the files: COPY --chown"
    reason = f"{pod}: can't write '/app/src/closed/a.py', '/app/src/closed/new/b c.py', and tries again later"
    watch.until("watch-problem", reason=f"{reason}: Permission denied; {fix}")
    digest = hashlib.sha256(large).hexdigest()
    until(lambda: shop.exec(pod, "sh", "-c", "sha256sum /app/src/large || true").startswith(digest))
    assert shop.exec(pod, "cat", "/app/src/z.py", "/app/src/closed/a.py") == "2\n1\n"

    shop.exec(pod, "chmod", "755", "/app/src/closed")
    names = "/app/src/closed/a.py '/app/src/closed/new/b c.py'"
    until(lambda: shop.exec(pod, "sh", "-c", f"cat {names} 2>&1 || true") == "2\n2\n")


def test_modes_of_folders(shop: Environment, start: Callable[..., Watch]) -> None:
    """New folders get the mode of the folder here, and others keep theirs: new ones got 0755, and empty ones this mode.

    A folder that was deleted and is here again is a new one.
    """
    (shop.folder / "own/src/there").mkdir()
    watch = start("own")
    (pod,) = (str(found["metadata"]["name"]) for found in shop.pods("own"))
    shop.exec(pod, "mkdir", "-m", "711", "/app/src/there", "/app/src/bare")
    for path, mode in (("there", 0o770), ("bare", 0o770), ("new", 0o775), ("new/inner", 0o710), ("empty", 0o700)):
        (shop.folder / "own/src" / path).mkdir(exist_ok=True)
        (shop.folder / "own/src" / path).chmod(mode)
    for path in ("there/a", "new/a", "new/inner/a"):
        shop.write("1\n", f"own/src/{path}")

    def modes() -> list[str]:
        names = ("there", "bare", "new", "new/inner", "empty")
        shown = shop.exec(pod, "sh", "-c", "cd /app/src && stat -c '%a %n' " + " ".join(names) + " || true")
        return shown.splitlines()

    until(lambda: modes() == ["711 there", "711 bare", "775 new", "710 new/inner", "700 empty"])

    shutil.rmtree(shop.folder / "own/src/new")
    until(lambda: "775 new" not in modes())
    (shop.folder / "own/src/new").mkdir(mode=0o700)
    shop.write("1\n", "own/src/new/a")
    until(lambda: "700 new" in modes())
    assert watch.end() == 130


def test_modes_of_a_file_system_without_permissions(shop: Environment) -> None:
    """Files keep the modes that they have in the container, where those of this machine say nothing; new ones run."""
    pod, *_ = shop.pods("web")
    name = str(pod["metadata"]["name"])
    shop.exec(name, "sh", "-c", "echo old > /app/src/secret; chmod 600 /app/src/secret")
    for path in ("secret", "new", "link"):
        (shop.folder / "web" / "src" / path).unlink(missing_ok=True)
    (shop.folder / "web" / "src" / "secret").write_text("new")
    (shop.folder / "web" / "src" / "new").write_text("#!/bin/sh")
    folder = WatchedFolder(
        service="web", rule=WatchRule(action=WatchAction.SYNC, path="", target="/app/src"),
        local=str(shop.folder / "web" / "src"), within=str(shop.folder),
    )  # fmt: skip
    reach = WatchedContainers(
        cluster_names={"web": "web"}, namespace=shop.namespace, target=find_target(shop.variables),
        environment=shop.variables, state=WatchState([folder]), on_event=lambda _: None,
    )  # fmt: skip
    reach.state.note(FolderChange(0, is_first=True, keeps_modes=False))
    changes = Changes({(0, "secret"): True, (0, "new"): True})

    Copy(reach, "web", changes, is_new=False).into([Container(name, "")])
    shown = shop.exec(name, "stat", "-c", "%a %n", "/app/src/secret", "/app/src/new")
    assert shown.splitlines() == ["600 /app/src/secret", "755 /app/src/new"]
    assert shop.exec(name, "cat", "/app/src/secret") == "new"
