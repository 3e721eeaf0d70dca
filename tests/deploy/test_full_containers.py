"""The keys of containers that full mode honors, by what a program in a real pod sees."""

from __future__ import annotations

import json
import re
import time

import pytest

from composeplat.cluster.kinds import kind_path
from composeplat.compose.pod_model import SAFE_SYSCTLS
from tests.deploy.conftest import SLEEP, Environment, until

SHELL = f"""
x-platform: {{full: true}}
services:
  plain: {{image: busybox, stop_grace_period: 0, command: {SLEEP}}}
  all:
    image: busybox
    stop_grace_period: 0
    command: {SLEEP}
    privileged: true
    read_only: true
    stdin_open: true
    tty: true
"""


DEVICES = "/dev"
SHARED_MEMORY = f"{DEVICES}/shm"


def sees(environment: Environment, service: str, script: str) -> str:
    (pod,) = environment.pods(service)
    return environment.exec(pod["metadata"]["name"], "sh", "-c", script).strip()


def test_rights_and_terminal(environment: Environment) -> None:
    """A privileged container has all capabilities, a read-only one refuses files, and `tty` gives a terminal."""
    environment.deploy(SHELL).expect()

    assert sees(environment, "plain", "touch /new && echo written") == "written"
    assert sees(environment, "all", "touch /new 2>/dev/null || echo refused") == "refused"
    capabilities = "grep CapEff /proc/1/status | cut -f2"
    plain, privileged = (int(sees(environment, name, capabilities), 16) for name in ("plain", "all"))
    assert privileged & ~plain != 0
    terminal = "readlink /proc/1/fd/0"
    assert sees(environment, "plain", terminal) == "/dev/null"
    assert sees(environment, "all", terminal).startswith("/dev/pts/")


#: One of each that every kubelet allows.
SYSCTLS = {
    "kernel.shm_rmid_forced": "1",
    "net.ipv4.ip_local_port_range": "2000 3000",
    "net.ipv4.ip_local_reserved_ports": "2500-2510",
    "net.ipv4.ip_unprivileged_port_start": "81",
    "net.ipv4.ping_group_range": "0 10",
    "net.ipv4.tcp_fin_timeout": "31",
    "net.ipv4.tcp_keepalive_intvl": "21",
    "net.ipv4.tcp_keepalive_probes": "4",
    "net.ipv4.tcp_keepalive_time": "610",
    "net.ipv4.tcp_rmem": "4096 65536 1048576",
    "net.ipv4.tcp_syncookies": "0",
    "net.ipv4.tcp_wmem": "4096 32768 1048576",
}
SEEN = f"""
x-platform: {{full: true}}
services:
  rights:
    image: busybox
    stop_grace_period: 0
    command: {SLEEP}
    group_add: [1234]
    sysctls: {json.dumps(SYSCTLS | {"net.core.somaxconn": "511"})}
    security_opt: [no-new-privileges, seccomp=unconfined]
    platform: linux
  memory:
    image: busybox
    stop_grace_period: 0
    command: {SLEEP}
    tmpfs: ["/fast:size=8m,mode=750,uid=12,gid=34", /scratch]
    shm_size: 16m
    cpu_quota: 50000
    cpu_shares: 2
    storage_opt: {{size: 64m}}
  names:
    image: busybox
    stop_grace_period: 0
    command: {SLEEP}
    hostname: front
    domainname: example.com
    dns_search: [corp.example.com]
    dns_opt: ["ndots:3"]
    extra_hosts: ["db.example.com:10.9.8.7", "six:[2001:db8::5]"]
  limits:
    image: busybox
    stop_grace_period: 0
    entrypoint: ["sh", "-c", "ulimit -Sn; ulimit -Hn; ulimit -c; exec sleep 1000"]
    ulimits: {{nofile: {{soft: 300, hard: 400}}, core: 1024, memlock: -1}}
  resolver:
    image: busybox
    stop_grace_period: 0
    command: {SLEEP}
    dns: 10.0.0.53
"""


