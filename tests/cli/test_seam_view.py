"""What the commands show that look at an environment, and what ``up`` and ``down`` ask for, without a real cluster."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partialmethod
from typing import Any

import pytest
import yaml

from composeplat.cli.service_image import Process
from composeplat.cluster.cause import Cause
from composeplat.codes.causes import CauseCode
from composeplat.compose.model import User
from composeplat.dev.container_commands import Command
from composeplat.dev.lease import LEASE_ANNOTATION
from composeplat.dev.run_pod import RunOptions
from composeplat.dev.session import Development, UpOptions
from composeplat.engine.outcomes import Failure, Outcome as Came
from composeplat.names import DEV_WORKLOAD_LABEL
from tests.cli.conftest import Seam, data
from tests.cluster.objects import (
    MOMENT,
    Answer,
    deployment,
    ended,
    event,
    given,
    lost,
    pod,
    refusal,
    replica_set,
    running,
    waiting,
)
from tests.conftest import VARIABLES
from tests.registry.test_image_users import BASE
from tests.registry_server import Registry, serving
from tests.terminal import Terminal

# status and logs ------------------------------------------------------------------------------------------------------

WORKLOADS = "/apis/apps/v1/namespaces/team"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/team/ingresses"
WEB = deployment("web")
OWNER = replica_set(WEB)
POD = pod(OWNER, state=running(), ready=True)


POD["status"]["containerStatuses"][0]["containerID"] = "containerd://1"


def labelled(thing: dict[str, Any]) -> dict[str, Any]:
    labels = {"dev.platform.com/environment": "demo", "dev.platform.com/service": "web"}
    return {**thing, "metadata": {**thing["metadata"], "labels": labels}}


@pytest.fixture
def deployed(seam: Seam) -> Seam:
    """An environment of which web alone is there."""
    seam.server.answers |= {
        f"{WORKLOADS}/deployments": given(labelled(WEB)),
        f"{WORKLOADS}/replicasets": given(labelled(OWNER)),
        "/api/v1/namespaces/team/pods": given(labelled(POD)),
        f"/api/v1/namespaces/team/pods/{POD['metadata']['name']}/log": Answer(
            b"2025-06-01T12:00:01Z begun\n2025-06-01T12:00:02Z it is hunter2\n"
        ),
    }
    return seam


def watch_status(deployed: Seam, term: str) -> Terminal:
    variables = {"KUBECONFIG": str(deployed.folder / "kubeconfig"), "COMPOSEPLAT_DATA": str(deployed.folder / "data")}
    return Terminal(
        [sys.executable, "-c", "from composeplat.cli.app import main; main()", "status", "--watch"],
        folder=deployed.folder, env={**VARIABLES, **variables, "TERM": term, "NO_COLOR": "1"},
    )  # fmt: skip


def set_creation(deployed: Seam) -> None:
    """Let web be created now, so that its age grows each second."""
    created = datetime.now(UTC).isoformat()
    web = labelled({**WEB, "metadata": {**WEB["metadata"], "creationTimestamp": created}})
    deployed.server.answers[f"{WORKLOADS}/deployments"] = given(web)


@pytest.mark.parametrize(("term", "clears"), [("xterm", True), ("dumb", False)])
def test_the_status_on_a_terminal(deployed: Seam, term: str, *, clears: bool) -> None:
    """It replaces itself on the screen, and what is above that stays; a terminal that only prints gets no controls."""
    terminal = watch_status(deployed, term)
    shown = terminal.until("own ")
    terminal.interrupt()

    assert terminal.status() == 130
    assert shown.partition("demo in namespace team")[0] == ("\x1b[H\x1b[2J" if clears else "")


def test_the_status_where_the_addresses_alone_cannot_be_read(deployed: Seam) -> None:
    """The rows stay current, and the addresses are those before; the watch ended with an error."""
    terminal = watch_status(deployed, "dumb")
    terminal.until("own ")
    deployed.server.answers[INGRESSES] = refusal(500, "etcdserver: request timed out")
    terminal.until("the addresses may be old: etcdserver: request timed out; trying again")
    crashed = pod(OWNER, state=waiting("CrashLoopBackOff"), restarts=7)
    deployed.server.answers["/api/v1/namespaces/team/pods"] = given(labelled(crashed))
    terminal.until("and is being restarted")
    terminal.interrupt()

    assert terminal.status() == 130


def test_the_status_where_no_screen_is_cleared(deployed: Seam) -> None:
    """An age alone is no change there, so that a pipe or file does not get the same rows each second."""
    set_creation(deployed)
    terminal = watch_status(deployed, "dumb")
    terminal.until("own ")
    time.sleep(3)
    terminal.interrupt()

    assert "demo in namespace team" not in terminal.rest()


def test_the_status_of_a_cluster_that_goes_away(deployed: Seam) -> None:
    """As long as the rows are old, the screen says why, also after it was replaced."""
    set_creation(deployed)
    terminal = watch_status(deployed, "xterm")
    terminal.until("own ")
    deployed.server.otherwise = refusal(500, "etcd is ill")
    deployed.server.answers.clear()
    terminal.until("etcd is ill; trying again")
    screens = [terminal.until("\x1b[2J") for _ in range(3)]
    terminal.interrupt()

    assert terminal.status() == 130
    assert "own " in screens[2]
    assert screens[2].count("etcd is ill; trying again") == 1


def test_the_status_after_a_stop(deployed: Seam) -> None:
    """After Ctrl-Z and fg it is drawn again, although nothing has changed: the shell's lines are on the screen."""
    terminal = watch_status(deployed, "xterm")
    first = terminal.until("own ")
    terminal.stop_and_continue()

    assert terminal.until("own ").partition("\x1b[2J")[2] == first.partition("\x1b[2J")[2]
    terminal.interrupt()
    assert terminal.status() == 130


