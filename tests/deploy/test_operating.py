"""A deployed environment, looked at: its status, what it says, where it answers."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from composeplat.local.cluster import LocalCluster
from tests.deploy.conftest import PORTS, Environment, an_environment, until
from tests.deploy.test_trouble import ApiServer, until_whole
from tests.terminal import Terminal

#: Prints numbered lines of numbered runs, and the last number of each; the first run ends by itself on request.
COUNTING = """
r=$$(($$(cat /data/r 2>/dev/null || echo 0) + 1)); echo $$r > /data/r; i=0; over=no
trap over=yes TERM
while :; do
  i=$$((i + 1)); echo run $$r line $$i
  [ $$r = 1 ] && [ $$i = "$$LAST" ] && over=yes
  [ $$over = yes ] && echo run $$r end $$i && exit 1
  sleep 0.01
done
"""
COUNTER = f"""\
services:
  counter:
    image: busybox:1.37
    command: [sh, -c, {json.dumps(COUNTING)}]
    environment: {{LAST: '%s'}}
    volumes: [data:/data]
    stop_grace_period: 0s
volumes: {{data: {{}}}}
"""
#: Says something, then ends at once when asked to.
SAYING = (
    "for i in 1 2 3; do echo %s $$i; done; printf '\\033[31mred\\033[0m\\n'; trap true TERM; sleep 1000000 & wait; true"
)
SHOP = f"""\
x-app: &app {{image: 'busybox:1.37', stop_grace_period: 0s}}
services:
  web: {{<<: *app, command: [sh, -c, {json.dumps(SAYING % "web")}], ports: ['8080:80']}}
  api: {{<<: *app, command: [sh, -c, {json.dumps(SAYING % "api")}], scale: 2}}
  bad: {{<<: *app, command: sh -c 'exit 3'}}
