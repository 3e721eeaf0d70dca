"""Measure the commands at few and at many services: no step may grow faster than its work.

Owns the definition of many services, the steps, and their figures: seconds, and of every process of the
run its processor time and its peak of memory, and the requests to the API server.
Ten services are alike in every size: one has a volume, one an endpoint and two wait for others, so the work grows as
the number of services does. A step is a process of its own, started as a user starts it.

The nodes are simulated (:mod:`deploy` starts the cluster): pods are ready at once and nothing is run.
Their logs are served here, as the kubelet of a simulated node has none.
kubectl applies and compares the same objects in the same run: it waits for nothing.
"""

from __future__ import annotations

import argparse
import http.server
import multiprocessing
import os
import re
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from deploy import NODES, PORTS, Failed, Testbed, prepare
from verdicts import conclude

from composeplat.cluster.api import Api
from composeplat.cluster.kinds import kind_path
from composeplat.local.layout import make_layout
from composeplat.local.simulated import SimulatedCluster

SIZES = (100, 1000)
STEPS = ("deploy", "preview", "no change", "preview with Pulumi", "one change", "status", "logs", "destroy")
PEER = {"deploy": "apply", "preview": "diff", "no change": "apply"}
"""The command of kubectl for a step. Its deletes are left out: those of 500 services take minutes (:mod:`deploy`)."""
GROUP = 10
"""So many services are alike in every size."""
LOG_LINES = 10
"""The lines of each service."""
WITHIN = 1.25
"""How many times as long as with few services a step may take for each of many."""
LEAST_S = 0.5
"""A step that is shorter with few services is mostly the start of a process, and its growth says nothing."""
_KUBELET_PORT = PORTS["api"] + 7
_MAX_RUN_S = 1800
_SAMPLED_EVERY_S = 0.1
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_COUNTER = re.compile(r'^apiserver_request_total\{.*?verb="(\w+)".*?\} (\S+)$', re.MULTILINE)


@dataclass(kw_only=True)
class Process:
    """The resources that a program used; several processes of a name are added up."""

    processor_s: float = 0.0
    peak_mb: float = 0.0


@dataclass(kw_only=True)
class Step:
    seconds: float
    processes: dict[str, Process]
    requests: dict[str, int]
    """By verb; those of the control plane and of the simulated nodes are among them."""

    @property
    def processor_s(self) -> float:
        return sum(process.processor_s for process in self.processes.values())


Table = dict[int, dict[str, Step]]
"""By size and step."""
Peers = dict[int, dict[str, float]]
"""The seconds of kubectl, by size and step."""


def definition(services: int, changed: str = "") -> str:
    """A Compose file; ``changed`` is the value of a variable of the last service."""
    lines = ["services:"]
    for number in range(services):
        lines += [f"  app{number}:", "    image: busybox:1.37", "    command: [sleep, '1000']"]
        match number % GROUP:
            case 0:
                lines += ["    expose: ['8080']", f"    volumes: ['data{number}:/data']", *_CHECKED]
            case 1:
                lines += ["    ports: ['80:8080']", *_CHECKED, *_depends(number - 1, "service_healthy")]
            case 2:
                lines += ["    ports: ['8080']", *_depends(number - 1, "service_started")]
            case _:
                lines += ["    ports: ['8080']"]
    if changed:
        lines += [f"    environment: {{CHANGED: '{changed}'}}"]
    volumes = [f"  data{number}: {{}}" for number in range(0, services, GROUP)]
    return "\n".join([*lines, "volumes:", *volumes]) + "\n"


_CHECKED = ["    healthcheck: {test: [CMD, 'true'], interval: 5s}"]


def _depends(number: int, condition: str) -> list[str]:
    return [f"    depends_on: {{app{number}: {{condition: {condition}}}}}"]


# the simulated nodes --------------------------------------------------------------------------------------------------


class LoggingCluster(SimulatedCluster):
    """A simulated cluster whose nodes say that their kubelet listens, and whose containers have an ID."""

    def _files(self, programs, token):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        files = super()._files(programs, token)
        stages = self.layout.etc / "stages.yaml"
        ports = f"daemonEndpoints: {{kubeletEndpoint: {{Port: {_KUBELET_PORT}}}}}\\n"
        text = files[stages].replace("addresses: [", f"{ports}addresses: [")
        files[stages] = text.replace("  ready: ", "  containerID: simulated://1\\n  ready: ")
        return files


class Kubelet(http.server.BaseHTTPRequestHandler):
    """Gives every container the same few lines."""

    protocol_version = "HTTP/1.1"
    # Else each answer waits for an acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        line = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.000000000Z} a line of a log\n"
        body = (line * LOG_LINES).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the library's name
        """Say nothing."""