def test_a_copy_from_the_home_of_nobody(deployed: Seam) -> None:
    """A `~` with the name of no user, which a shell leaves as it is, is a path like any other."""
    outcome = deployed.platform("cp", "~nobody-has-this-name/x", "web:/tmp/")

    assert (outcome.status, outcome.stderr) == (1, "error: there is no '~nobody-has-this-name/x'\n")


def test_the_status(deployed: Seam) -> None:
    """Each service is a line, whether it is there or not."""
    outcome = deployed.platform("status").assert_success()

    assert [line.split()[:4] for line in outcome.stdout.splitlines()[2:6]] == [
        ["SERVICE", "KIND", "STATE", "READY"],
        ["web", "Deployment", "ready", "1/1"],
        ["db", "StatefulSet", "absent", "0/0"],
        ["own", "Deployment", "absent", "0/0"],
    ]
    assert outcome.stderr == ""


def test_ages_are_by_the_clock_of_the_cluster(eventful: Seam) -> None:
    """The times of objects are by that clock: with this machine's, years ahead of it here, each age would be wrong."""
    eventful.server.date = "Sun, 01 Jun 2025 12:07:00 GMT"
    crashed = pod(OWNER, state=running(), ready=True, restarts=1, last=ended(3))
    web = {**WEB, "metadata": {**WEB["metadata"], "creationTimestamp": MOMENT}}
    eventful.server.answers |= {
        f"{WORKLOADS}/deployments": given(labelled(web)),
        "/api/v1/namespaces/team/pods": given(labelled(crashed)),
    }
    status = eventful.platform("status").assert_success().stdout.splitlines()
    events = eventful.platform("events").assert_success().stdout.splitlines()

    assert status[3].split()[:6] == ["web", "Deployment", "ready", "1/1", "1", "7m"]
    assert "  web: ended with exit status 3, 7m ago" in status
    assert [row.split()[0] for row in events] == ["AGE", "7m", "7m"]


def test_the_status_of_services_that_the_file_does_not_have(deployed: Seam) -> None:
    """After a rollback they run, and no line of the table has them; who names services asks for these alone."""
    old = deployment("old")
    managed = {"app.kubernetes.io/managed-by": "composeplat", "dev.platform.com/environment": "demo"}
    old["metadata"]["labels"] = {**managed, "dev.platform.com/service": "old"}
    deployed.server.answers[f"{WORKLOADS}/deployments"] = given(labelled(WEB), old)

    assert deployed.platform("status").stderr == "deployed services that are not in the file: old\n"
    assert deployed.platform("status", "web").stderr == ""


def test_the_status_of_services_whose_profile_is_off(deployed: Seam) -> None:
    """They are in the file, which the message says."""
    file = deployed.folder / "compose.yaml"
    file.write_text(
        file.read_text().replace("services:", "services:\n  old: {image: example/old, profiles: [more]}", 1)
    )
    old = deployment("old")
    managed = {"app.kubernetes.io/managed-by": "composeplat", "dev.platform.com/environment": "demo"}
    old["metadata"]["labels"] = {**managed, "dev.platform.com/service": "old"}
    deployed.server.answers[f"{WORKLOADS}/deployments"] = given(labelled(WEB), old)

    assert deployed.platform("status", "--full").stderr == "deployed services whose profile is off: old\n"


def test_the_status_of_a_service_that_is_unhealthy_for_long(deployed: Seam) -> None:
    """It is failing, with its last lines, also without --watch: it was 'starting' for ever."""
    probe = {"exec": {"command": ["check"]}, "periodSeconds": 5, "failureThreshold": 4}
    made = pod(OWNER, state=running(), probe=probe)
    deployed.server.answers |= {
        "/api/v1/namespaces/team/pods": given(labelled(made)),
        EVENTS: given(stored_event(made, "Unhealthy", "Readiness probe failed: refused", count=4)),
    }

    (row,) = data(deployed.platform("status", "web", "--json"))["services"]

    assert (row["state"], row["code"]) == ("failing", "unhealthy")
    assert row["problem"] == "its health check failed 4 times: refused"
    assert [line.partition(" ")[2] for line in row["log_lines"]] == ["begun", "it is [secret]"]


def test_the_status_for_programs(deployed: Seam) -> None:
    """The same as JSON, for the services that are named."""
    found = data(deployed.platform("status", "web", "--json"))

    assert [(row["service"], row["state"], row["ready"]) for row in found["services"]] == [("web", "ready", 1)]


def test_the_status_without_the_right_to_list_addresses(deployed: Seam) -> None:
    """A role for deploys need not have Ingresses: services are shown all the same."""
    forbidden = "ingresses.networking.k8s.io is forbidden"
    deployed.server.answers["/apis/networking.k8s.io/v1/namespaces/team/ingresses"] = refusal(403, forbidden)

    shown = deployed.platform("status")

    assert (shown.status, "web      Deployment   ready" in shown.stdout) == (0, True)
    assert shown.stderr.count(f"addresses are not shown: {forbidden}") == 1


def test_status_without_services(seam: Seam) -> None:
    """What is not deployed is reported, and is no failure."""
    outcome = seam.platform("status")

    assert outcome.status == 0
    assert outcome.stderr == "demo is not deployed in namespace team: platform deploy\n"


@pytest.mark.parametrize(
    ("services", "absence"), [(("db",), "db of demo is"), (("db", "own"), "db, own of demo are"), (("web", "db"), "")]
)
def test_status_of_missing_services(deployed: Seam, services: tuple[str, ...], absence: str) -> None:
    """Where others of the environment are deployed, the message names the services."""
    outcome = deployed.platform("status", *services).assert_success()

    assert outcome.stderr == (f"{absence} not deployed in namespace team: platform deploy\n" if absence else "")


def test_the_logs(deployed: Seam) -> None:
    """Each line has the pod it comes from, and nothing confidential."""
    outcome = deployed.platform("logs", "--timestamps").assert_success()

    assert outcome.stdout.splitlines() == [
        "web-x7k2p | 2025-06-01T12:00:01Z begun",
        "web-x7k2p | 2025-06-01T12:00:02Z it is [secret]",
    ]


