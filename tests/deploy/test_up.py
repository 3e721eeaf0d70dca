"""`platform up`: a service as a development container, in a real terminal, and given back as it was."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from composeplat.cluster.kinds import kind_path
from composeplat.dev.lease import LEASE_ANNOTATION
from composeplat.local.cluster import LocalCluster
from composeplat.local.images import File, Image, push
from tests.conftest import ENDURANCE, has_long_round
from tests.deploy.conftest import PLATFORM, PORTS, SLEEP, Environment, Ran, an_environment, until
from tests.schemas import checked_event
from tests.terminal import Terminal

IMAGE = "image: 'busybox:1.37'"
SHOP = f"""\
services:
  web:
    {IMAGE}
    command: httpd -f -p 80 -h /app
    stop_grace_period: 0
    environment: {{COLOR: blue}}
    ports: ['18080:80']
    volumes: ['./src:/app', './web.conf:/etc/web.conf', 'cache:/app/cache']
  api:
    {IMAGE}
    command: "{SLEEP}"
    stop_grace_period: 0
volumes: {{cache: {{}}}}
"""
PROMPT = "PROMPT> "
SH = ("--", "env", f"PS1={PROMPT}", "sh")
WITHIN = 90
END = "echo END$((1+1))"
LARGE_BYTES = 500_000_000 if ENDURANCE else 200_000_000


def up_args(environment: Environment, *args: str) -> list[str]:
    """The options are in front: behind ``--`` all is the program's."""
    options = ("--name", environment.name, "--namespace", environment.namespace, "--domain", "localhost")
    return [str(PLATFORM), "up", *options, *args]


def plainly(environment: Environment, *args: str) -> Ran:
    """Run it without a terminal."""
    began = time.monotonic()
    done = subprocess.run(
        up_args(environment, *args), cwd=environment.folder, env=environment.variables, capture_output=True,
        text=True, check=False, timeout=WITHIN, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr, time.monotonic() - began)


class Up(Terminal):
    """A real terminal in which `platform up` runs a shell."""

    def __init__(self, environment: Environment, *args: str) -> None:
        super().__init__(
            up_args(environment, *args), folder=environment.folder, env=environment.variables,
            columns=100, rows=30, within=WITHIN,
        )  # fmt: skip

    def prompt(self) -> str:
        return self.until(PROMPT)

    def run(self, line: str) -> str:
        """The output of a line, typed at the prompt: a shell shows both once more after a lost connection."""
        self.type(f"{line}; {END}")
        shown = self.until("END2\r\n").replace("\r\n", "\n")
        self.prompt()
        return shown.rpartition(f"{END}\n")[2]

    def leave(self, status: int = 0) -> int:
        self.type(f"exit {status}")
        return self.status()


def write_sources(environment: Environment) -> None:
    shutil.rmtree(environment.folder / "src", ignore_errors=True)
    environment.write("print('one')\n", "src/app.py")
    environment.write("listen 80\n", "web.conf")