def serve_logs(certificate: Path, key: Path) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", _KUBELET_PORT), Kubelet)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


# measuring ------------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Sampler:
    """The resources of the processes of a run, by samples of ``/proc``: the last moment of a process may be missing."""

    root: int
    _seen: dict[int, tuple[str, Process]] = field(default_factory=dict)
    _ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self._ended.wait(_SAMPLED_EVERY_S):
            self.sample()

    def stop(self) -> dict[str, Process]:
        self._ended.set()
        found: dict[str, Process] = {}
        for name, process in self._seen.values():
            known = found.setdefault(name, Process())
            known.processor_s += process.processor_s
            known.peak_mb += process.peak_mb
        return found

    def sample(self) -> None:
        parents = {
            pid: parent for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if (parent := _parent(pid))
        }
        family = {self.root, *self._seen} & parents.keys()
        while more := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= more
        for pid in family:
            if used := _used(pid):
                self._seen[pid] = used


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _parent(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[1]) if fields else 0


def _used(pid: int) -> tuple[str, Process] | None:
    fields = _stat(pid)
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        args = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return None
    peak = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    if not fields or not peak:
        return None
    name = Path(args[1] if "python" in Path(args[0]).name and len(args) > 1 else args[0]).name
    seconds = (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
    return name, Process(processor_s=seconds, peak_mb=int(peak[1]) / 1024)


def parse_requests(metrics: str) -> Counter[str]:
    """The requests to an API server since its start by verb, from its metrics."""
    found: Counter[str] = Counter()
    for verb, number in _COUNTER.findall(metrics):
        found[verb] += int(float(number))
    return found


def run_step(testbed: Testbed, name: str, args: Sequence[str], variables: Mapping[str, str]) -> Step:
    before = parse_requests(testbed.api.text("/metrics"))
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        process = subprocess.Popen(
            list(args), cwd=testbed.folder, env={**testbed.variables, **variables},
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
        sampler = Sampler(root=process.pid)
        thread = threading.Thread(target=sampler.run, daemon=True)
        thread.start()
        status = process.wait(timeout=_MAX_RUN_S)
        seconds = time.perf_counter() - began
        processes = sampler.stop()
        thread.join()
        output.seek(0)
        output_text = output.read().decode(errors="replace")
    if status:
        print(output_text, file=sys.stderr)
        raise Failed(f"{name} ended with status {status}: {' | '.join(output_text.strip().splitlines()[-4:])}")
    _check_output(name, output_text)
    after = parse_requests(testbed.api.text("/metrics"))
    requests = {verb: number - before[verb] for verb, number in sorted(after.items()) if number > before[verb]}
    return Step(seconds=seconds, processes=processes, requests=requests)


def _check_output(name: str, output_text: str) -> None:
    """A step that does nothing would be fast."""
    if name == "logs" and not output_text.count("a line of a log"):
        raise Failed("logs: no line")


def measure(testbed: Testbed, services: int) -> dict[str, Step]:
    namespace = f"bench-{services}"
    file = testbed.folder / f"scale-{services}.yaml"
    file.write_text(definition(services))
    changed = testbed.folder / f"scale-{services}-changed.yaml"
    changed.write_text(definition(services, "yes"))
    platform = str(Path(sys.executable).with_name("platform"))
    named = ["--name", "scale", "--namespace", namespace]
    rest = [*named, "--domain", "bench.example"]
    patient = ["--timeout", str(_MAX_RUN_S)]
    args = {
        "deploy": ["deploy", "--file", file.name, *rest, *patient],
        "preview": ["preview", "--expect-no-changes", "--file", file.name, *rest],
        "no change": ["deploy", "--file", file.name, *rest],
        "preview with Pulumi": ["preview", "--expect-no-changes", "--file", file.name, *rest],
        "one change": ["deploy", "--file", changed.name, *rest, *patient],
        "status": ["status", "--file", changed.name, *named],
        "logs": ["logs", "--file", changed.name, *named],
        "destroy": ["destroy", "--yes", "--file", changed.name, *named],
    }
    found: dict[str, Step] = {}
    for name in STEPS:
        variables = {"PLATFORM_SKIP_UNCHANGED": "false"} if "with Pulumi" in name else {}
        found[name] = run_step(testbed, name, [platform, *args[name]], variables)
        print(f"  {services} services: {name}: {_cell(found[name])}", file=sys.stderr, flush=True)
        _check_cluster(testbed.api, namespace, name, 0 if name == "destroy" else services)
    return found


def measure_kubectl(testbed: Testbed, services: int) -> dict[str, float]:
    """Time kubectl with the objects that `platform render` gives for the same file."""
    namespace = f"bench-kubectl-{services}"
    testbed.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    named = ["--name", "scale", "--namespace", namespace, "--domain", "bench.example"]
    platform = str(Path(sys.executable).with_name("platform"))
    render = [platform, "render", "--file", f"scale-{services}.yaml", *named]
    objects = subprocess.run(render, cwd=testbed.folder, env=testbed.variables, check=True, capture_output=True).stdout
    (testbed.folder / f"{namespace}.yaml").write_bytes(objects)
    program = [str(testbed.kube), "kubectl", "--kubeconfig", str(testbed.kubeconfig)]
    found = {}
    for name, command in PEER.items():
        args = [*program, command, "-f", f"{namespace}.yaml"]
        began = time.perf_counter()
        subprocess.run(args, cwd=testbed.folder, env=testbed.variables, check=True, capture_output=True)
        found[name] = time.perf_counter() - began
        print(f"  {services} services: kubectl {command}: {found[name]:.2f} s", file=sys.stderr, flush=True)
    _check_cluster(testbed.api, namespace, "kubectl apply", services)
    return found


def _check_cluster(api: Api, namespace: str, name: str, wanted: int) -> None:
    kinds = ("Deployment", "StatefulSet")
    found = sum(len(api.object_metadata(kind_path("apps/v1", kind, namespace))) for kind in kinds)
    if found != wanted:
        raise Failed(f"after {name} there are {found} workloads, not {wanted}")


# limits and output ----------------------------------------------------------------------------------------------------


def judge(table: Table) -> dict[str, bool | None]:
    """Compare the largest size with the smallest, for each service; None is a limit that these figures can't judge."""
    few, many = min(table), max(table)
    verdicts: dict[str, bool | None] = {}
    for name in STEPS:
        small, large = table[few].get(name), table[many].get(name)
        if few == many or small is None or large is None:
            verdicts[name] = None
            continue
        work = many / few * WITHIN
        verdicts[f"{name}: seconds"] = large.seconds <= max(small.seconds, LEAST_S) * work
        verdicts[f"{name}: processor time"] = large.processor_s <= max(small.processor_s, LEAST_S) * work
        verdicts[f"{name}: requests"] = sum(large.requests.values()) <= sum(small.requests.values()) * work
    return verdicts


def show(table: Table, peers: Peers) -> str:
    lines = ["| Services | Step | Time | kubectl | Processor time | Peak memory | Requests |", "|---" * 7 + "|"]
    for size, steps in sorted(table.items()):
        for name, step in steps.items():
            processes = sorted(step.processes.items())
            processor = ", ".join(f"{program} {used.processor_s:.1f} s" for program, used in processes)
            memory = ", ".join(f"{program} {used.peak_mb:.0f} MB" for program, used in processes)
            requests = ", ".join(f"{number} {verb}" for verb, number in step.requests.items())
            peer = f"{peers[size][name]:.1f} s" if name in peers[size] else "-"
            lines.append(f"| {size} | {name} | {step.seconds:.1f} s | {peer} | {processor} | {memory} | {requests} |")
    return "\n".join(lines)


def _cell(step: Step) -> str:
    used = ", ".join(
        f"{name} {process.processor_s:.1f} s {process.peak_mb:.0f} MB" for name, process in step.processes.items()
    )
    return f"{step.seconds:.2f} s; {used}; {step.requests}"


def main(args: Sequence[str] | None = None) -> int:
    """Return 0 if every limit that could be judged is met, else 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of services, from small to large")
    parser.add_argument("--json", metavar="FILE", help="write the figures here too")
    options = parser.parse_args(args)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        testbed, cluster = prepare(Path(name), lambda text: print(text, file=sys.stderr), _logging_cluster)
        kubelet = multiprocessing.Process(
            target=serve_logs, args=(cluster.layout.keys / "api.crt", cluster.layout.keys / "api.key"), daemon=True
        )
        kubelet.start()
        try:
            sizes = [int(size) for size in options.sizes.split(",")]
            table = {size: measure(testbed, size) for size in sizes}
            peers = {size: measure_kubectl(testbed, size) for size in sizes}
        finally:
            kubelet.terminate()
            cluster.delete()
    print(show(table, peers))
    print(f"load of the machine: {load:.1f} before, {os.getloadavg()[0]:.1f} after")
    rows = {size: {step: asdict(found) for step, found in steps.items()} for size, steps in table.items()}
    content = {"table": rows, "kubectl": peers, "load": [load, os.getloadavg()[0]]}
    return conclude(judge(table), options.json, content)


def _logging_cluster(environment: Mapping[str, str]) -> SimulatedCluster:
    cluster = LoggingCluster(make_layout(environment, simulated=True), environment, NODES)
    cluster.choose_ports(PORTS)
    return cluster


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except Failed as problem:
        raise SystemExit(str(problem)) from None
