"""Commands that people know from ``docker compose``: images, port, and those that are not here."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import signal
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composeplat.cli.commands import MODULES
from composeplat.cli.compose_commands import INSTEAD, OF_OTHER_TOOLS, OPTIONS
from composeplat.dev.container_commands import READING_ALL, Command
from tests.cli.conftest import Seam, data
from tests.cluster.objects import Answer, deployment, given, pod, refusal, replica_set, running
from tests.conftest import ROOT, VARIABLES, Project
from tests.in_process import run_here
from tests.terminal import Terminal

WORKLOADS = "/apis/apps/v1/namespaces/team"
CORE = "/api/v1/namespaces/team"
DIGEST = f"sha256:{'ab12' * 16}"


def labelled(thing: dict[str, Any], environment: str = "demo") -> dict[str, Any]:
    labels = {
        "app.kubernetes.io/managed-by": "composeplat",
        "dev.platform.com/environment": environment,
        "dev.platform.com/service": "web",
    }
    return {**thing, "metadata": {**thing["metadata"], "labels": labels}}


@pytest.fixture
def deployed(seam: Seam) -> Seam:
    """An environment of which web alone is there, with a pod and an endpoint."""
    web = deployment("web")
    web["spec"]["template"] = {"spec": {"containers": [{"name": "web", "image": "example/web@sha256:00"}]}}
    found = pod(replica_set(web), state=running(), ready=True)
    found["status"]["containerStatuses"][0]["imageID"] = f"docker.io/example/web@{DIGEST}"
    service = {
        "metadata": {"name": "web", "namespace": "team"},
        "spec": {"ports": [{"port": 80, "protocol": "TCP"}, {"port": 8080, "protocol": "TCP"}]},
    }
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rules = [{"host": "web.example.com", "http": {"paths": [{"path": "/", "backend": backend}]}}]
    seam.server.answers |= {
        f"{WORKLOADS}/deployments": given(labelled(web)),
        f"{CORE}/pods": given(labelled(found)),
        f"{CORE}/services/web": Answer(json.dumps(labelled(service)).encode()),
        f"{CORE}/services/db": refusal(404, "no"),
        "/apis/networking.k8s.io/v1/namespaces/team/ingresses": given(
            {"metadata": {"name": "web"}, "spec": {"rules": rules}}
        ),
    }
    return seam


def test_images(deployed: Seam) -> None:
    """The digest is that of the running pod; a service that is built says so, and one that is not there too."""
    found = data(deployed.platform("images", "--json"))

    assert found["images"] == [
        {"service": "web", "image": "example/web", "digest": DIGEST, "source": "pulled"},
        {"service": "db", "image": "", "digest": "", "source": "pulled"},
        {"service": "own", "image": "", "digest": "", "source": "built"},
    ]
    assert [line.split() for line in deployed.platform("images", "web").stdout.splitlines()] == [
        ["SERVICE", "IMAGE", "DIGEST", "SOURCE"],
        ["web", "example/web", DIGEST[:19], "pulled"],
    ]


def test_no_images(seam: Seam) -> None:
    outcome = seam.platform("images").assert_success()

    assert (outcome.stdout, outcome.stderr) == ("", "demo is not deployed in namespace team: platform deploy\n")


def test_ports(deployed: Seam) -> None:
    """Each port has its address in the cluster, and the URLs that lead to it."""
    found = data(deployed.platform("port", "web", "--json"))

    assert (found["service"], found["ports"]) == (
        "web",
        [
            {"port": 80, "protocol": "tcp", "address": "web.team:80", "urls": ["https://web.example.com"]},
            {"port": 8080, "protocol": "tcp", "address": "web.team:8080", "urls": []},
        ],
    )
    assert [line.split() for line in deployed.platform("port", "web").stdout.splitlines()][1:] == [
        ["80/tcp", "web.team:80", "https://web.example.com"],
        ["8080/tcp", "web.team:8080", "-"],
    ]
    assert deployed.platform("port", "web", "80").stdout == "https://web.example.com\nweb.team:80\n"


def test_a_port_of_two_protocols(deployed: Seam) -> None:
    """Its address is printed once, as a script wants it."""
    ports = [{"port": 53, "protocol": protocol} for protocol in ("TCP", "UDP")]
    service = {"metadata": {"name": "web", "namespace": "team"}, "spec": {"ports": ports}}
    deployed.server.answers[f"{CORE}/services/web"] = Answer(json.dumps(labelled(service)).encode())

    assert deployed.platform("port", "web", "53").stdout == "web.team:53\n"


def test_ports_on_a_narrow_terminal(deployed: Seam) -> None:
    """An address that is cut would be useless."""
    variables = {"KUBECONFIG": str(deployed.folder / "kubeconfig"), "COMPOSEPLAT_DATA": str(deployed.folder / "data")}
    terminal = Terminal(
        [sys.executable, "-c", "from composeplat.cli.app import main; main()", "port", "web"],
        folder=deployed.folder,
        env={**VARIABLES, **variables},
        columns=30,
    )

    assert "https://web.example.com\r\n" in terminal.rest()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("web", "81"), "error: service 'web' has no port 81\n  hint: its ports are: 80, 8080\n"),
        (("db",), "error: service 'db' is not deployed\n  hint: platform deploy\n"),
    ],
)
def test_a_port_that_is_not_there(deployed: Seam, args: tuple[str, ...], message: str) -> None:
    outcome = deployed.platform("port", *args)

    assert (outcome.status, outcome.stdout, outcome.stderr) == (1, "", message)


def test_a_port_of_another_environment(deployed: Seam) -> None:
    """Its cluster service may have the same name: this environment has none then."""
    service = {"metadata": {"name": "web", "namespace": "team"}, "spec": {"ports": [{"port": 80}]}}
    deployed.server.answers[f"{CORE}/services/web"] = Answer(json.dumps(labelled(service, "other")).encode())

    outcome = deployed.platform("port", "web")

    assert (outcome.status, outcome.stderr) == (1, "error: service 'web' is not deployed\n  hint: platform deploy\n")


def test_a_published_port(deployed: Seam) -> None:
    """A published port leads to the container port of the endpoint, and so has its URL."""
    ports = [{"port": 80, "targetPort": 80}, {"port": 8080, "targetPort": 80}, {"port": 9000, "targetPort": 9000}]
    service = {"metadata": {"name": "web", "namespace": "team"}, "spec": {"ports": ports}}
    deployed.server.answers[f"{CORE}/services/web"] = Answer(json.dumps(labelled(service)).encode())

    assert deployed.platform("port", "web", "8080").stdout == "https://web.example.com\nweb.team:8080\n"
    assert deployed.platform("port", "web", "9000").stdout == "web.team:9000\n"


def test_a_service_without_ports(deployed: Seam) -> None:
    """Its name leads to its pods, on every port that they listen on."""
    service = {"metadata": {"name": "web", "namespace": "team"}, "spec": {"clusterIP": "None"}}
    deployed.server.answers[f"{CORE}/services/web"] = Answer(json.dumps(labelled(service)).encode())
    listed, chosen = deployed.platform("port", "web"), deployed.platform("port", "web", "5432")

    reached = "is reached in the cluster, if its pods listen there; list it under 'expose'\n"
    assert (listed.status, listed.stdout) == (0, "")
    assert listed.stderr == f"service 'web' lists no ports: web.team:PORT {reached}"
    assert (chosen.status, chosen.stdout) == (1, "")
    assert chosen.stderr == f"error: service 'web' has no port 5432\n  hint: web.team:5432 {reached}"
    assert data(deployed.platform("port", "web", "--json"))["ports"] == []


METRICS = "/apis/metrics.k8s.io/v1beta1/namespaces/team/pods"


def usage(name: str, service: str, *containers: tuple[str, str]) -> dict[str, Any]:
    labels = {"dev.platform.com/service": service}
    used = [{"usage": {"cpu": cpu, "memory": memory}} for cpu, memory in containers]
    return {"metadata": {"name": name, "labels": labels}, "containers": used}


def test_top(deployed: Seam) -> None:
    """Each pod of the environment has the sum of its containers; others are not shown."""
    deployed.server.answers[METRICS] = given(
        usage("web-2", "web", ("1500000n", "3Mi"), ("250m", "512Ki")),
        usage("web-1", "web", ("0", "bad")),
        usage("x", "", ("1", "1")),
    )
    found = data(deployed.platform("top", "--json"))

    assert found["pods"] == [
        {"service": "web", "pod": "web-1", "cpu": 0, "memory": 0},
        {"service": "web", "pod": "web-2", "cpu": 252, "memory": 3670016},
    ]
    assert deployed.platform("top", "web").stdout.splitlines()[2].split() == ["web", "web-2", "252m", "4Mi"]


def test_no_metrics_yet(deployed: Seam) -> None:
    """Pods without figures are not pods that are not there."""
    deployed.server.answers[METRICS] = given()

    assert deployed.platform("top").stderr == (
        "no metrics of these pods yet: a pod has its first some 20 s after its start\n"
    )
    assert deployed.platform("top", "db").stderr == "no pods: platform status says why\n"


def test_a_cluster_without_metrics(deployed: Seam) -> None:
    deployed.server.answers[METRICS] = refusal(404, "no")
    outcome = deployed.platform("top")

    assert outcome.status == 4
    assert outcome.stderr.splitlines() == [
        "error: the cluster has no metrics of pods",
        "  hint: install metrics-server; what pods may use is in platform render",
    ]


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (("a", "b"), 2, "one of them must be SERVICE:PATH"),
        (("web:/a", "db:/b"), 2, "one of them must be a path on this machine; copy to it first, then from it"),
        (("./web:a", "b"), 2, "one of them must be SERVICE:PATH"),
        (("no-such", "web:/b"), 1, "error: there is no 'no-such'\n"),
        (("api:/a", "b"), 1, "error: there is no service 'api'"),
        (("db:/a", "b"), 1, "error: no pod of service 'db' runs\n"),
    ],
)
def test_a_copy_that_can_not_be(deployed: Seam, args: tuple[str, str], status: int, message: str) -> None:
    outcome = deployed.platform("cp", *args)

    assert outcome.status == status
    assert message in outcome.stderr


def test_a_copy_as_an_archive(deployed: Seam) -> None:
    """Its streams are those of the command, and so is its status; a shell reads the part that ``tar`` leaves."""
    ran: list[tuple[str, ...]] = []

    def run(command: Command, *_: Any) -> int:
        ran.append(command.args)
        return 3

    deployed.patch.setattr("composeplat.dev.container_commands.run_command", run)
    assert deployed.platform("cp", "web:etc/x", "-").status == 3
    for shell in (0, 127):
        deployed.patch.setattr("composeplat.cli.cp._status", lambda *_, status=shell: status)
        assert deployed.platform("cp", "-", "web:/etc").status == 3
    unpacking = ("tar", "-xf", "-", "-C", "/etc")
    assert ran == [("tar", "-cf", "-", "-C", "/etc", "./x"), (*READING_ALL, *unpacking), unpacking]


def test_an_archive_that_is_not_read_to_its_end(deployed: Seam) -> None:
    """A closed pipe is no failure here either, where the connection ends as a program does that writes to one."""
    deployed.patch.setattr("composeplat.dev.container_commands.run_command", lambda *_: 141)

    assert deployed.platform("cp", "web:etc/x", "-").status == 0


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("web:/", "\n  hint: copy folders below '/': files in /proc and /sys are not as large as they say"),
        ("web:/srv/.", ""),
    ],
)
def test_a_copy_whose_tar_fails_half_way(deployed: Seam, source: str, hint: str) -> None:
    """The error has its message, as busybox ends at a file that is smaller than its size, such as those of ``/sys``."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in ("./a", "./b"):
            member = tarfile.TarInfo(name)
            member.size = 4096
            tar.addfile(member, io.BytesIO(bytes(4096)))

    @contextlib.contextmanager
    def open_command(*_: Any) -> Iterator[Any]:
        output = io.BytesIO(archive.getvalue()[:6000])
        yield SimpleNamespace(output=output, end=lambda: (1, "tar: removing leading '/'\ntar: short read"))

    deployed.patch.setattr("composeplat.dev.container_commands.open_command", open_command)
    outcome = deployed.platform("cp", source, ".")
    reason = "error: the archive that the container sent is broken: unexpected end of data; tar: short read"
    assert (outcome.status, outcome.stderr) == (1, f"{reason}{hint}\n")