"""


@dataclass(slots=True)
class Followed:
    """A command that follows logs, and what it has printed so far."""

    process: subprocess.Popen[str]
    path: Path

    @property
    def printed(self) -> str:
        return self.path.read_text()

    def until(self, args: str) -> None:
        until(lambda: args in self.printed or self.process.poll() is not None)
        assert args in self.printed

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=10)


def follow(environment: Environment, *args: str, open_files: tuple[int, int] | None = None) -> Followed:
    """Follow logs; ``open_files`` is the number of files that the command may have open, and that it may ask for."""
    path = environment.folder / f"printed-{len(environment.started)}"
    limit = ["prlimit", f"--nofile={open_files[0]}:{open_files[1]}"] if open_files else []
    with path.open("w") as stream, path.with_suffix(".stderr").open("w") as output:
        process = subprocess.Popen(
            [*limit, *environment.command_line("logs", "--follow", *args)],
            cwd=environment.folder, env=environment.variables, text=True,
            stdin=subprocess.DEVNULL, stdout=stream, stderr=output,
        )  # fmt: skip
    environment.started.append(process)
    return Followed(process, path)


def assert_whole(printed: str, runs: int) -> None:
    """Every line of every run is there once, in its place, up to where the run says that it ended."""
    for run in range(1, runs + 1):
        (end,) = re.findall(rf"run {run} end (\d+)$", printed, re.MULTILINE)
        wanted = [str(number) for number in range(1, int(end) + 1)]
        assert wanted == re.findall(rf"run {run} line (\d+)$", printed, re.MULTILINE), run


@pytest.fixture(scope="module")
def shop(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    folder = tmp_path_factory.mktemp("shop")
    with an_environment(cluster, folder, tmp_path_factory.mktemp("private")) as made:
        made.deploy(SHOP, "--no-wait").expect()
        until(lambda: "failing" in made.platform("status", "bad").stdout)
        until(lambda: made.platform("status", "web", "api", "--json").json["services"][0]["state"] == "ready")
        yield made
        made.platform("destroy", "--yes")


@pytest.fixture
def server(cluster: LocalCluster) -> Iterator[ApiServer]:
    server = ApiServer(cluster)
    yield server
    until_whole(server)


def failing(shop: Environment) -> Any:
    """The status while a crashing container does not run."""
    document = shop.platform("status", "--json").expect().json
    states = {row["service"]: row["state"] for row in document["services"]}
    return document if states["bad"] == "failing" else None


def on_terminal(shop: Environment, word: str) -> list[str]:
    """What `status` shows in 40 columns; nothing where a word is not there."""
    env = {**shop.variables, "TERM": "xterm", "NO_COLOR": ""}
    shown = Terminal(shop.command_line("status"), folder=shop.folder, env=env, columns=40).rest()
    return shown.replace("\r\n", "\n").splitlines() if word in shown else []


# status ---------------------------------------------------------------------------------------------------------------


def test_status_as_json(shop: Environment) -> None:
    """A healthy service and a crashing one stand as they are, with the reason."""
    document = until(lambda: failing(shop))
    rows = {row["service"]: row for row in document["services"]}
    assert (document["schema"], document["environment"]) == ("platform/status/1", "env")
    assert {name: (row["state"], row["ready"], row["desired"]) for name, row in rows.items()} == {
        "web": ("ready", 1, 1),
        "api": ("ready", 2, 2),
        "bad": ("failing", 0, 1),
    }
    assert rows["bad"]["problem"].startswith("crashes with exit status 3")
    assert rows["web"]["urls"] == [f"https://web-{shop.namespace}.localhost:{PORTS['https']}"]
    assert rows["web"]["image"].startswith("sha256:")


def test_status_for_people(shop: Environment) -> None:
    """A table, then what is wrong and where it answers; `ps` is another name for it."""
    lines = shop.platform("ps").expect().stdout.splitlines()
    assert lines[0] == f"env in namespace {shop.namespace}"
    assert lines[2].split() == ["SERVICE", "KIND", "STATE", "READY", "RESTARTS", "AGE", "IMAGE"]
    assert lines[-1] == f"  https://web-{shop.namespace}.localhost:{PORTS['https']}"
    assert "Problems" in lines


def test_status_on_a_terminal(shop: Environment) -> None:
    """The table is as wide as a terminal of 40 columns at most, and states have colors."""
    lines = until(lambda: on_terminal(shop, "failing"))
    plain = [re.sub(r"\x1b\[\d+m", "", line) for line in lines[2:6]]
    assert plain[0].split()[:3] == ["SERVICE", "STATE", "READY"]
    assert max(map(len, plain)) <= 40
    assert sorted(re.findall(r"\x1b\[(\d+)m(\w+)\x1b\[0m", "\n".join(lines))) == [
        ("31", "failing"), ("32", "ready"), ("32", "ready"),
    ]  # fmt: skip


def test_status_without_a_deployment(environment: Environment) -> None:
    """Absent services have rows, and the way to deploy them is reported."""
    environment.write("services: {web: {image: busybox}}")
    ran = environment.platform("status").expect()
    assert ran.stdout.splitlines()[3].split() == ["web", "Deployment", "absent", "0/0", "0", "-", "-"]
    assert ran.stderr == f"env is not deployed in namespace {environment.namespace}: platform deploy\n"


@pytest.mark.parametrize("command", ["status", "logs", "events", "open"])
def test_a_service_that_nobody_knows(shop: Environment, command: str) -> None:
    """It is an error with the services that there are."""
    ran = shop.platform(command, "wbe").expect(1)
    assert ran.stderr == "error: there is no service 'wbe'\n  hint: did you mean 'web'? services are: api, bad, web\n"


# logs -----------------------------------------------------------------------------------------------------------------


def test_logs_of_two_services(shop: Environment) -> None:
    """Each line has its service and the end of its pod's name; nothing reaches a terminal that it would obey."""
    pods = {pod["metadata"]["name"][-5:] for pod in shop.pods("api")}
    lines = shop.platform("logs", "web", "api").expect().stdout.splitlines()
    found = [re.fullmatch(r"(web|api)-([a-z0-9]{5}) \| (.*)", line) for line in lines]
    assert [line for line, match in zip(lines, found, strict=True) if match is None] == []
    parts = [match.groups() for match in found if match]
    assert pods == {end for service, end, _ in parts if service == "api"}
    assert [text for service, _, text in parts if service == "web"] == ["web 1", "web 2", "web 3", "red"]
    assert sorted(text for service, _, text in parts if service == "api") == [
        f"api {n}" for n in (1, 1, 2, 2, 3, 3)
    ] + ["red", "red"]


def test_tail(shop: Environment) -> None:
    """The last lines of each pod."""
    assert shop.platform("logs", "--no-prefix", "--tail", "2", "web").expect().stdout == "web 3\nred\n"
    assert shop.platform("logs", "--no-prefix", "--tail", "1", "api").expect().stdout == "red\nred\n"
    assert shop.platform("logs", "--tail", "0").expect().stdout == ""