def test_more_lines_than_the_api_counts(deployed: Seam) -> None:
    """They are all lines; with the number, the API server would refuse to give any."""
    deployed.platform("logs", "--tail", "9" * 20).assert_success()

    asked = [path for path in deployed.server.paths if "/log?" in path]
    assert asked
    assert not any("tailLines=9" in path for path in asked)


@pytest.mark.parametrize(
    ("tail", "error"),
    [
        ("all", ""),
        ("0", ""),
        ("-1", "must be a number of lines, or all, not '-1'"),
        ("ten", "must be a number of lines"),
    ],
)
def test_the_last_lines_of_logs(seam: Seam, tail: str, error: str) -> None:
    """``--tail all`` is accepted, as of docker compose; what is no number has a message."""
    outcome = seam.platform("logs", f"--tail={tail}")

    assert outcome.status == (2 if error else 0)
    assert error in outcome.stderr


def test_logs_without_pods(seam: Seam) -> None:
    """Where nothing is deployed that is reported."""
    outcome = seam.platform("logs")

    assert (outcome.status, outcome.stdout) == (0, "")
    assert outcome.stderr == "demo is not deployed in namespace team: platform deploy\n"


@pytest.mark.parametrize("command", ["logs", "images"])
def test_an_environment_of_other_services(seam: Seam, command: str) -> None:
    """What the file does not have is deployed, so the environment is there."""
    old = labelled(deployment("old"))
    managed = {"app.kubernetes.io/managed-by": "composeplat", "dev.platform.com/service": "old"}
    old["metadata"]["labels"] |= managed
    seam.server.answers[f"{WORKLOADS}/deployments"] = given(old)

    whole = seam.platform(command).assert_success().stderr
    assert whole == "demo in namespace team has no service of the file, and has old: platform deploy\n"
    part = seam.platform(command, "web").assert_success().stderr
    assert part == "web of demo is not deployed in namespace team: platform deploy\n"


@pytest.mark.parametrize(
    ("service", "reason"), [("web", ""), ("db", "db of demo is not deployed in namespace team: platform deploy\n")]
)
def test_logs_that_are_followed_without_pods(deployed: Seam, service: str, reason: str) -> None:
    """Where no pod writes lines, the reason is shown before the wait for pods."""
    deployed.patch.setattr("composeplat.cluster.logs.Follower.lines", lambda _: iter(()))
    outcome = deployed.platform("logs", "--follow", service).assert_success()

    assert outcome.stderr == (f"{reason}waiting for pods, until Ctrl-C\n" if reason else "")


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        ({}, "no workload has the labels of demo, and there are pods of web: platform deploy\n"),
        (
            {"deletionTimestamp": "2025-06-01T12:00:00Z"},
            "demo is not deployed in namespace team: platform deploy\n",
        ),
    ],
)
def test_logs_of_pods_without_a_workload(deployed: Seam, ending: dict[str, str], reason: str) -> None:
    """A workload whose label was removed has pods that run: only those that end are left of what was deployed."""
    left = {**labelled(POD), "metadata": {**labelled(POD)["metadata"], **ending}}
    deployed.server.answers |= {
        f"{WORKLOADS}/deployments": given(),
        "/api/v1/namespaces/team/pods": given(left),
    }
    outcome = deployed.platform("logs").assert_success()

    assert ("web-x7k2p | begun" in outcome.stdout, outcome.stderr) == (True, reason)


def test_logs_of_a_number(seam: Seam) -> None:
    """The number of lines that Compose's ``-n`` has is no namespace that anybody means."""
    outcome = seam.platform("logs", "-n", "100").assert_success()

    assert outcome.stderr == (
        "demo is not deployed in namespace 100: platform deploy\n"
        "for 'docker compose logs -n 100' type platform logs --tail 100\n"
    )


def test_logs_that_are_followed_before_a_deploy(seam: Seam) -> None:
    seam.patch.setattr("composeplat.cluster.logs.Follower.lines", lambda _: iter(()))
    outcome = seam.platform("logs", "--follow").assert_success()

    assert outcome.stderr == (
        "demo is not deployed in namespace team: platform deploy\nwaiting for pods, until Ctrl-C\n"
    )


def test_logs_of_a_pod_that_never_ran(deployed: Seam) -> None:
    """Without a line, the reason is shown: the program never wrote any."""
    pods = "/api/v1/namespaces/team/pods"
    late = pod(OWNER, state=waiting("ImagePullBackOff", 'Back-off pulling image "example/web"'))
    deployed.server.answers |= {pods: given(labelled(late)), f"{pods}/{POD['metadata']['name']}/log": Answer(b"")}
    outcome = deployed.platform("logs", "web").assert_success()

    assert outcome.stdout == ""
    assert outcome.stderr.startswith("web: image 'registry.example.com/web:2' can't be pulled: Back-off pulling")


@pytest.mark.parametrize("command", ["status", "logs"])
def test_a_service_that_is_not_in_the_file(seam: Seam, command: str) -> None:
    """A service that nobody has is an error."""
    outcome = seam.platform(command, "wob")

    assert outcome.status != 0
    assert "wob" in outcome.stderr


@pytest.mark.parametrize("command", ["status", "logs"])
def test_a_cluster_that_refuses(seam: Seam, command: str) -> None:
    """What the cluster does not allow is an error with its args."""
    seam.server.otherwise = refusal(403, "pods is forbidden")
    outcome = seam.platform(command)

    assert (outcome.status, outcome.stdout) == (1, "")
    assert "pods is forbidden" in outcome.stderr


# events, endpoints, open, exec ----------------------------------------------------------------------------------------

DISPLAY = {"DISPLAY": ":0"}
EVENTS = "/api/v1/namespaces/team/events"


