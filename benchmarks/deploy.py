"""Measure deploys on a simulated cluster, beside a Pulumi program written by hand and beside kubectl.

Owns the services, the steps that are timed, and the limits of the figures.
Every service becomes a Deployment and a Service; all tools get the same objects, each in a namespace of its own.
A step is a process of its own, started as a user starts it, and the tools take turns, so that other work of the
machine slows down all of them.
After each step the objects in the cluster are checked: a tool that fails early would win.

The waits differ, to our cost: `platform` waits until all is ready, and at the end until all pods have gone; the others
only send their requests.
The hand-written program has Pulumi's annotation to skip waits: with simulated pods, which are ready at once, Pulumi's
own wait misses the moment now and then, and fails after ten minutes.
A few services it deploys once more without that annotation, for the limit of a small first deploy: such a failure ends
the run.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from verdicts import conclude

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.local.cluster import LocalCluster
from composeplat.local.cluster_kind import local_cluster
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import DEPLOY_TOOLS, KUBE, PULUMI

HERE = Path(__file__).parent
HOST = HERE.parent / "tests" / "plain" / "language_host.py"
SIZES = (10, 100, 500)
RUNS = 3
SINGLE_RUN_FROM = 500
"""Services from which there is a single round: kubectl takes minutes for its steps."""
WAITING_UPTO = 10
"""The most services that the hand-written program deploys with its waits."""
WAITING = "pulumi that waits"
STEPS = (
    "deploy", "preview", "again", "preview a change", "change", "preview with Pulumi", "again with Pulumi", "destroy",
)  # fmt: skip
"""A change is that of one service.
Those with Pulumi are ours alone: without a change a run needs none, and this shows what it saves. They come last, as
they leave no record for a run without Pulumi, or with a part."""
NODES = 20
PORTS = {"api": 25443, "registry": 25500}

COMPARED_AT = 100
"""The number of services at which limits are set."""
OVER_PULUMI = {"preview": 1.2, "again": 1.2, "deploy": 1.0, "destroy": 1.0}
"""How many times as long as the hand-written program each step may take."""
OVER_KUBECTL = {"deploy": 2.0, "destroy": 2.0}
"""How many times as long as kubectl is aimed at."""
WITHOUT_CHANGE_S = {10: 0.6, 100: 0.9, 500: 2.5}
"""The seconds that a preview or a deploy without a change may take, by the number of services."""
CHANGE_S = {"preview a change": 1.5, "change": 3.0}
"""The seconds that a change of one service may take; its deploy until the pods are ready."""
FIRST_DEPLOY = {10: WAITING, 100: "kubectl", 500: "kubectl"}
"""By the number of services, the tool that a first deploy must not be slower than."""
CHANGED = "2000"
"""The last argument of the changed service's command."""
LINEAR_WITHIN = 1.1
_MAX_RUN_S = 900
_CALM_WITHIN_S = 60


class Failed(Exception):
    """A tool did not do its step."""


@dataclass(kw_only=True)
class Testbed:
    """The cluster that all deploy to, and where the programs are."""

    folder: Path
    kubeconfig: Path
    api: Api
    variables: dict[str, str]
    pulumi: Path
    kube: Path

    @property
    def hand_written(self) -> Path:
        return self.folder / "handwritten"


@dataclass(kw_only=True)
class Tool:
    """One way to deploy, in a namespace of its own."""

    name: str
    namespace: str
    commands: Mapping[str, Sequence[str]]
    folder: Path
    variables: Mapping[str, str]
    statuses: Mapping[str, int] = field(default_factory=dict)
    """Of commands that report success with another status than 0."""

    def time(self, step: str) -> float:
        with tempfile.TemporaryFile() as output:
            began = time.perf_counter()
            done = subprocess.run(
                list(self.commands[step]), cwd=self.folder, env=dict(self.variables), check=False,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=_MAX_RUN_S,
            )  # fmt: skip
            seconds = time.perf_counter() - began
            if done.returncode != self.statuses.get(step, 0):
                output.seek(0)
                output_text = output.read().decode(errors="replace").strip().splitlines()
                raise Failed(f"{self.name}: {step} ended with status {done.returncode}: {' | '.join(output_text[-4:])}")
        return seconds