def test_a_copy_that_is_refused_half_way(deployed: Seam) -> None:
    """The end of a command that sends anything is not waited for: it may never come."""
    member, header = tarfile.TarInfo("./a"), tarfile.TarInfo("./b")
    header.type, header.size = tarfile.XHDTYPE, 2 * 1024 * 1024

    @contextlib.contextmanager
    def open_command(*_: Any) -> Iterator[Any]:
        output = io.BytesIO(member.tobuf() + header.tobuf(tarfile.GNU_FORMAT))
        yield SimpleNamespace(output=output, end=lambda: pytest.fail("waits for the end"))

    deployed.patch.setattr("composeplat.dev.container_commands.open_command", open_command)
    outcome = deployed.platform("cp", "web:/srv/.", ".")
    reason = "error: the archive that the container sent is broken: a header is too large\n"
    assert (outcome.status, outcome.stderr) == (1, reason)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_copy_that_is_ended(deployed: Seam, number: signal.Signals) -> None:
    """As after a Ctrl-C, no part of a file is left here, and no folder for temporary files."""
    member = tarfile.TarInfo("./x")
    member.size = 1024 * 1024

    class Output(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() >= member.size // 2:
                assert any(path.name.startswith(".platform-") for path in deployed.folder.iterdir())
                assert callable(signal.getsignal(number))
                signal.raise_signal(number)
            return super().read(size)

    @contextlib.contextmanager
    def open_command(*_: Any) -> Iterator[Any]:
        yield SimpleNamespace(output=Output(member.tobuf() + bytes(member.size)))

    deployed.patch.setattr("composeplat.dev.container_commands.open_command", open_command)
    before = set(deployed.folder.iterdir())
    assert deployed.platform("cp", "web:etc/x", ".").status == 128 + number
    assert {path for path in deployed.folder.iterdir() if path.name != "data"} == before - {deployed.folder / "data"}


@pytest.mark.parametrize("command", [*INSTEAD, *OF_OTHER_TOOLS])
def test_a_command_of_another_tool(command: str, tmp_path: Path) -> None:
    """It is named with the command to type, which exists."""
    outcome = run_here(command, "--anything", "web", folder=tmp_path)

    instead, text = {**INSTEAD, **OF_OTHER_TOOLS}[command]
    assert outcome.status == 2
    assert outcome.stderr.endswith(f"Error: there is no 'platform {command}'\n  hint: {instead}: {text}\n")
    assert command not in MODULES
    assert shlex.split(instead)[1] in {*MODULES, "--help", "--version"}


def test_another_command_has_a_suggestion(tmp_path: Path) -> None:
    """As before: a mistyped name is compared with those here."""
    assert "Did you mean 'deploy'?" in run_here("deplyo", folder=tmp_path).stderr


@pytest.mark.parametrize(("command", "option"), OPTIONS)
def test_an_option_of_docker_compose(command: str, option: str, tmp_path: Path) -> None:
    """It is named with the command to type; behind ``--`` it belongs to another program."""
    outcome = run_here(command, option, folder=tmp_path)

    theirs = {"deploy": "up", "destroy": "down"}.get(command, command)
    hint = f"  hint: for 'docker compose {theirs} {option}' type {OPTIONS[command, option]}\n"
    assert outcome.status == 2
    assert outcome.stderr.endswith(f"Error: No such option: {option}\n{hint}")
    assert shlex.split(OPTIONS[command, option])[1].strip(",;") in MODULES
    assert "docker compose" not in run_here("up", "web", "--", "sh", option, folder=tmp_path).stderr


@pytest.mark.parametrize(
    ("args", "option", "after"),
    [
        pytest.param(("-f", "compose.yaml", "up", "-d"), "-f", "-f FILE", id="file"),
        pytest.param(("--file=compose.yaml", "ps"), "--file", "--file FILE", id="long-with-its-value"),
        pytest.param(("-p", "shop", "logs"), "-p", "--name NAME", id="project-name"),
        pytest.param(("--context", "prod", "status"), "--context", "--context NAME", id="as-of-kubectl"),
    ],
)
def test_an_option_before_the_command(args: tuple[str, ...], option: str, after: str, tmp_path: Path) -> None:
    """Options of docker compose and kubectl that come before a command are written after it."""
    outcome = run_here(*args, folder=tmp_path)

    hint = f"  hint: options come after the command: platform COMMAND {after}\n"
    assert outcome.status == 2
    assert outcome.stderr.endswith(f"Error: No such option: {option}\n{hint}")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("deploy", "--timeout", "5m"), "'--timeout': '5m' is not a number of seconds."),
        (("rollback", "last"), "'[REVISION]': 'last' is not a whole number."),
        (("cluster", "logs", "--tail", "all"), "'--tail': 'all' is not a whole number."),
    ],
)
def test_a_number_that_is_none(args: tuple[str, ...], message: str, tmp_path: Path) -> None:
    """The message says what to write, and not the name of a type."""
    outcome = run_here(*args, folder=tmp_path)

    assert outcome.status == 2
    assert outcome.stderr.endswith(f"Error: Invalid value for {message}\n")


def test_an_option_of_the_command_of_exec(project: Project) -> None:
    """What follows the service belongs to its command, also where docker compose has such an option."""
    folder = project("services:\n  web: {image: x}\n").path
    outcome = run_here("exec", "web", "grep", "-e", "x", folder=folder, KUBECONFIG="/nowhere/config")

    assert outcome.stderr.startswith("error: no cluster is configured")


def test_an_option_of_ours_is_none_of_docker_compose() -> None:
    """A row for an option that the command has would take it away."""
    grammar = json.loads((ROOT / "composeplat" / "cli" / "grammar.json").read_text())
    ours = {
        (path.removeprefix("platform "), name)
        for path, command in grammar.items()
        for option in command["options"]
        for name in option["names"]
    }
    assert not ours & set(OPTIONS)