def stored_event(about: dict[str, Any], reason: str, message: str, **more: Any) -> dict[str, Any]:
    return event(about, reason, message, lastTimestamp="2025-06-01T12:00:00Z", **more)


@pytest.fixture
def eventful(deployed: Seam) -> Seam:
    """A pod of web has been said something of, and something that is no one's."""
    other = pod(replica_set(deployment("mail")))
    deployed.server.answers[EVENTS] = given(
        stored_event(POD, "BackOff", "no hunter2", count=3),
        stored_event(WEB, "Scaled", "up", kind="Normal"),
        stored_event(other, "Other", "x"),
    )
    return deployed


def test_the_events(eventful: Seam) -> None:
    """What was reported about the environment's own objects is a table, with nothing confidential in it."""
    outcome = eventful.platform("events").assert_success()
    rows = [line.split(maxsplit=4) for line in outcome.stdout.splitlines()]

    assert rows[0] == ["AGE", "SERVICE", "OBJECT", "REASON", "MESSAGE"]
    assert [row[1:] for row in rows[1:]] == [
        ["web", f"Pod/{POD['metadata']['name']}", "BackOff", "no [secret] (3 times)"],
        ["web", "Deployment/web", "Scaled", "up"],
    ]
    assert outcome.stderr == ""


def test_the_events_for_programs(eventful: Seam) -> None:
    """The same as JSON, for the services that are named."""
    found = data(eventful.platform("events", "web", "--json"))["events"]

    assert [(row["type"], row["count"], row["message"]) for row in found] == [
        ("Warning", 3, "no [secret]"),
        ("Normal", 1, "up"),
    ]
    assert data(eventful.platform("events", "db", "--json"))["events"] == []


def test_the_events_of_a_job_that_begins_with_the_name_of_a_service(seam: Seam) -> None:
    """They are the job's, also where the other service alone is named: its pods have such names too."""
    (seam.folder / "compose.yaml").write_text(
        'services: {shop: {image: example/shop}, shop-seed: {image: example/shop, restart: "no"}}\n'
    )
    about = {"kind": "Pod", "metadata": {"name": "shop-seed-x7k2p", "uid": "1"}}
    seam.server.answers[EVENTS] = given(event(about, "BackOff", "again"))

    assert data(seam.platform("events", "shop", "--json"))["events"] == []
    for names in ((), ("shop-seed",)):
        (found,) = data(seam.platform("events", *names, "--json"))["events"]
        assert found["service"] == "shop-seed"


def test_no_events(seam: Seam) -> None:
    """Where there are none that is reported."""
    outcome = seam.platform("events")

    assert (outcome.status, outcome.stdout) == (0, "")
    assert outcome.stderr == "there are no events of demo in namespace team\n"


@pytest.fixture
def reachable(seam: Seam) -> Seam:
    """Addresses lead to web, and one to what is no service of the file."""
    seam.server.answers[INGRESSES] = given(
        {"metadata": {"name": "shop"}, "spec": {"rules": [
            {"host": "shop.example.com", "http": {"paths": [
                {"path": "/", "backend": {"service": {"name": "web", "port": {"number": 8080}}}},
                {"path": "/api", "backend": {"service": {"name": "web", "port": {"name": "http"}}}},
                {"path": "/old", "backend": {"service": {"name": "gone", "port": {"number": 1}}}},
            ]}},
        ]}},
    )  # fmt: skip
    return seam


def test_the_endpoints(reachable: Seam) -> None:
    """Each address is a line, with the service that it leads to."""
    outcome = reachable.platform("endpoints").assert_success()

    assert [line.split() for line in outcome.stdout.splitlines()] == [
        ["ENDPOINT", "SERVICE", "PORT", "URL"],
        ["shop", "web", "8080", "https://shop.example.com"],
        ["shop", "web", "-", "https://shop.example.com/api"],
    ]
    assert data(reachable.platform("endpoints", "--json"))["endpoints"][0] == {
        "name": "shop", "url": "https://shop.example.com", "service": "web", "port": 8080,
    }  # fmt: skip


ENDPOINTS = """\
services:
  web: {image: example/web, ports: ["8080:80"], expose: [90]}
  api: {image: example/api, ports: ["8080:80"]}
endpoints:
  zoo: [{path: /, service: api, port: 80}]
  bar: [{path: /old, service: web, port: 80}, {path: /, service: web, port: 90}]
"""


def test_addresses_in_the_order_of_a_deploy(deployed: Seam) -> None:
    """First the ports of each service, then the endpoints, as they are written; what has left the file is last."""
    (deployed.folder / "compose.yaml").write_text(ENDPOINTS)
    rendered = [*yaml.safe_load_all(deployed.platform("render", "--domain", "example.com").stdout)]
    routes = [manifest for manifest in rendered if manifest["kind"] == "Ingress"]
    left = {"metadata": {"name": "a"}, "spec": {"rules": [{**routes[0]["spec"]["rules"][0], "host": "a.example.com"}]}}
    deployed.server.answers[INGRESSES] = given(left, *routes)

    urls = [f"https://{path}" for path in (
        "web-team.example.com", "api-team.example.com", "zoo-team.example.com", "bar-team.example.com/old",
        "bar-team.example.com", "a.example.com",
    )]  # fmt: skip
    assert [row["url"] for row in data(deployed.platform("endpoints", "--json"))["endpoints"]] == urls
    status = deployed.platform("status").stdout
    assert status.partition("Addresses\n")[2].split() == urls


def test_no_endpoints(seam: Seam) -> None:
    """Without a deploy that is the reason; there is nothing to open."""
    listed, opened = seam.platform("endpoints"), seam.platform("open", "web")

    assert (listed.status, listed.stdout) == (0, "")
    assert listed.stderr == "demo is not deployed in namespace team: platform deploy\n"
    assert (opened.status, opened.stdout) == (1, "")
    assert opened.stderr == ("error: no address leads to service 'web' in namespace team\n  hint: platform deploy\n")