def test_a_program_sees_its_options(environment: Environment) -> None:
    """Groups, kernel parameters, confinement, volumes in memory, limits, and names are those of the definition."""
    environment.deploy(SEEN).expect()

    assert "1234" in sees(environment, "rights", "id -G").split()
    assert SYSCTLS.keys() == SAFE_SYSCTLS
    read = "".join(f"cat /proc/sys/{name.replace('.', '/')};" for name in SYSCTLS)
    assert sees(environment, "rights", read).replace("\t", " ").splitlines() == list(SYSCTLS.values())
    assert sees(environment, "rights", "cat /proc/sys/net/core/somaxconn") == "511"
    limits = "grep -E '^(NoNewPrivs|Seccomp):' /proc/1/status"
    confined = dict(line.split(":\t") for line in sees(environment, "rights", limits).splitlines())
    assert confined == {"NoNewPrivs": "1", "Seccomp": "0"}

    mounts = dict(
        line.split(" ", 1) for line in sees(environment, "memory", "cut -d' ' -f2- /proc/mounts").splitlines()
    )
    assert [mounts[path].split()[0] for path in ("/fast", "/scratch", SHARED_MEMORY)] == ["tmpfs"] * 3
    assert ["size=8192k" in mounts["/fast"], "size=16384k" in mounts[SHARED_MEMORY]] == [True, True]
    assert sees(environment, "memory", "stat -c %a:%u:%g /fast /scratch").split() == ["750:12:34", "1777:0:0"]

    lines = sees(environment, "limits", "grep -E '^Max (open files|core)' /proc/1/limits").splitlines()
    assert [line.split()[-3:-1] for line in lines] == [["1024", "1024"], ["300", "400"]]
    assert sees(environment, "limits", "cat /proc/1/cmdline").startswith("sleep")

    assert sees(environment, "names", "hostname") == "front"
    hosts = sees(environment, "names", "cat /etc/hosts").split()
    assert [hosts[hosts.index(name) - 1] for name in ("front.example.com", "db.example.com", "six")] == [
        "127.0.0.1",
        "10.9.8.7",
        "2001:db8::5",
    ]
    resolver = sees(environment, "names", "cat /etc/resolv.conf")
    assert f"{environment.namespace}.svc.cluster.local" in resolver.split()
    assert ["corp.example.com" in resolver.split(), "ndots:3" in resolver.split()] == [True, True]
    assert sees(environment, "resolver", "cat /etc/resolv.conf") == "nameserver 10.0.0.53"


HOOKS = """
x-platform: {full: true}
volumes:
  notes:
services:
  hooks:
    image: busybox
    init: true
    pull_policy: missing
    stop_signal: SIGINT
    stop_grace_period: 20s
    volumes: ["notes:/notes"]
    tmpfs: /fast
    command: ["sh", "-c", "trap 'echo INT >>/notes/stopped; exit' INT; while :; do sleep 0.1; done"]
    pre_start:
      - command: ["sh", "-c", "echo $$WHO | tee /fast/prepared"]
        environment: {WHO: me}
    post_start:
      - command: ["sh", "-c", "pwd >/fast/started"]
        working_dir: /notes
    pre_stop:
      - command: ["sh", "-c", "echo flushed >>/notes/stopped"]
"""


def test_hooks_and_signals(environment: Environment) -> None:
    """Hooks run before and after the start and before the stop, the signal reaches the program, orphans are reaped."""
    environment.deploy(HOOKS).expect()

    assert sees(environment, "hooks", "cat /fast/prepared; cat /fast/started").split() == ["me", "/notes"]
    (line,) = environment.platform("logs", "hooks").expect().stdout.splitlines()
    assert re.fullmatch(r"hooks-\w+/pre-start-0 \| me", line)
    sees(environment, "hooks", "(sleep 0.1 &)")
    assert until(lambda: sees(environment, "hooks", "grep -l '^State:.Z' /proc/[0-9]*/status || echo none") == "none")

    (pod,) = environment.pods("hooks")
    began = time.monotonic()
    with environment.api() as api:
        api.delete(f"{kind_path('v1', 'Pod', environment.namespace)}/{pod['metadata']['name']}")
    until(lambda: [p for p in environment.pods("hooks") if p["metadata"]["uid"] != pod["metadata"]["uid"]])
    assert time.monotonic() - began < 15
    until(lambda: environment.pods("hooks")[0]["status"].get("phase") == "Running")
    assert sees(environment, "hooks", "cat /notes/stopped").split() == ["flushed", "INT"]