@pytest.fixture(scope="module")
def deployed(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """One environment for all tests here: what is under development stays so from one to the next, as it may."""
    folder = tmp_path_factory.mktemp("shop")
    with an_environment(cluster, folder, tmp_path_factory.mktemp("private")) as made:
        write_sources(made)
        made.deploy(SHOP, "--domain", "localhost").expect()
        yield made


@pytest.fixture
def shop(deployed: Environment) -> Iterator[Environment]:
    yield deployed
    if (deployed.folder / "compose.yaml").read_text() != SHOP:
        deployed.platform("down", "web")
        write_sources(deployed)
        deployed.deploy(SHOP, "--domain", "localhost").expect()
    write_sources(deployed)


def spec(environment: Environment, kind: str = "StatefulSet", name: str = "web") -> Any:
    found = environment.get("apps/v1", kind, name)
    assert found is not None
    return found["spec"]


def on_disk(environment: Environment, name: str) -> str | None:
    path = environment.folder / name
    return path.read_text() if path.exists() else None


def test_a_session_and_back(shop: Environment) -> None:
    """Files are synced both ways, the terminal is real, the status is passed on, and down gives back the same spec."""
    shop.platform("down", "web").expect()
    before = spec(shop)
    up = Up(shop, "web", *SH)
    up.prompt()
    assert spec(shop)["replicas"] == 0
    assert up.run("cat /app/app.py") == "print('one')\n"
    assert up.run("cat /etc/web.conf") == "listen 80\n"
    assert up.run("echo $COLOR; test -t 0 && echo terminal; stty size") == "blue\nterminal\n30 100\n"

    shop.write("print('two')\n", "src/app.py")
    until(lambda: up.run("cat /app/app.py") == "print('two')\n", seconds=10)
    shop.write("listen 81\n", "web.conf")
    until(lambda: up.run("cat /etc/web.conf") == "listen 81\n", seconds=10)
    up.run("mkdir -p /app/sub; echo made > /app/sub/made; echo kept > /app/cache/kept")
    until(lambda: on_disk(shop, "src/sub/made") == "made\n", seconds=10)
    (shop.folder / "src" / "app.py").unlink()
    until(lambda: up.run("ls /app/app.py 2>/dev/null; true") == "", seconds=10)
    assert on_disk(shop, "src/cache/kept") is None

    up.resize(columns=120, rows=40)
    until(lambda: up.run("stty size") == "40 120\n", seconds=10)
    up.type("echo began; sleep 600")
    up.until("\nbegan")
    # A shell reads a Ctrl-C that comes while it starts a program as a part of the next line.
    time.sleep(0.5)
    up.interrupt()
    up.prompt()
    assert up.run("echo still here") == "still here\n"
    assert up.leave(7) == 7

    shop.platform("down", "web").expect()
    assert before == spec(shop)
    write_sources(shop)
    shop.platform("preview", "--domain", "localhost", "--expect-no-changes").expect()


def test_a_second_session_finds_the_kept_files(shop: Environment) -> None:
    """What lies on the volume of development stays from one time to the next, and goes with ``--volumes``."""
    first = Up(shop, "web", *SH)
    first.prompt()
    first.run("echo x > /app/made")
    assert first.leave() == 0
    shop.platform("down", "web").expect()
    assert "PersistentVolumeClaim/web-platform-files" in shop.names()

    second = Up(shop, "web", *SH)
    second.prompt()
    assert second.run("cat /app/made") == "x\n"
    assert second.leave() == 0
    shop.platform("down", "web", "--volumes").expect()
    until(lambda: "PersistentVolumeClaim/web-platform-files" not in shop.names())


def test_a_deploy_meanwhile(shop: Environment) -> None:
    """A deploy leaves the development container in its place and brings it up to date; no pod of the old comes up."""
    up = Up(shop, "web", *SH)
    up.prompt()
    shop.write(SHOP.replace("COLOR: blue", "COLOR: red"))
    ran = shop.platform("deploy", "--domain", "localhost").expect()
    assert "web is under development: its own pods come back with 'platform down web'" in ran.stderr
    assert spec(shop)["replicas"] == 0
    up.until("its development container follows")
    up.until("its program was restarted")
    up.prompt()
    assert up.run("echo $COLOR").endswith("red\n")
    assert up.leave() == 0

    shop.platform("down", "web").expect()
    assert spec(shop)["replicas"] == 1
    shop.platform("preview", "--domain", "localhost", "--expect-no-changes").expect()


@has_long_round
def test_a_save_overtakes_a_large_file(shop: Environment) -> None:
    """In both directions; the large file arrives whole afterwards, and no other file is left of it."""
    up = Up(shop, "web", *SH)
    up.prompt()
    large = shop.folder / "src" / "large"
    content = os.urandom(LARGE_BYTES)
    large.write_bytes(content)
    time.sleep(0.3)
    shop.write("print('beside it')\n", "src/app.py")
    until(lambda: up.run("cat /app/app.py") == "print('beside it')\n", seconds=WITHIN)
    assert up.run("ls /app/large 2>/dev/null; true") == ""
    wanted = hashlib.sha256(content).hexdigest()
    until(lambda: up.run("sha256sum /app/large 2>/dev/null; true").split()[:1] == [wanted], seconds=WITHIN)

    up.run("cat /app/large /app/large > /app/twice; rm /app/large")
    up.run("echo made > /app/small")
    until(lambda: on_disk(shop, "src/small") == "made\n", seconds=WITHIN)
    until((shop.folder / "src" / "twice").exists, seconds=WITHIN)
    assert hashlib.sha256((shop.folder / "src" / "twice").read_bytes()).digest() == hashlib.sha256(content * 2).digest()
    assert not large.exists()
    up.run("rm /app/twice")
    until(lambda: not (shop.folder / "src" / "twice").exists(), seconds=WITHIN)
    assert up.run("ls /app/.mutagen* 2>/dev/null; true") == ""
    assert up.leave() == 0


def test_the_pod_is_killed(shop: Environment) -> None:
    """A pod that goes is followed by another, and what was written meanwhile gets there."""
    up = Up(shop, "web", *SH)
    up.prompt()
    (pod,) = shop.pods("web")
    with shop.api() as api:
        api.delete(f"{kind_path('v1', 'Pod', shop.namespace)}/{pod['metadata']['name']}")
    shop.write("meanwhile\n", "src/new")
    up.until("its program was restarted")
    up.prompt()
    until(lambda: up.run("cat /app/new") == "meanwhile\n", seconds=10)
    assert up.leave() == 0


def test_up_is_killed(shop: Environment) -> None:
    """After a kill -9 the service is given back all the same, byte for byte."""
    shop.platform("down", "web").expect()
    before = spec(shop)
    up = Up(shop, "web", *SH)
    up.prompt()
    up.kill()
    shop.platform("down", "web").expect()
    assert before == spec(shop)


def test_a_second_up_is_refused_or_takes_over(shop: Environment) -> None:
    """Two can't develop one service: the second is reported who is at it, and may end that one."""
    up = Up(shop, "web", *SH)
    up.prompt()
    refused = shop.platform("up", "web", "--domain", "localhost").expect(1)
    assert "service 'web' is being developed already, by " in refused.stderr
    assert "--take-over ends that session" in refused.stderr
    second = Up(shop, "web", "--take-over", *SH)
    second.prompt()
    assert up.status() != 0
    assert second.leave() == 0


def start_elsewhere(environment: Environment) -> subprocess.Popen[str]:
    """Start `up` as on another machine: its number means nothing outside its process namespace."""
    program = ("--", "sh", "-c", "echo ready; while :; do sleep 0.1; done")
    apart = ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", *up_args(environment, "web", *program)]
    process = subprocess.Popen(
        apart, cwd=environment.folder, env=environment.variables, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    environment.started.append(process)
    return process


@pytest.mark.parametrize("way", ["down", "take-over"])
def test_a_session_on_another_machine_ends(shop: Environment, way: str) -> None:
    """A session elsewhere, whose process can't be ended from here, ends by itself and brings nothing back."""
    other = start_elsewhere(shop)
    assert other.stdout is not None
    assert other.stdout.readline() == "ready\n"
    if way == "down":
        shop.platform("down", "web").expect()
    else:
        up = Up(shop, "web", "--take-over", *SH)
        up.prompt()
    _, output = other.communicate(timeout=WITHIN)

    assert other.returncode == 1, output
    if way == "down":
        until(lambda: shop.get("apps/v1", "Deployment", "web-platform-up") is None and shop.pods("web") != [])
        assert "web is not under development any more" in output
    else:
        assert "web was taken over by" in output
        assert up.leave() == 0


def test_sessions_of_three_machines_in_the_same_moment(shop: Environment) -> None:
    """One of them develops the service; the others are refused, or end when their lease is another's."""
    shop.platform("down", "web").expect()
    sessions = [start_elsewhere(shop) for _ in range(3)]
    until(lambda: sum(session.poll() is not None for session in sessions) == 2)
    (kept,) = [session for session in sessions if session.poll() is None]
    assert kept.stdout is not None
    assert kept.stdout.readline() == "ready\n"
    for other in sessions:
        if other is not kept:
            _, output = other.communicate(timeout=WITHIN)
            assert other.returncode == 1, output
            assert "is being developed already, by " in output or "was taken over by " in output
    shop.platform("down", "web").expect()
    kept.communicate(timeout=WITHIN)


def test_a_service_is_given_back_while_its_own_pods_end(environment: Environment) -> None:
    """The session elsewhere that waits for their end starts no container beside the ones that come back."""
    write_sources(environment)
    slow = SHOP.replace(
        "httpd -f -p 80 -h /app", """sh -c "trap '' TERM; httpd -p 80 -h /app; while :; do sleep 1; done" """
    )
    environment.deploy(slow.replace("stop_grace_period: 0", "stop_grace_period: 20s", 1)).expect()
    session = start_elsewhere(environment)

    def has_lease() -> bool:
        found = environment.get("apps/v1", "Deployment", "web-platform-up")
        return found is not None and LEASE_ANNOTATION in found["metadata"]["annotations"]

    until(has_lease)
    environment.platform("down", "web").expect()
    _, output = session.communicate(timeout=WITHIN)

    assert session.returncode == 1, output
    assert "web is not under development any more: it was restored or destroyed" in output
    assert environment.get("apps/v1", "Deployment", "web-platform-up") is None
    assert spec(environment)["replicas"] == 1


def test_destroy_while_developing(environment: Environment) -> None:
    """Destroy takes the development container too; what it kept stays, as volumes do."""
    shop = environment
    write_sources(shop)
    shop.deploy(SHOP, "--domain", "localhost").expect()
    up = Up(shop, "web", *SH)
    up.prompt()
    shop.platform("destroy").expect()
    assert shop.names() == {"PersistentVolumeClaim/cache", "PersistentVolumeClaim/web-platform-files"}
    assert up.status() != 0


def test_no_terminal(shop: Environment) -> None:
    """Without a terminal, streams are plain and apart, and the status is the program's."""
    ran = plainly(shop, "web", "--", "sh", "-c", "echo out; echo err >&2; test -t 0 || exit 5")
    assert (ran.status, ran.stdout) == (5, "out\n")
    assert "err" in ran.stderr.splitlines()
    # The volume below the folder is left alone, and that is no problem.
    assert "can't sync" not in ran.stderr


def test_interrupted_without_a_terminal(shop: Environment) -> None:
    """An interrupt of this process alone, as an editor sends it, is for the program; so is one of the whole group."""
    for send in (os.kill, os.killpg):
        running = subprocess.Popen(
            up_args(shop, "web", "--", "sh", "-c", "trap 'exit 5' INT; echo ready; while :; do sleep 0.1; done"),
            cwd=shop.folder, env=shop.variables, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        shop.started.append(running)
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        send(running.pid, signal.SIGINT)
        assert running.wait(WITHIN) == 5


def test_a_container_that_does_not_start(shop: Environment) -> None:
    """The deployed pods are gone by then: the output names the command that brings them back."""
    shop.platform("down", "web")
    ran = plainly(shop, "--timeout", "1", "--helper-image", "localhost:1/none:1", "web")
    assert ran.status == 1
    assert "web is still under development; 'platform down web' ends that\n" in ran.stderr
    shop.platform("down", "web").expect()


def get(port: int, path: str = "app.py") -> str:
    """What an HTTP server on this machine's loopback answers; nothing where none does."""
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=3) as answer:
        return str(answer.read().decode())
    return ""


def test_ports(shop: Environment) -> None:
    """Ports are forwarded in both directions, and the cluster service reaches the container."""
    with socket.create_server(("127.0.0.1", 0)) as mine:
        number = mine.getsockname()[1]
        up = Up(shop, "web", "--forward", "19229:9229", "--reverse", f"7000:{number}", *SH)
        up.until("127.0.0.1:19229 is forwarded to port 9229")
        up.prompt()
        up.run("httpd -p 80 -h /app; httpd -p 127.0.0.1:9229 -h /app")
        assert until(lambda: get(18080)) == "print('one')\n"
        assert get(19229) == "print('one')\n"
        (api,) = shop.pods("api")
        assert shop.exec(api["metadata"]["name"], "wget", "-qO-", "http://web:18080/app.py") == "print('one')\n"

        up.type("echo hello | nc 127.0.0.1 7000")
        mine.settimeout(20)
        caller, _ = mine.accept()
        with caller:
            assert caller.recv(100) == b"hello\n"
    up.prompt()
    assert up.leave() == 0


def test_a_taken_port(shop: Environment) -> None:
    """A port that something else has here is reported, and another one leads to the same."""
    with socket.create_server(("127.0.0.1", 18080)):
        up = Up(shop, "web", *SH)
        offered = int(up.find(r"127\.0\.0\.1:18080 is in use on this machine; 127\.0\.0\.1:(\d+) is used instead"))
        up.prompt()
        up.run("httpd -p 80 -h /app")
        assert until(lambda: get(offered)) == "print('one')\n"
        assert up.leave() == 0


@pytest.mark.endurance
def test_the_user_chooses_a_service(shop: Environment) -> None:
    """Where several services could be meant, a terminal is asked which."""
    shop.write(SHOP.replace("  api:\n", "  api:\n    volumes: ['./src:/src']\n"))
    up = Up(shop, "--deploy", *SH)
    up.until("1  web")
    up.until("2  api")
    up.until("Which one")
    up.type("2")
    up.prompt()
    assert up.run("cat /src/app.py") == "print('one')\n"
    assert up.leave() == 0
    shop.platform("down", "api").expect()


def test_it_is_deployed_first(environment: Environment) -> None:
    """Where the environment does not exist yet, it is deployed before; ``--down-on-exit`` gives the service back."""
    write_sources(environment)
    environment.write(SHOP)
    ran = plainly(environment, "--down-on-exit", "web", "--", "cat", "/app/app.py").expect()
    assert ran.stdout.endswith("print('one')\n")
    assert "web runs as it was deployed again" in ran.stderr
    assert spec(environment)["replicas"] == 1


def test_all_kinds_of_files(environment: Environment) -> None:
    """Permissions, links, empty folders, all scripts and cases, large files; a link that leads out is reported."""
    environment.write("FROM busybox:1.37\n", "image/Dockerfile")
    environment.write("print('one')\n", "src/app.py")
    environment.deploy(
        f'services:\n  web:\n    build: image\n    command: "{SLEEP}"\n    stop_grace_period: 0\n'
        "    volumes: ['./src:/app']\n"
    ).expect()
    source = environment.folder / "src"
    (source / "deep" / "empty").mkdir(parents=True)
    for name, mode in (("secret", 0o600), ("run", 0o750), ("Case", 0o644), ("case", 0o644), ("日本 é", 0o644)):
        (source / name).write_text(name)
        (source / name).chmod(mode)
    (source / "large").write_bytes(bytes(range(256)) * 80_000)
    (source / "link").symlink_to("deep")
    (source / "out").symlink_to("/etc/passwd")
    script = (
        "cd /app; stat -c '%a %n' secret run; cat Case case '日本 é'; echo; readlink link; test -e out || echo no out;"
        " test -d deep/empty && md5sum < large; chmod 700 secret; mv run ran; ln -s app.py back; echo x > 'neu ü'"
    )
    ran = plainly(environment, "web", "--", "sh", "-c", script).expect()
    digest = hashlib.md5((source / "large").read_bytes()).hexdigest()  # noqa: S324 -- no secret
    assert ran.stdout.splitlines() == [
        "600 secret", "750 run", "Casecase日本 é", "deep", "no out", f"{digest}  -",
    ]  # fmt: skip
    assert "can't sync src/out" in ran.stderr
    assert (source / "secret").stat().st_mode & 0o777 == 0o700
    assert (source / "ran").stat().st_mode & 0o777 == 0o750
    assert (not (source / "run").exists(), (source / "back").readlink().name) == (True, "app.py")
    assert (source / "neu ü").read_text() == "x\n"


def test_an_image_with_nothing_in_it(environment: Environment) -> None:
    """No shell, no tar, another user than root, one file for all: files come and go, and belong to that user."""
    busybox = Path(str(shutil.which("busybox"))).read_bytes()
    image = Image(files={"busybox": File(busybox), "etc/one.conf": File(b"image", 0o666)}, user="1234:1234")
    push(image, "library/bare:1", ("127.0.0.1", PORTS["registry"]))
    environment.write("here", "src/file")
    environment.write("mine", "one.conf")
    environment.deploy(
        "services:\n  web:\n    image: bare:1\n    command: [/busybox, sleep, '100000']\n    stop_grace_period: 0\n"
        "    volumes: ['./src:/app', './one.conf:/etc/one.conf']\n"
    ).expect()
    link = ("web", "--", "/busybox")
    assert plainly(environment, *link, "stat", "-c", "%u %n", "/app/file").stdout == "1234 /app/file\n"
    assert plainly(environment, *link, "cat", "/etc/one.conf").stdout == "mine"
    plainly(environment, *link, "cp", "/app/file", "/app/made").expect()
    assert on_disk(environment, "src/made") == "here"
    shell = plainly(environment, "web", "--", "sh")
    assert (shell.status, "sh not found in the container" in shell.stderr) == (127, True)


def test_a_closed_folder_stays_closed(environment: Environment) -> None:
    """A database in development starts on its data: Kubernetes does not open its folder to a group."""
    (environment.folder / "src").mkdir()
    (environment.folder / "src" / "file").write_text("synced\n")
    environment.deploy(
        f"services: {{db: {{{IMAGE}, user: '999', command: \"{SLEEP}\", stop_grace_period: 0,"
        " volumes: ['data:/data', './src:/app']}}\nvolumes: {data: {}}\n"
    ).expect()
    environment.exec("db-0", "sh", "-c", "mkdir /data/inner; chmod 700 /data /data/inner")

    seen = plainly(
        environment, "db", "--", "sh", "-c", "stat -c %u:%a /data /data/inner; cat /app/file; touch /app/new"
    )
    assert (seen.status, seen.stdout) == (0, "999:700\n999:700\nsynced\n")


def test_a_command_has_the_entrypoint_of_the_image(environment: Environment) -> None:
    """It runs as in the deployed service; a command after ``--`` runs as it is."""
    environment.write("x\n", "src/file")
    environment.write('FROM busybox:1.37\nENTRYPOINT ["env", "FROM=image"]\n', "Dockerfile")
    environment.deploy(
        "services:\n  web: {build: ., command: ['sh', '-c', 'echo $$FROM; test -e /app/file || exec sleep 600'],"
        " stop_grace_period: 0, volumes: ['./src:/app']}\n"
    ).expect()
    assert plainly(environment, "web").stdout == "image\n"
    assert plainly(environment, "web", "--", "sh", "-c", "echo $FROM.").stdout == ".\n"


def test_without_a_host_volume(shop: Environment) -> None:
    """A service that names no files can't be developed, and is reported so at its place."""
    ran = shop.platform("up", "api", "--domain", "localhost").expect(1)
    assert "compose.yaml:9:3: error: services.api has no host volume" in ran.stderr


def test_the_only_service_is_chosen(shop: Environment) -> None:
    """Without a name, the one service that has host volumes is meant."""
    up = Up(shop, *SH)
    up.prompt()
    assert up.leave() == 0


def test_events_are_json(shop: Environment) -> None:
    """With ``--progress json`` what happens is reported on standard error, a line each."""
    ran = plainly(shop, "--progress", "json", "web", "--", "true").expect()
    events = [checked_event(line)["event"] for line in ran.stderr.splitlines() if line.startswith("{")]
    assert {"connected", "synced", "ended"} <= set(events)