@pytest.mark.parametrize(
    ("service", "whose", "hint"),
    [
        ((), "demo", "publish a port, as in '8080:80', or use 'endpoints'; the deploy needs a domain: --domain"),
        (("web",), "service 'web'", "platform endpoints lists what there is"),
    ],
)
def test_no_endpoints_of_a_deployment(deployed: Seam, service: tuple[str, ...], whose: str, hint: str) -> None:
    """A deployed environment may have no address."""
    deployed.server.answers[INGRESSES] = given()

    assert deployed.platform("endpoints").stderr == "demo has no endpoints in namespace team\n"
    assert deployed.platform("open", *service).stderr == (
        f"error: no address leads to {whose} in namespace team\n  hint: {hint}\n"
    )


@pytest.mark.parametrize(
    ("shell", "works", "shown"), [({}, True, True), (DISPLAY, True, False), (DISPLAY, False, True)]
)
def test_open(reachable: Seam, *, shell: dict[str, str], works: bool, shown: bool) -> None:
    """The first address is opened, and printed where no browser would be seen, or none comes."""
    opened: list[str] = []

    def show(url: str) -> bool:
        opened.append(url)
        return works

    reachable.patch.setattr("webbrowser.open", show)
    outcome = reachable.platform("open", **shell).assert_success()

    assert outcome.stdout == ("https://shop.example.com\n" if shown else "")
    assert opened == (["https://shop.example.com"] if shell else [])


@pytest.mark.parametrize("options", [(), ("-it",), ("-i", "--tty")])
def test_exec(deployed: Seam, options: tuple[str, ...]) -> None:
    """The command runs in the pod of the service, and its status is the end; ``-it`` is accepted, as of docker."""
    ran: list[Command] = []

    def run(command: Command, *_: Any) -> int:
        ran.append(command)
        return 7

    deployed.patch.setattr("composeplat.cli.exec.run_until_interrupted", run)
    outcome = deployed.platform("exec", *options, "web", "--", "ls", "-l")

    assert (outcome.status, outcome.stdout) == (7, "")
    assert ran == [
        Command(namespace="team", pod=POD["metadata"]["name"], container="web", args=("ls", "-l"), terminal=False)
    ]


def test_exec_that_is_ended(deployed: Seam) -> None:
    """SIGTERM and SIGHUP end the program in the container's terminal too: it was left, and had the terminal."""
    handlers: list[Any] = []

    def run(*_: Any) -> int:
        handlers.extend(signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP))
        return 0

    deployed.patch.setattr("composeplat.cli.exec.run_until_interrupted", run)
    deployed.platform("exec", "web", "ls").assert_success()

    assert len(handlers) == 2
    assert all(map(callable, handlers))