def test_since(shop: Environment) -> None:
    """Lines since a moment, or of so long."""
    assert shop.platform("logs", "--no-prefix", "--since", "1h", "web").expect().stdout.count("web ") == 3
    time.sleep(1.5)
    assert shop.platform("logs", "--since", "1s", "web").expect().stdout == ""
    assert shop.platform("logs", "--since", "2099-01-01T00:00:00Z", "web").expect().stdout == ""
    stamped = shop.platform("logs", "--no-prefix", "--timestamps", "web").expect().stdout.splitlines()
    moment = stamped[2].split()[0]
    later = shop.platform("logs", "--no-prefix", "--timestamps", "--since", moment, "web").expect().stdout.splitlines()
    assert later == stamped[2:]


def test_nobody_reads(shop: Environment) -> None:
    """A reader that goes away ends it without a word, also while it follows."""
    environment = {**shop.variables}
    args = " ".join(shop.command_line("logs", "web"))
    for more in ("", " --follow"):
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {args}{more} --tail 2 | true"], cwd=shop.folder, env=environment,
            capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")


def end_program(environment: Environment) -> None:
    """Ask the program to end; the connection may end with it, before the command has reported its status."""

    def is_asked() -> bool:
        try:
            environment.exec("counter-0", "kill", "1")
        except subprocess.CalledProcessError as error:
            return "terminated with exit code" in error.stderr
        return True

    until(is_asked)


def test_follow_through_a_restart(environment: Environment) -> None:
    """When a container ends and starts again, no line is lost and none comes twice; Ctrl-C ends it with status 130."""
    environment.deploy(COUNTER % "never").expect()
    followed = follow(environment)
    for run in (1, 2):
        followed.until(f"run {run} line 50\n")
        end_program(environment)
        followed.until(f"run {run} end")
    status = followed.end()
    assert_whole(followed.printed, 2)
    assert status == 130


def test_following_only_new_lines(environment: Environment) -> None:
    """With --tail 0 it begins with the next line, and misses none after that."""
    environment.deploy(COUNTER % "never").expect()
    followed = follow(environment, "--tail", "0", "--no-prefix")
    until(lambda: len(followed.printed.splitlines()) > 100)
    followed.end()
    numbers = [int(number) for number in re.findall(r"run 1 line (\d+)\n", followed.printed)]
    assert numbers[0] > 1
    assert list(range(numbers[0], numbers[0] + len(numbers))) == numbers


def test_follow_through_a_cut(environment: Environment, server: ApiServer) -> None:
    """When the API server is killed, again and again, no line is lost and none comes twice."""
    environment.deploy(COUNTER % "never").expect()
    followed = follow(environment, "counter")
    for seen in (50, 1500):
        followed.until(f"run 1 line {seen}\n")
        server.send(signal.SIGKILL)
    until(server.answers)
    followed.until("run 1 line 2000\n")
    end_program(environment)
    followed.until("run 1 end")
    followed.end()
    assert_whole(followed.printed, 1)


@pytest.mark.endurance
def test_a_restart_while_it_is_cut(environment: Environment, server: ApiServer) -> None:
    """Lines that a container wrote during an interruption are printed after it."""
    environment.deploy(COUNTER % "800").expect()
    followed = follow(environment, "counter")
    followed.until("run 1 line ")
    with server.gone():
        time.sleep(15)
    followed.until("run 2 line 900\n")
    assert "run 1 end 800\n" in followed.printed
    end_program(environment)
    followed.until("run 2 end")
    followed.end()
    assert_whole(followed.printed, 2)


def test_a_line_without_an_end(environment: Environment) -> None:
    """A long line comes in parts before it has an end, and each part once, whenever following began."""
    writing = "x=$$(head -c 1000 /dev/zero | tr '\\0' %s); for i in $$(seq 100); do printf %%s $$x; done; "
    program = writing % "a" + "until [ -e /speak ]; do sleep 0.2; done; " + writing % "b" + "echo; sleep 600 & wait"
    app = {"image": "busybox:1.37", "command": ["sh", "-c", f"trap exit TERM; {program}"], "stop_grace_period": "0s"}
    environment.deploy(json.dumps({"services": {"app": app}})).expect()
    followed = follow(environment, "--no-prefix")
    until(lambda: followed.printed.count("a") > 80_000)
    late = follow(environment, "--no-prefix")
    until(lambda: late.printed.count("a") > 80_000)
    (pod,) = environment.pods("app")
    environment.exec(pod["metadata"]["name"], "touch", "/speak")
    until(lambda: followed.printed.count("b") == late.printed.count("b") == 100_000)

    for printed in (followed.printed, late.printed, environment.platform("logs", "--no-prefix").expect().stdout):
        assert (printed.count("a"), printed.count("b")) == (100_000, 100_000)
        assert max(map(len, printed.splitlines())) <= 16 * 1024
    assert [item.end() for item in (followed, late)] == [130, 130]


