"""Measure the cost of commands that follow a cluster in which nothing happens, beside those of kubectl.

Owns the commands, the bytes that each sends to the API server and its share of a core, and the limits.
A real local cluster; all run at once, each with a proxy of its own, which counts. The measurement begins once all send
nothing for a while: before, they list objects and start their watches.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from failures import PORTS, Failed, on_a_cluster
from proxy import Proxy
from verdicts import conclude

from composeplat.cluster.api import Api
from composeplat.cluster.kinds import kind_path
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import DEVELOPMENT_TOOLS, KUBE

MEASURED_S = 40.0
QUIET_S = 4.0
_WAIT_S = 120.0
_CLAIM_BYTES = 4000
"""What a claim, or kubectl's pings, may send in that time."""
MOST_OF_A_CORE = 0.01
NAMESPACE = "bench"
NAMED = ("--name", "bench", "--namespace", NAMESPACE)
PLATFORM = str(Path(sys.executable).with_name("platform"))
COMPOSE = """\
services:
  app:
    image: busybox:1.37
    command: sh -c 'echo a line; sleep 100000'
    stop_grace_period: 0
  developed:
    image: busybox:1.37
    command: sleep 100000
    stop_grace_period: 0
    volumes: ['./src:/app']
"""


@dataclass(frozen=True)
class Row:
    share: float
    """Of one core."""
    bytes_per_s: float
    """Sent to the API server, as TLS has them."""


@dataclass(frozen=True)
class Case:
    name: str
    command: Sequence[str]
    peer: bool = False
    sends_nothing: bool = False
    """`up` renews its claim on the service, by which another one knows that it is there; kubectl sends pings."""


def find_cases(kubectl: Sequence[str], pod: str) -> list[Case]:
    up = [PLATFORM, "up", *NAMED, "developed", "--", "sleep", "100000"]
    return [
        # The others see the pods that it replaces.
        Case("platform up", up),
        Case("kubectl exec", [*kubectl, "exec", pod, "--", "sleep", "100000"], peer=True),
        Case("platform status --watch", [PLATFORM, "status", "--watch", *NAMED], sends_nothing=True),
        Case("kubectl get pods --watch", [*kubectl, "get", "pods", "--watch"], peer=True),
        Case("platform logs --follow", [PLATFORM, "logs", "--follow", *NAMED], sends_nothing=True),
        Case("kubectl logs --follow", [*kubectl, "logs", "--follow", pod], peer=True),
    ]


@dataclass
class Run:
    """A command that runs, with a proxy of its own."""

    case: Case
    process: subprocess.Popen[bytes]
    proxy: Proxy
    output: IO[bytes]

    def wait_for_begin(self) -> None:
        """Wait until it sends nothing for a while, or next to nothing if it always sends something."""
        deadline = time.monotonic() + _WAIT_S
        most = 0 if self.case.sends_nothing else _CLAIM_BYTES
        while time.monotonic() < deadline and self.process.poll() is None:
            before = self.proxy.sent
            time.sleep(QUIET_S)
            if before and self.proxy.sent - before <= most:
                return
        self.output.seek(0)
        shown = self.output.read().decode(errors="replace")[-500:]
        raise Failed(f"{self.case.name}: status {self.process.poll()}, or still sends after {_WAIT_S:.0f} s: {shown}")

    @property
    def used(self) -> tuple[float, int]:
        """The seconds of processor and the bytes so far."""
        return used_s(self.process.pid), self.proxy.sent

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(_WAIT_S)
        self.proxy.close()
        self.output.close()


def start(case: Case, folder: Path, variables: Mapping[str, str]) -> Run:
    proxy = Proxy(PORTS["api"])
    config = proxy.write_kubeconfig(folder, variables)
    registry = f"localhost:{PORTS['registry']}"
    output = tempfile.TemporaryFile()  # noqa: SIM115 -- the run closes it
    process = subprocess.Popen(
        list(case.command), cwd=folder, env={**variables, "KUBECONFIG": str(config), "PLATFORM_REGISTRY": registry},
        stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
    )  # fmt: skip
    return Run(case, process, proxy, output)


def measure(cases: Sequence[Case], folder: Path, variables: Mapping[str, str]) -> dict[str, Row]:
    """Run all commands, and look at them while nothing happens."""
    with contextlib.ExitStack() as ends:
        runs = []
        for case in cases:
            runs.append(start(case, folder, variables))
            ends.callback(runs[-1].end)
            runs[-1].wait_for_begin()
        # Those that have begun saw the begin of the later ones.
        for run in runs:
            run.wait_for_begin()
        before = [run.used for run in runs]
        time.sleep(MEASURED_S)
        after = [run.used for run in runs]
    return {
        run.case.name: Row((used - used_before) / MEASURED_S, (sent - sent_before) / MEASURED_S)
        for run, (used, sent), (used_before, sent_before) in zip(runs, after, before, strict=True)
    }


def used_s(session: int) -> float:
    """The seconds of processor that the processes of a session have used."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12]) if int(fields[3]) == session else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def judge(cases: Sequence[Case], rows: Mapping[str, Row]) -> dict[str, bool]:
    ours = [case for case in cases if not case.peer]
    verdicts = {f"{case.name}: less than 1 % of a core": rows[case.name].share < MOST_OF_A_CORE for case in ours}
    silent = [case for case in cases if case.sends_nothing]
    return verdicts | {f"{case.name}: sends nothing": rows[case.name].bytes_per_s == 0 for case in silent}


def show(rows: Mapping[str, Row]) -> str:
    lines = [f"| {name} | {row.share * 100:.2f} % | {row.bytes_per_s:.0f} |" for name, row in rows.items()]
    return "\n".join(["| Command | Share of a core | Bytes a second to the API server |", "|---|---|---|", *lines])


def main(args: Sequence[str] | None = None) -> int:
    """Return 0 if the limits are met, else 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", metavar="FILE", help="write the figures here too")
    options = parser.parse_args(args)
    toolchain = Toolchain(os.environ)
    toolchain.need_all(DEVELOPMENT_TOOLS)
    cases: list[Case] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def use(api: Api, variables: dict[str, str]) -> dict[str, Row]:
            (folder / "src").mkdir()
            (folder / "compose.yaml").write_text(COMPOSE)
            deploy = [PLATFORM, "deploy", *NAMED]
            subprocess.run(deploy, cwd=folder, env=variables, capture_output=True, check=True)
            names = [str(pod["metadata"]["name"]) for pod in api.items(kind_path("v1", "Pod", NAMESPACE))]
            (pod,) = (name for name in names if name.startswith("app-"))
            cases.extend(find_cases([str(toolchain.need(KUBE).path), "kubectl", "-n", NAMESPACE], pod))
            return measure(cases, folder, variables)

        rows = on_a_cluster(folder, use)
    print(show(rows))
    return conclude(judge(cases, rows), options.json, {"rows": {name: asdict(row) for name, row in rows.items()}})


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except Failed as problem:
        raise SystemExit(str(problem)) from None