def test_exec_on_a_node_that_does_not_report(deployed: Seam, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server may wait for long for such a node, so a note comes first."""
    monkeypatch.setattr("composeplat.cli.exec.run_until_interrupted", lambda *_: 0)
    deployed.server.answers["/api/v1/namespaces/team/pods"] = given(labelled(lost(POD)))

    assert deployed.platform("exec", "web", "ls").assert_success().stderr == (
        f"{POD['metadata']['name']} is on node 'node-1', which does not report: this may wait for long\n"
    )


def test_exec_without_a_pod(seam: Seam) -> None:
    """Where no pod runs that is reported, and how to see why."""
    outcome = seam.platform("exec", "web", "ls")

    assert outcome.status == 1
    assert outcome.stderr == "error: no pod of service 'web' runs\n  hint: platform status says why\n"


RunWith = Callable[..., list[tuple[str, RunOptions, list[str]]]]


@pytest.fixture
def ran_with(deployed: Seam) -> RunWith:
    """The workloads, options and commands of the pods that `platform run` would make, of a service with an image."""
    made: list[tuple[str, RunOptions, list[str]]] = []

    @contextlib.contextmanager
    def running(_: Any, workload: Any, options: RunOptions, args: list[str], __: Any) -> Iterator[str]:
        made.append((workload["metadata"]["name"], options, args))
        yield "web-run-1"

    def of_image(image: str) -> list[tuple[str, RunOptions, list[str]]]:
        container = {"name": "web", "image": image, "command": ["app"]}
        spec = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
        head = labelled(WEB)["metadata"]
        ours = {**head, "labels": {**head["labels"], "app.kubernetes.io/managed-by": "composeplat"}}
        found = json.dumps({**WEB, "metadata": ours, "spec": spec}).encode()
        deployed.server.answers[f"{WORKLOADS}/deployments/web"] = Answer(found)
        return made

    deployed.patch.setattr("composeplat.dev.run_pods.RunPods.running", running)
    deployed.patch.setattr("composeplat.dev.container_commands.run_interruptible", lambda *_: 0)
    return of_image


def test_a_run_without_a_command(deployed: Seam, ran_with: RunWith) -> None:
    """The service is named, and not printed with the Secrets of its plan."""
    ran_with("a")
    outcome = deployed.platform("run", "--entrypoint", "", "web")

    assert outcome.status == 1
    assert outcome.stderr == "error: service 'web' has no command\n  hint: platform run web COMMAND\n"


def test_run(deployed: Seam, ran_with: RunWith) -> None:
    """The command runs in a pod of its own, which is deleted, and its status is the end."""
    ran: list[Command] = []

    def run(command: Command, *_: Any) -> int:
        ran.append(command)
        return 7

    made = ran_with("a")
    deployed.patch.setattr("composeplat.dev.container_commands.run_interruptible", run)
    outcome = deployed.platform(
        "run", "-e", "A=1", "-e", "B", "-e", "PASSWORD", "-u", "5:root", "web", "--", "ls", "-l"
    )

    assert (outcome.status, outcome.stdout, outcome.stderr) == (7, "", "")
    assert ran == [
        Command(namespace="team", pod="web-run-1", container="web", args=("app", "ls", "-l"), terminal=False)
    ]
    environment = {"A": "1", "PASSWORD": "hunter2"}
    options = RunOptions(command=("ls", "-l"), environment=environment, user=User(uid=5, gid=0))
    assert made == [("web", options, ["app", "ls", "-l"])]


@pytest.mark.parametrize(
    ("user", "numbers"),
    [("node", (1000, 1001)), ("node:staff", (1000, 50)), ("5:staff", (5, 50)), ("node:7", (1000, 7))],
)
def test_run_as_a_user_of_the_image(deployed: Seam, ran_with: RunWith, user: str, numbers: tuple[int, int]) -> None:
    """Names are looked up in the image, where it is deployed from, also the name of its own user."""
    with serving(Registry()) as registry:
        registry.push("app", user="node", layers=[BASE])
        made = ran_with(f"{registry.host}/app")
        deployed.platform("run", "-u", user, "web", "ls", PLATFORM_IMAGE_PORTS="true").assert_success()

    ((_, options, _),) = made
    assert (options.user.uid, options.user.gid) == numbers


@pytest.mark.parametrize(
    ("user", "shell", "message"),
    [
        ("nobody", {"PLATFORM_IMAGE_PORTS": "true"}, "has no user or group 'nobody'"),
        ("node:nobody", {"PLATFORM_IMAGE_PORTS": "true"}, "has no user or group 'node:nobody'"),
        ("node", {"PLATFORM_IMAGE_PORTS": "false"}, "the users of image '{}/app' can't be read from its registry"),
    ],
)
def test_run_as_a_user_that_is_not_found(
    deployed: Seam, ran_with: RunWith, user: str, shell: dict[str, str], message: str
) -> None:
    """No pod is made: it would run as another user."""
    with serving(Registry()) as registry:
        registry.push("app", layers=[BASE])
        made = ran_with(f"{registry.host}/app")
        outcome = deployed.platform("run", "-u", user, "web", "ls", **shell)

    assert (outcome.status, made) == (1, [])
    assert message.format(registry.host) in outcome.stderr
    assert "hint: give numbers, as in '1000' or '1000:1000'" in outcome.stderr


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (("web",), 1, "error: service 'web' is not deployed\n  hint: platform deploy\n"),
        (("-u", "a:b:c", "web"), 2, "Invalid value for --user: must be a user such as 1000, 1000:1000 or root, not"),
        (("-e", "1=2", "web"), 2, "Invalid value for --env: must be NAME=value, not '1'"),
        (
            ("--entrypoint", "sh -c 'a", "web"),
            2,
            "Invalid value for --entrypoint: must be a command that a shell can split (no closing quotation), not",
        ),
        (("api",), 1, "error: there is no service 'api'\n  hint: services are: db, own, web\n"),
    ],
)
def test_a_run_that_can_not_be(seam: Seam, args: tuple[str, ...], status: int, message: str) -> None:
    seam.server.answers[f"{WORKLOADS}/deployments/web"] = refusal(404, "no")
    outcome = seam.platform("run", *args)

    assert outcome.status == status
    assert message in outcome.stderr


# up and down ----------------------------------------------------------------------------------------------------------

DEVELOPED = """\
services:
  web: {image: example/web, command: serve --fast, ports: ["8080:80", "5353:53/udp"], volumes: [".:/app"]}
  db: {image: example/db}
"""
FAILED = Failure(service="web", cause=Cause(code=CauseCode.CRASH_LOOP, message="crashes", hint=""))
WITHOUT_REGISTRY = ("up", "--domain=example.com")
UP = (*WITHOUT_REGISTRY, "--registry=registry.example.com")


@dataclass
class Developing:
    """The development of services replaced: it ends with a status at once."""

    is_deployed: bool = True
    is_asleep: bool = False
    status: int = 0
    is_there: bool = True
    process: Process | None = (("/entry",), ("unused",))
    done: list[tuple[str, str, Any]] = field(default_factory=list)

    @property
    def options(self) -> UpOptions:
        (options,) = (what for act, _, what in self.done if act == "up")
        assert isinstance(options, UpOptions)
        return options


def _up(development: Development, made: Developing, options: UpOptions, on_event: Any) -> int:
    made.done.append(("up", development.service.name, options))
    on_event({"event": "forwarding", "listen": "localhost:8080", "port": 80})
    return made.status


def _down(development: Development, made: Developing, *, volumes: bool) -> bool:
    made.done.append(("down", development.service.name, volumes))
    return made.is_there


@pytest.fixture
def developing(seam: Seam) -> Developing:
    made = Developing()
    (seam.folder / "compose.yaml").write_text(DEVELOPED)
    seam.gives("deploy.deploy", Came())
    seam.patch.setattr(Development, "up", partialmethod(_up, made))
    seam.patch.setattr(Development, "down", partialmethod(_down, made))
    seam.patch.setattr(Development, "is_held_by_another", lambda _: False)
    seam.patch.setattr(Development, "is_deployed", lambda _: made.is_deployed)
    seam.patch.setattr(Development, "is_asleep", lambda _: made.is_asleep)
    seam.patch.setattr(Development, "image", lambda _: "example/web")
    seam.patch.setattr("composeplat.cli.service_image.read_process", lambda *_: made.process)
    seam.patch.setattr(
        "composeplat.cli.up.refresh_replicas", lambda _, service: made.done.append(("note", service, None))
    )
    return made


def test_up(seam: Seam, developing: Developing) -> None:
    """The one service with files of this machine is developed with its own command and ports, and stays so."""
    outcome = seam.platform(*UP)
    session = developing.options.session

    assert (outcome.status, outcome.stdout, seam.asked) == (0, "", [])
    assert outcome.stderr.splitlines()[-2:] == [
        "localhost:8080 is forwarded to port 80",
        "web is still under development; 'platform down web' ends that",
    ]
    assert [(act, name) for act, name, _ in developing.done] == [("up", "web")]
    assert (session.command, session.terminal, session.forwards, session.reverse) == (
        ("/entry", "serve", "--fast"), False, ((8080, 80),), (),
    )  # fmt: skip
    assert (developing.options.size, developing.options.timeout, developing.options.take_over) == ("5Gi", 300, False)


def test_options_of_up(seam: Seam, developing: Developing) -> None:
    """The options reach the session, and what is behind the dashes is its command."""
    seam.platform(
        *UP, "--forward=9090:90", "--forward=8080:80", "--reverse=7000", "--env=A=b", "--env=PASSWORD", "--env=UNSET",
        "--timeout=9", "--volume-size=1Gi", "--take-over", "--helper-image=own/helper", "web", "--", "sh", "-l",
    ).assert_success()  # fmt: skip
    options, session = developing.options, developing.options.session

    assert (session.command, session.environment) == (("sh", "-l"), {"A": "b", "PASSWORD": "hunter2"})
    assert (session.forwards, session.reverse) == (((8080, 80), (9090, 90)), ((7000, 7000),))
    assert (options.size, options.timeout, options.take_over, options.helper) == ("1Gi", 9, True, "own/helper")


@pytest.mark.parametrize(
    ("given", "size"), [("512m", "512Mi"), ("10g", "10Gi"), ("2.5Gi", "2560Mi"), ("1G", "1000000000")]
)
def test_the_size_of_the_sync_volume(seam: Seam, developing: Developing, given: str, size: str) -> None:
    """It has the units of a volume in the file; Kubernetes would make half a byte of ``512m``."""
    seam.platform(*UP, "--volume-size", given).assert_success()

    assert developing.options.size == size


@pytest.mark.parametrize("given", ["0", "10x", "-1Gi", ""])
def test_no_size(seam: Seam, developing: Developing, given: str) -> None:
    """It is a mistake of usage, before anything is built or replaced."""
    outcome = seam.platform(*UP, "--volume-size", given)

    assert (outcome.status, developing.done) == (2, [])
    assert "Invalid value for --volume-size: must be a size " in outcome.stderr


@pytest.mark.parametrize(
    ("process", "command"),
    [
        pytest.param("command: a, entrypoint: b", ("b", "a"), id="both"),
        pytest.param("command: a, entrypoint: []", ("a",), id="cleared"),
        pytest.param("entrypoint: b c", ("b", "c"), id="without-command"),
        pytest.param("working_dir: /", (), id="neither"),
    ],
)
def test_a_command_that_needs_no_image(
    seam: Seam, developing: Developing, process: str, command: tuple[str, ...]
) -> None:
    """The image is read only for a command without an entrypoint; without both, the session is a shell."""
    seam.patch.setattr(Development, "image", lambda _: pytest.fail("the image is read"))
    (seam.folder / "compose.yaml").write_text(DEVELOPED.replace("command: serve --fast", process))
    seam.platform(*UP).assert_success()

    assert developing.options.session.command == command


def test_a_registry_that_does_not_answer(seam: Seam, developing: Developing) -> None:
    """The command then runs without the entrypoint of the image, and a note says so."""
    developing.process = None
    outcome = seam.platform(*UP)

    assert developing.options.session.command == ("serve", "--fast")
    assert "the registry of image 'example/web' does not answer: it runs without entrypoint" in outcome.stderr


def test_the_status_of_up(seam: Seam, developing: Developing) -> None:
    """It ends as the session does."""
    developing.status = 7

    assert seam.platform(*UP).status == 7


@pytest.mark.parametrize(("args", "is_deployed"), [((), False), (("--deploy",), True)])
def test_up_deploys_first(seam: Seam, developing: Developing, args: tuple[str, ...], is_deployed: bool) -> None:  # noqa: FBT001 -- a case
    """What is not deployed is deployed, or what should be again; and it continues then."""
    developing.is_deployed = is_deployed
    seam.platform(*UP, *args, "--timeout=9").assert_success()

    assert [item[0] for item in seam.asked] == ["deploy.deploy"]
    assert seam.options.timeout == 9
    assert len(developing.done) == 1


def test_up_where_the_deploy_fails(seam: Seam, developing: Developing) -> None:
    """Nothing is developed then, and the status is the deploy's."""
    developing.is_deployed = False
    seam.gives("deploy.deploy", Came(failures=[FAILED]))

    assert seam.platform(*UP).status == 1
    assert developing.done == []


@pytest.mark.parametrize("status", [0, 7])
def test_up_that_gives_back(seam: Seam, developing: Developing, status: int) -> None:
    """With --down-on-exit the service is given back, however the session ends."""
    developing.status = status
    outcome = seam.platform(*UP, "--down-on-exit")

    assert outcome.status == status
    assert [(act, name) for act, name, _ in developing.done] == [("up", "web"), ("down", "web"), ("note", "web")]
    assert outcome.stderr.splitlines()[-1] == "web runs as it was deployed again"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_up_that_is_ended_while_its_container_starts(
    seam: Seam, developing: Developing, number: signal.Signals
) -> None:
    """The service is given back also then: it stayed without pods of its own, and without a session."""

    def start(*_: Any) -> None:
        assert callable(signal.getsignal(number))
        signal.raise_signal(number)

    seam.patch.setattr(Development, "up", start)
    outcome = seam.platform(*UP, "--down-on-exit")

    assert outcome.status == 128 + number
    assert [(act, name) for act, name, _ in developing.done] == [("down", "web"), ("note", "web")]


def test_up_that_someone_else_has(seam: Seam) -> None:
    """A session that is refused ends no other one: with --down-on-exit it gave the service back that another has."""
    (seam.folder / "compose.yaml").write_text(DEVELOPED.replace("command", "entrypoint"))
    holder = {"id": "theirs", "host": "their-machine", "user": "them", "seen": round(time.time())}
    head = labelled(deployment("web-platform-up"))
    head["metadata"]["labels"] |= {DEV_WORKLOAD_LABEL: "web", "app.kubernetes.io/managed-by": "composeplat"}
    head["metadata"]["annotations"] = {LEASE_ANNOTATION: json.dumps(holder)}
    seam.server.answers |= {
        f"{WORKLOADS}/deployments/web-platform-up": Answer(json.dumps(head).encode()),
        f"{WORKLOADS}/deployments/web": Answer(json.dumps(WEB).encode()),
    }
    seam.patch.setattr("composeplat.toolchain.setup.Toolchain.need", lambda *_: None)
    outcome = seam.platform(*UP, "--down-on-exit")

    assert outcome.status == 1
    assert outcome.stderr.endswith(
        "error: service 'web' is being developed already, by them on their-machine (process None)\n"
        "  hint: --take-over ends that session\n"
    )
    assert {asked.method for asked in seam.server.asked} == {"GET"}


@pytest.mark.parametrize(
    ("cluster", "messages"),
    [
        pytest.param(
            "a",
            [
                "error: a development container needs a registry, for the image with the agent",
                "  hint: give --registry or set PLATFORM_REGISTRY; or name an image with the agent: --helper-image",
            ],
            id="a-cluster-elsewhere",
        ),
        pytest.param(
            "kind-dev",
            [
                "error: the images of kind cluster 'dev' are loaded with 'kind', which is not on PATH",
                "  hint: install kind, or push to a registry: --registry",
            ],
            id="without-the-program",
        ),
    ],
)
def test_up_without_a_registry(seam: Seam, developing: Developing, cluster: str, messages: list[str]) -> None:
    """Where the agent can't get to the nodes, nothing is deployed or begun; a helper image is its own way."""
    developing.is_deployed = False
    path = seam.folder / "kubeconfig"
    path.write_text(path.read_text().replace('"name": "a"', f'"name": "{cluster}"').replace(
        '"cluster": "a"', f'"cluster": "{cluster}"'
    ))  # fmt: skip
    outcome = seam.platform(*WITHOUT_REGISTRY)

    assert (outcome.status, outcome.stderr.splitlines()[-2:]) == (4, messages)
    assert (developing.done, seam.asked) == ([], [])
    developing.is_deployed = True
    seam.platform(*WITHOUT_REGISTRY, "--helper-image=own/helper").assert_success()


def test_up_without_files(seam: Seam, developing: Developing) -> None:
    """A service without a host volume can't be developed, which is reported at its place."""
    outcome = seam.platform(*UP, "db")

    assert (outcome.status, developing.done) == (1, [])
    assert "services.db has no host volume, so there is nothing to develop it with [no-sync-path]" in outcome.stderr


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("up", "add one, such as '.:/app' under 'volumes'; platform deploy runs the services as they are"),
        ("down", "platform destroy deletes the environment"),
    ],
)
def test_nothing_to_develop(seam: Seam, developing: Developing, command: str, hint: str) -> None:
    """The hint names what the command of that name does for docker compose."""
    (seam.folder / "compose.yaml").write_text("services: {web: {image: x}}\n")
    outcome = seam.platform(command)

    assert (outcome.status, developing.done) == (1, [])
    assert outcome.stderr.endswith(
        f"error: no service has a host volume, whose files could be developed\n  hint: {hint}\n"
    )