def test_more_containers_than_open_files(environment: Environment) -> None:
    """A low limit, as that of a shell of macOS, is raised; where that is not allowed, a note says what is missing."""
    talking = ["sh", "-c", "trap exit TERM; while :; do echo from $$HOSTNAME; sleep 0.2; done"]
    app = {"image": "busybox:1.37", "command": talking, "stop_grace_period": "0s", "scale": 24}
    environment.deploy(json.dumps({"services": {"app": app}})).expect()
    pods = {pod["metadata"]["name"] for pod in environment.pods("app")}

    def talkers(followed: Followed) -> set[str]:
        """The pods of which more than the first line came."""
        found = Counter(re.findall(r"from (\S+)$", followed.printed, re.MULTILINE))
        return {name for name, count in found.items() if count > 3}

    args = ("--tail", "1")
    raised, low = follow(environment, *args, open_files=(24, 4096)), follow(environment, *args, open_files=(24, 24))
    until(lambda: talkers(raised) == pods)
    until(lambda: talkers(low))
    errors = [item.path.with_suffix(".stderr") for item in (raised, low)]
    until(errors[1].read_text)

    assert errors[0].read_text() == ""
    assert errors[1].read_text() == (
        "not all logs can be followed: this process may have 24 files open; "
        "name some services, or raise the limit with ulimit -n\n"
    )
    assert talkers(low) < pods
    assert [item.end() for item in (raised, low)] == [130, 130]


@pytest.mark.endurance
def test_follow_through_silence(environment: Environment) -> None:
    """Lines after a silence that is longer than the timeout of a request are printed, once."""
    silent = ["sh", "-c", "trap exit TERM; until [ -e /speak ]; do sleep 0.2; done; echo late; sleep 600 & wait"]
    app = {"image": "busybox:1.37", "command": silent, "stop_grace_period": "0s"}
    environment.deploy(json.dumps({"services": {"app": app}})).expect()
    followed = [follow(environment, "--no-prefix"), follow(environment, "--no-prefix", "--tail", "0")]
    time.sleep(17)
    assert [item.printed for item in followed] == ["", ""]
    (pod,) = environment.pods("app")
    environment.exec(pod["metadata"]["name"], "touch", "/speak")
    for item in followed:
        item.until("late\n")
    time.sleep(2)
    assert [item.printed for item in followed] == ["late\n", "late\n"]
    assert [item.end() for item in followed] == [130, 130]


def test_logs_without_a_deployment(environment: Environment) -> None:
    """Without pods there are no lines, and that is reported."""
    environment.write("services: {web: {image: busybox}}")
    ran = environment.platform("logs").expect()
    assert (ran.stdout, ran.stderr) == (
        "",
        f"env is not deployed in namespace {environment.namespace}: platform deploy\n",
    )


# events and endpoints -------------------------------------------------------------------------------------------------


def test_events(shop: Environment) -> None:
    """The events of one service, oldest first, and of no other."""
    document = shop.platform("events", "bad", "--json").expect().json
    events = document["events"]
    assert document["schema"] == "platform/events/1"
    assert {"bad"} == {event["service"] for event in events}
    assert sorted(event["time"] for event in events) == [event["time"] for event in events]
    assert "BackOff" in {event["reason"] for event in events if event["type"] == "Warning"}
    head = shop.platform("events").expect().stdout.splitlines()[0]
    assert head.split() == ["AGE", "SERVICE", "OBJECT", "REASON", "MESSAGE"]


def test_endpoints(shop: Environment) -> None:
    """The addresses that the cluster has; without a display, `open` prints the first."""
    url = f"https://web-{shop.namespace}.localhost:{PORTS['https']}"
    document = shop.platform("endpoints", "--json").expect().json
    assert [{"name": "web", "url": url, "service": "web", "port": 80}] == document["endpoints"]
    table = shop.platform("endpoints").expect().stdout.splitlines()
    assert [row.split() for row in table] == [["ENDPOINT", "SERVICE", "PORT", "URL"], ["web", "web", "80", url]]
    assert f"{url}\n" == shop.platform("open", DISPLAY="", WAYLAND_DISPLAY="", BROWSER="").expect().stdout


def test_open_without_an_address(shop: Environment) -> None:
    """A service that is not public can't be opened."""
    ran = shop.platform("open", "api").expect(1)
    assert ran.stderr.startswith(f"error: no address leads to service 'api' in namespace {shop.namespace}\n")