AMONG_OTHERS = """
x-platform: {full: true}
x-app: &app
  image: busybox
  pull_policy: missing
  stop_grace_period: 20s
  volumes: ["notes:/notes"]
volumes: {notes: }
services:
  node:
    <<: *app
    pid: host
    stop_signal: SIGUSR1
    command: ["sh", "-c", "trap 'echo node >>/notes/stopped; exit' USR1; while :; do sleep 0.1; done"]
  pod:
    <<: *app
    stop_signal: SIGINT
    command: ["sh", "-c", "trap 'echo pod >>/notes/stopped; exit' INT; while :; do sleep 0.1; done"]
  beside:
    <<: *app
    pid: service:pod
    network_mode: service:pod
    stop_signal: SIGUSR2
    command: ["sh", "-c", "trap 'echo beside >>/notes/stopped; exit' USR2; while :; do sleep 0.1; done"]
"""


def test_signals_among_the_processes_of_others(environment: Environment) -> None:
    """A program gets its signal where process 1 is the node's or the pod's, and these get none."""
    environment.deploy(AMONG_OTHERS).expect()
    before = sees(environment, "node", "cat /proc/1/stat | cut -d' ' -f1,22")
    environment.deploy(AMONG_OTHERS.replace("20s", "21s")).expect()

    def stopped() -> list[str]:
        return sorted(sees(environment, "node", "cat /notes/stopped || true").split())

    until(lambda: len(stopped()) > 2)
    assert stopped() == ["beside", "node", "pod"]
    assert sees(environment, "node", "cat /proc/1/stat | cut -d' ' -f1,22") == before


ONCE = f"""
x-platform: {{full: true}}
services:
  web:
    image: busybox
    scale: 2
    stop_grace_period: 0
    command: {SLEEP}
    volumes: ["notes:/notes"]
    pre_start:
      - command: ["sh", "-c", "echo $$WHO >>/notes/runs"]
        environment: {{WHO: me}}
volumes: {{notes: {{}}}}
"""


def test_a_hook_that_runs_once(environment: Environment) -> None:
    """Both replicas start after one run of it; it runs again if it changes, and they stay."""

    def runs() -> list[str]:
        first, _ = environment.pods("web")
        return environment.exec(first["metadata"]["name"], "cat", "/notes/runs").split()

    environment.deploy(ONCE).expect()
    assert runs() == ["me"]
    before = {pod["metadata"]["uid"] for pod in environment.pods("web")}
    environment.deploy(ONCE.replace("WHO: me", "WHO: you")).expect()
    assert runs() == ["me", "you"]
    assert {pod["metadata"]["uid"] for pod in environment.pods("web")} == before
    rows = environment.platform("status", "--json").expect().json["services"]
    assert {row["service"]: row["state"] for row in rows} == {"web-pre-start-0": "completed", "web": "ready"}


@pytest.mark.endurance
def test_a_hook_that_runs_once_of_a_built_service(environment: Environment) -> None:
    environment.write("FROM busybox:1.37\nRUN echo built >/built\n", "Dockerfile")
    environment.deploy(ONCE.replace("image: busybox", "build: .").replace("echo $$WHO", "cat /built")).expect()

    name = environment.pods("web")[0]["metadata"]["name"]
    assert environment.exec(name, "cat", "/notes/runs") == "built\n"


@pytest.mark.endurance
def test_a_hook_that_runs_once_of_a_global_service(environment: Environment) -> None:
    """The pod of each node starts after it, with a port of its node that another order of replacement can't share."""
    text = (
        ONCE.replace("scale: 2", "deploy: {mode: global, update_config: {order: start-first}}\n    network_mode: host")
        .replace('    volumes: ["notes:/notes"]\n', "")
        .replace("volumes: {notes: {}}\n", "")
        .replace("echo $$WHO >>/notes/runs", "sleep 1")
    )
    warned = environment.deploy(text).expect()
    assert "has no effect with network_mode: host: two pods of a node can't have the same ports" in warned.stderr
    (job,) = environment.objects("batch/v1", "Job")
    (pod,) = environment.pods("web")
    assert job["status"]["completionTime"] <= environment.started_at("web")

    environment.deploy(text.replace("stop_grace_period: 0", "stop_grace_period: 0\n    environment: {A: b}")).expect()
    (after,) = environment.pods("web")
    assert after["metadata"]["uid"] != pod["metadata"]["uid"]