def test_nothing_to_build(seam: Seam) -> None:
    """As for docker compose, a file without a build is no failure; a service that is named and has none is."""
    (seam.folder / "compose.yaml").write_text("services: {web: {image: x}}\n")
    whole, named = seam.platform("build"), seam.platform("build", "web")

    assert (whole.status, whole.stdout, whole.stderr) == (0, "", "no service has a 'build' section\n")
    assert data(seam.platform("build", "--json"))["images"] == {}
    assert (named.status, named.stderr) == (
        1,
        "error: service 'web' has nothing to build\n  hint: add 'build' to a service\n",
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--forward=0",), "--forward: must be ports such as 8080 or 8080:80, not '0'"),
        (("--forward=80:65536",), "--forward: must be ports such as 8080 or 8080:80, not '80:65536'"),
        (("--reverse=a:1",), "--reverse: must be ports such as 8080 or 8080:80, not 'a:1'"),
        (("--env==b",), "--env: must be NAME=VALUE, not '=b'"),
    ],
)
def test_up_with_a_wrong_option(seam: Seam, developing: Developing, args: tuple[str, ...], message: str) -> None:
    """An option that can't be read is reported, and nothing is begun."""
    outcome = seam.platform(*UP, *args)

    assert (outcome.status, developing.done) == (2, [])
    assert outcome.stderr.endswith(f"Error: Invalid value for {message}\n")