@dataclass(frozen=True)
class Figures:
    """Seconds of one step."""

    median: float
    least: float
    most: float


Table = dict[int, dict[str, dict[str, Figures]]]
"""By size, tool and step."""


def definition(services: int, changed: int | None = None) -> str:
    lines = ["services:"]
    for number in range(services):
        lines += [
            f"  app{number}:",
            "    image: busybox:1.37",
            f"    command: {['sleep', CHANGED if number == changed else '1000']}",
            "    ports: ['8080']",
        ]
    return "\n".join(lines) + "\n"


# the tools ------------------------------------------------------------------------------------------------------------


def make_tools(testbed: Testbed, services: int, upto: int) -> list[Tool]:
    file = testbed.folder / f"compose-{services}.yaml"
    file.write_text(definition(services))
    changed = testbed.folder / f"changed-{services}.yaml"
    changed.write_text(definition(services, services // 2))
    tools = [our_tool(testbed, file, changed)]
    if services <= upto:
        tools.append(hand_written(testbed, file, changed))
    if services <= WAITING_UPTO:
        tools.append(waiting(testbed, file))
    tools.append(kubectl(testbed, file, changed))
    return tools


def our_tool(testbed: Testbed, file: Path, changed: Path) -> Tool:
    platform = str(Path(sys.executable).with_name("platform"))
    namespace = "bench-platform"
    rest = ["-f", file.name, "--name", "bench", "--namespace", namespace]
    other = ["-f", changed.name, *rest[2:]]
    with_pulumi = ["env", "PLATFORM_SKIP_UNCHANGED=false", platform]
    return Tool(
        name="platform", namespace=namespace, folder=file.parent, variables=testbed.variables,
        commands={
            "deploy": [platform, "deploy", *rest],
            "preview": [platform, "preview", "--expect-no-changes", *rest],
            "again": [platform, "deploy", *rest],
            "preview a change": [platform, "preview", *other],
            "change": [platform, "deploy", *other],
            "preview with Pulumi": [*with_pulumi, "preview", "--expect-no-changes", *other],
            "again with Pulumi": [*with_pulumi, "deploy", *other],
            "destroy": [platform, "destroy", "--yes", *rest],
        },
    )  # fmt: skip


def hand_written(testbed: Testbed, file: Path, changed: Path) -> Tool:
    namespace = "bench-pulumi"
    variables = {**testbed.variables, "MANIFESTS": str(manifests(testbed, file, namespace))}
    with_change = ["env", f"MANIFESTS={manifests(testbed, changed, namespace)}"]
    program, stack = make_stack(testbed, namespace, variables)
    return Tool(
        name="pulumi", namespace=namespace, folder=testbed.hand_written, variables=variables,
        commands={
            "deploy": [*program, "up", "--yes", "--skip-preview", *stack],
            "preview": [*program, "preview", "--expect-no-changes", *stack],
            "again": [*program, "up", "--yes", "--skip-preview", *stack],
            "preview a change": [*with_change, *program, "preview", *stack],
            "change": [*with_change, *program, "up", "--yes", "--skip-preview", *stack],
            "destroy": [*program, "destroy", "--yes", "--skip-preview", *stack],
        },
    )  # fmt: skip


def waiting(testbed: Testbed, file: Path) -> Tool:
    """The hand-written program, whose first deploy waits until all is ready, as that of `platform` does."""
    namespace = "bench-waiting"
    variables = {**testbed.variables, "MANIFESTS": str(manifests(testbed, file, namespace)), "WAITS": "true"}
    program, stack = make_stack(testbed, namespace, variables)
    return Tool(
        name=WAITING, namespace=namespace, folder=testbed.hand_written, variables=variables,
        commands={
            "deploy": [*program, "up", "--yes", "--skip-preview", *stack],
            "destroy": [*program, "destroy", "--yes", "--skip-preview", *stack],
        },
    )  # fmt: skip


def make_stack(testbed: Testbed, name: str, variables: dict[str, str]) -> tuple[list[str], list[str]]:
    """Make a stack of the hand-written program; return the program and the options of its commands."""
    variables |= {
        "PULUMI_BACKEND_URL": f"file://{testbed.folder}",
        "PULUMI_CONFIG_PASSPHRASE": "bench",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    # Pulumi writes the settings of its stacks beside the program.
    shutil.copytree(HERE / "handwritten", testbed.hand_written, dirs_exist_ok=True)
    program, stack = [str(testbed.pulumi)], ["--stack", name, "--non-interactive"]
    select = [*program, "stack", "select", "--create", *stack]
    subprocess.run(select, cwd=testbed.hand_written, env=variables, check=True, capture_output=True)
    return program, stack


def kubectl(testbed: Testbed, file: Path, changed: Path) -> Tool:
    namespace = "bench-kubectl"
    path, other = (str(manifests(testbed, found, namespace)) for found in (file, changed))
    program = [str(testbed.kube), "kubectl", "--kubeconfig", str(testbed.kubeconfig)]
    return Tool(
        name="kubectl", namespace=namespace, folder=testbed.folder, variables=testbed.variables,
        commands={
            "deploy": [*program, "apply", "-f", path],
            "preview": [*program, "diff", "-f", path],
            "again": [*program, "apply", "-f", path],
            "preview a change": [*program, "diff", "-f", other],
            "change": [*program, "apply", "-f", other],
            "destroy": [*program, "delete", "-f", path],
        },
        statuses={"preview a change": 1},
    )  # fmt: skip


def manifests(testbed: Testbed, file: Path, namespace: str) -> Path:
    """The objects as `platform render` gives them, which `platform deploy` creates."""
    platform = str(Path(sys.executable).with_name("platform"))
    args = [platform, "render", "-f", file.name, "--name", "bench", "--namespace", namespace]
    done = subprocess.run(args, cwd=file.parent, env=testbed.variables, capture_output=True, text=True, check=True)
    path = testbed.folder / f"{namespace}-{file.stem}.yaml"
    path.write_text(done.stdout)
    return path


# measuring ------------------------------------------------------------------------------------------------------------


def measure(testbed: Testbed, services: int, runs: int, upto: int) -> dict[str, dict[str, Figures]]:
    tools = make_tools(testbed, services, upto)
    for tool in tools:
        testbed.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": tool.namespace}})
        _until_usable(testbed.api, tool.namespace)
    taken: dict[str, dict[str, list[float]]] = {tool.name: {step: [] for step in tool.commands} for tool in tools}
    for number in range(runs):
        for step in STEPS:
            for tool in (tool for tool in tools if step in tool.commands):
                # The controllers may still be busy with the run before.
                _until_calm(testbed.api, tools)
                seconds = tool.time(step)
                taken[tool.name][step].append(seconds)
                print(f"  {services} services, run {number + 1}: {tool.name}: {step}: {seconds:.2f} s", file=sys.stderr)
                _check(testbed.api, tool, step, services)
    return {
        name: {
            step: Figures(statistics.median(times), min(times), max(times)) for step, times in steps.items() if times
        }
        for name, steps in taken.items()
    }


def _check(api: Api, tool: Tool, step: str, services: int) -> None:
    wanted = 0 if step == "destroy" else services
    deadline = time.monotonic() + _CALM_WITHIN_S
    while (found := len(api.object_metadata(kind_path("apps/v1", "Deployment", tool.namespace)))) != wanted:
        if step == "destroy" and time.monotonic() < deadline:
            # A tool that waits for nothing is through before the last object has gone.
            time.sleep(0.1)
            continue
        raise Failed(f"{tool.name}: after {step} there are {found} Deployments, not {wanted}")
    if step == "change":
        _check_change(api, tool, services)


def _check_change(api: Api, tool: Tool, services: int) -> None:
    """Exactly one service has the other command; with a tool that waits, its new pod runs."""
    kinds = ("Deployment", "Pod") if tool.name == "platform" else ("Deployment",)
    for kind in kinds:
        items = api.items(kind_path("v1" if kind == "Pod" else "apps/v1", kind, tool.namespace))
        specs = [item["spec"] if kind == "Pod" else item["spec"]["template"]["spec"] for item in items]
        if sum(CHANGED in spec["containers"][0]["args"] for spec in specs) != 1:
            raise Failed(f"{tool.name}: not one {kind} of {services} has changed")


def _until_usable(api: Api, namespace: str) -> None:
    """A namespace can have pods once it has its service account."""
    while True:
        try:
            api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
        except ApiError:
            time.sleep(0.1)
        else:
            return


def _until_calm(api: Api, tools: Sequence[Tool]) -> None:
    """Wait until every Deployment has its pods, and those without one have gone."""
    for tool in tools:
        while True:
            wanted = len(api.object_metadata(kind_path("apps/v1", "Deployment", tool.namespace)))
            pods = api.items(kind_path("v1", "Pod", tool.namespace))
            running = [pod for pod in pods if pod["status"].get("phase") == "Running"]
            if len(pods) == len(running) == wanted:
                break
            time.sleep(0.2)


# limits and output ----------------------------------------------------------------------------------------------------


def judge(table: Table) -> dict[str, bool | None]:
    """Hold the figures to the limits; None is a limit that these figures can't judge."""
    verdicts: dict[str, bool | None] = {}
    at = table.get(COMPARED_AT, {})
    for peer, limits in (("pulumi", OVER_PULUMI), ("kubectl", OVER_KUBECTL)):
        for step, most in limits.items():
            ratio = _ratio(at, peer, step)
            verdicts[f"{step} at most {most:g} times {peer}"] = None if ratio is None else ratio <= most
    for size, most in WITHOUT_CHANGE_S.items():
        for step in ("preview", "again"):
            found = table.get(size, {}).get("platform", {}).get(step)
            verdicts[f"{step} of {size} at most {most:g} s"] = None if found is None else found.median <= most
    for size, peer in FIRST_DEPLOY.items():
        ratio = _ratio(table.get(size, {}), peer, "deploy")
        verdicts[f"first deploy of {size} at most the time of {peer}"] = None if ratio is None else ratio <= 1
    for step, most in CHANGE_S.items():
        found = at.get("platform", {}).get(step)
        verdicts[f"{step} of one service in {COMPARED_AT} at most {most:g} s"] = (
            None if found is None else found.median <= most
        )
    sizes = sorted(table)
    for before, after in itertools.pairwise(sizes):
        for step in STEPS:
            grown = table[after]["platform"][step].median / table[before]["platform"][step].median
            verdicts[f"{step} linear from {before} to {after}"] = grown <= after / before * LINEAR_WITHIN
    return verdicts


def _ratio(tools: Mapping[str, Mapping[str, Figures]], peer: str, step: str) -> float | None:
    if peer not in tools or "platform" not in tools:
        return None
    # The peers have one way only.
    peer_step = step.removesuffix(" with Pulumi")
    return tools["platform"][step].median / tools[peer][peer_step].median


def show(table: Table) -> str:
    lines = ["| Services | Step | " + " | ".join(name for name in _names(table)) + " | / pulumi | / kubectl |"]
    lines.append("|---" * (len(_names(table)) + 4) + "|")
    for size, tools in sorted(table.items()):
        for step in STEPS:
            cells = [_cell(tools[name][step]) if step in tools.get(name, {}) else "-" for name in _names(table)]
            ratios = [f"{ratio:.2f}" if (ratio := _ratio(tools, peer, step)) else "-" for peer in ("pulumi", "kubectl")]
            lines.append(f"| {size} | {step} | {' | '.join(cells)} | {' | '.join(ratios)} |")
    return "\n".join(lines)


def _names(table: Table) -> list[str]:
    return list(dict.fromkeys(name for tools in table.values() for name in tools))


def _cell(figures: Figures) -> str:
    return f"{figures.median:.2f} s ({figures.least:.2f}-{figures.most:.2f})"


# the testbed ----------------------------------------------------------------------------------------------------------


def simulated_cluster(environment: Mapping[str, str]) -> LocalCluster:
    return local_cluster(environment, ports=PORTS, simulated=NODES)


def prepare(
    folder: Path,
    report: Callable[[str], None],
    make_cluster: Callable[[Mapping[str, str]], LocalCluster] = simulated_cluster,
) -> tuple[Testbed, LocalCluster]:
    """Start a simulated cluster of the benchmark's own."""
    environment = {**os.environ, "COMPOSEPLAT_CLUSTER": str(folder / "cluster")}
    toolchain = Toolchain(environment)
    toolchain.need_all(DEPLOY_TOOLS)
    cluster = make_cluster(environment)
    report(f"starting a simulated cluster of {NODES} nodes")
    cluster.start()
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    for tool in DEPLOY_TOOLS:
        (bin_folder / toolchain.need(tool).path.name).symlink_to(toolchain.need(tool).path)
    if not shutil.which("pulumi-language-python"):
        stand_in = bin_folder / "pulumi-language-python"
        stand_in.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{HOST}" "$@"\n')
        stand_in.chmod(0o755)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PULUMI_", "COMPOSE", "PLATFORM_", "KUBE"))}
    # Installed modules are compiled; with this variable each start would compile all of ours.
    clean.pop("PYTHONDONTWRITEBYTECODE", None)
    variables = {
        **clean,
        "PATH": f"{bin_folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "KUBECONFIG": str(cluster.layout.kubeconfig),
        "COMPOSEPLAT_DATA": str(folder / "data"),
        "COMPOSEPLAT_CACHE": str(toolchain.cache.folder),
        "HOME": str(folder / "home"),
    }
    (folder / "home").mkdir()
    testbed = Testbed(
        folder=folder, kubeconfig=cluster.layout.kubeconfig, api=Api(cluster.access), variables=variables,
        pulumi=toolchain.need(PULUMI).path, kube=toolchain.need(KUBE).path,
    )  # fmt: skip
    return testbed, cluster


def main(args: Sequence[str] | None = None) -> int:
    """Return 0 if every limit that could be judged is met, else 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of services, from small to large")
    parser.add_argument(
        "--runs", type=int, default=RUNS, help=f"rounds of every step by every tool, below {SINGLE_RUN_FROM} services"
    )
    parser.add_argument("--peers-upto", type=int, default=100, help="most services the hand-written program is given")
    parser.add_argument("--json", metavar="FILE", help="write the figures here too")
    options = parser.parse_args(args)
    table: Table = {}
    with tempfile.TemporaryDirectory() as name:
        testbed, cluster = prepare(Path(name), lambda text: print(text, file=sys.stderr))
        try:
            for size in map(int, options.sizes.split(",")):
                runs = 1 if size >= SINGLE_RUN_FROM else options.runs
                table[size] = measure(testbed, size, runs, options.peers_upto)
        finally:
            cluster.delete()
    print(show(table))
    rows = {size: {n: {s: vars(f) for s, f in steps.items()} for n, steps in t.items()} for size, t in table.items()}
    return conclude(judge(table), options.json, {"runs": options.runs, "table": rows})


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except Failed as problem:
        raise SystemExit(str(problem)) from None