def test_down_in_a_sleeping_environment(seam: Seam, developing: Developing) -> None:
    """A service that sleeps has no pods after that, whatever was developed in its place."""
    developing.is_asleep = True

    assert seam.platform("down", "web").stderr.splitlines()[-1] == "web sleeps, as before: platform wake"


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("volumes", [True, False])
def test_down(seam: Seam, developing: Developing, *, is_there: bool, volumes: bool) -> None:
    """The service is given back, with its volumes where that is asked for; what was not developed is reported."""
    developing.is_there = is_there
    outcome = seam.platform("down", "web", *(("--volumes",) if volumes else ()))

    assert outcome.status == 0
    assert developing.done == [("down", "web", volumes), *([("note", "web", None)] if is_there else [])]
    assert outcome.stderr.splitlines()[-1] == (
        "web runs as it was deployed again"
        if is_there
        else "web is not under development; platform destroy deletes the environment"
    )


# the page -------------------------------------------------------------------------------------------------------------


def test_a_port_that_is_taken(seam: Seam) -> None:
    """A port of another process is a requirement that is missing, as it is for the local cluster."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = seam.platform("ui", "--no-browser", "--port", str(port))

    assert done.status == 4
    assert f"error: can't listen at 127.0.0.1:{port}: address already in use\n" in done.stderr
    assert done.stdout == ""
