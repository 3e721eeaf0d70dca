"""The benchmark: a quick run works, and a peer that fails is never timed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from tests.conftest import ROOT, VARIABLES, Folder, Outcome, Project

# Benchmarks are scripts that import each other.
sys.path.append(str(ROOT / "benchmarks"))
import deploy
import idle
import scale

SCRIPT = ROOT / "benchmarks" / "render.py"


def run(folder: Path, *args: str, path: str, variables: Mapping[str, str]) -> Outcome:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--sizes", "1,20", "--runs", "1", *args],
        cwd=folder,
        env={**VARIABLES, "PATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def peer(folder: Folder, script: str) -> str:
    """Put a program named kompose on a PATH of its own, and give that PATH."""
    path = folder.path / "bin" / "kompose"
    folder.write({"bin/kompose": f"#!/bin/sh\n{script}\n"})
    path.chmod(0o755)
    return f"{path.parent}{os.pathsep}{os.defpath}"


def measured(folder: Path, *args: str, path: str, variables: Mapping[str, str] = {}) -> tuple[Outcome, dict[str, Any]]:
    outcome = run(folder, "--json", "figures.json", *args, path=path, variables=variables)
    content: dict[str, Any] = json.loads((folder / "figures.json").read_text())
    return outcome, content


WORKING = """
[ "$1" = version ] && { echo 9.9; exit; }
for n in $(seq $(grep -c image: "$4")); do echo kind: Deployment; echo kind: Service; echo kind: Claim; done
"""


def test_a_quick_run(project: Project) -> None:
    """Each size is a row with our figures and the peer's, and what few services can't show is not judged."""
    folder = project({})

    outcome, figures = measured(folder.path, path=peer(folder, f"PATH={os.defpath}{WORKING}"))

    assert (outcome.stdout.splitlines()[0], outcome.stderr) == ("kompose 9.9", "")
    assert [row["services"] for row in figures["rows"]] == [1, 20]
    for row in figures["rows"]:
        assert 0 < row["platform"]["least"] <= row["platform"]["median"] <= row["platform"]["most"]
        assert 5 < row["platform"]["memory"] < 150
        assert row["ratio"] == row["platform"]["median"] / row["kompose"]["median"]
    assert figures["limits"] == {"at most 0.5 times kompose": None, "below 150 MB": True, "linear": True}
    assert outcome.status == 0


@pytest.mark.parametrize(
    ("args", "expected", "message"),
    [
        pytest.param(["--alone"], "kompose is left out", "", id="alone"),
        pytest.param([], "kompose can't be built", "kompose 1.38.0 can't be put into ", id="not-built"),
    ],
)
def test_no_peer(project: Project, args: list[str], expected: str, message: str) -> None:
    """Without a peer our own figures are measured, and nothing is compared."""
    folder = project({"cache": ""}).path
    cache = {"COMPOSEPLAT_CACHE": str(folder / "cache")}

    outcome, figures = measured(folder, *args, path="/nonexistent", variables=cache)

    assert outcome.stdout.splitlines()[0] == f"not compared: {expected}"
    assert outcome.stderr.startswith(message)
    assert [(row["kompose"], row["ratio"]) for row in figures["rows"]] == [(None, None)] * 2
    assert outcome.status == 0


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("echo no >&2; exit 1", "kompose ended with status 1: no", id="fails"),
        pytest.param(
            "exit 0", "kompose ended with status 0, but gave 0 objects where 3 are expected", id="does-nothing"
        ),
        pytest.param("kill -9 $$", "kompose ended with status -9: and no message", id="dies"),
    ],
)
def test_a_peer_that_fails(project: Project, script: str, expected: str) -> None:
    """A peer that fails, or gives nothing, would win: it is not timed."""
    folder = project({})

    outcome, figures = measured(folder.path, path=peer(folder, script))

    assert outcome.stdout.splitlines()[0] == f"not compared: {expected}"
    assert [row["kompose"] for row in figures["rows"]] == [None, None]


def test_measured_values(project: Project) -> None:
    """Every service of the measured definition is a StatefulSet, a Service, a claim and a Secret."""
    text = subprocess.run(
        [sys.executable, "-c", "import render; print(render.definition(2))"],
        env={**VARIABLES, "PYTHONPATH": str(SCRIPT.parent)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    reading = project(text).read()

    assert len(yaml.safe_load(text)["services"]) == 2
    assert reading.messages == []
    assert sorted(name.partition("/")[0] for name in reading.names) == sorted(
        ["StatefulSet", "Service", "PersistentVolumeClaim", "Secret"] * 2
    )


# many services --------------------------------------------------------------------------------------------------------


def test_many_services(project: Project) -> None:
    """Ten services are alike in every size: a volume, an endpoint and two dependencies; one change is one variable."""
    for size in (10, 30):
        reading = project(scale.definition(size)).read()
        assert reading.messages == []
        assert reading.plan is not None
        kinds = Counter(name.partition("/")[0] for name in reading.names)
        tens = size // 10
        assert (kinds["PersistentVolumeClaim"], kinds["Ingress"], len(reading.plan.edges)) == (tens, tens, 2 * tens)
        assert kinds["Deployment"] + kinds["StatefulSet"] == kinds["Service"] == size

    before, after = (yaml.safe_load(text)["services"] for text in (scale.definition(20), scale.definition(20, "yes")))
    assert [name for name in before if before[name] != after[name]] == ["app19"]


def step(seconds: float, processor_s: float, requests: int) -> scale.Step:
    used = {
        "platform": scale.Process(processor_s=processor_s / 2),
        "pulumi": scale.Process(processor_s=processor_s / 2),
    }
    return scale.Step(seconds=seconds, processes=used, requests={"GET": requests - 1, "LIST": 1})


@pytest.mark.parametrize(
    ("many", "missed"),
    [
        pytest.param(step(50, 25, 5000), [], id="no-faster"),
        pytest.param(step(52, 25, 5000), ["deploy: seconds"], id="seconds"),
        pytest.param(step(50, 27, 5000), ["deploy: processor time"], id="processor"),
        pytest.param(step(50, 25, 5100), ["deploy: requests"], id="requests"),
    ],
)
def test_growth_with_services(many: scale.Step, missed: list[str]) -> None:
    """For each of ten times as many services a step may take a quarter longer; what was not run is not judged."""
    verdicts = scale.judge({100: {"deploy": step(4, 2, 400)}, 1000: {"deploy": many}})

    assert [limit for limit, is_met in verdicts.items() if is_met is False] == missed
    assert verdicts["status"] is None


def test_used_by_processes(project: Project) -> None:
    """What a run uses is that of its processes and of those they start, by the names of their programs."""
    folder = project({}).path
    (folder / "child.py").write_text(
        "import time\nheld = b'x' * 60_000_000\nwhile time.process_time() < 0.5: pass\ntime.sleep(0.5)"
    )
    (folder / "parent.py").write_text("import subprocess, sys; subprocess.run([sys.executable, 'child.py'])")
    process = subprocess.Popen([sys.executable, "parent.py"], cwd=folder)
    sampler = scale.Sampler(root=process.pid)
    while process.poll() is None:
        sampler.sample()
        time.sleep(0.02)
    found = sampler.stop()

    assert sorted(found) == ["child.py", "parent.py"]
    assert 0.2 < found["child.py"].processor_s < 1
    assert found["parent.py"].peak_mb < 60 < found["child.py"].peak_mb < 150


def test_counted_requests() -> None:
    """Requests are counted by verb, over all kinds and statuses."""
    text = """\
apiserver_request_total{code="200",component="apiserver",resource="pods",verb="LIST",version="v1"} 12
apiserver_request_total{code="404",component="apiserver",resource="pods",verb="GET",version="v1"} 1e+06
apiserver_request_total{code="200",component="apiserver",resource="services",verb="LIST",version="v1"} 3
apiserver_request_terminations_total{code="200",verb="LIST"} 3
"""
    assert scale.parse_requests(text) == {"LIST": 15, "GET": 1_000_000}


# starts ---------------------------------------------------------------------------------------------------------------


def test_starts(project: Project) -> None:
    """Each command is measured beside Python alone, and the status is 1 if a limit is missed."""
    folder = project({}).path
    script = [sys.executable, str(SCRIPT.with_name("startup.py")), "--runs", "1", "--json", "figures.json"]
    done = subprocess.run(script, cwd=folder, env=VARIABLES, capture_output=True, text=True, check=False)
    figures = json.loads((folder / "figures.json").read_text())

    assert list(figures["rows"]) == ["python", "--help", "deploy --help", "Tab", "render of 10"]
    for name, row in figures["rows"].items():
        assert row["clock"] > 0
        assert name == "python" or row["processor"] > figures["rows"]["python"]["processor"] > 0
    limits = ["--help in 0.08 s", "deploy --help in 0.08 s", "Tab in 0.08 s", "render of 10 in 0.10 s"]
    assert list(figures["limits"]) == limits
    assert (done.returncode, done.stderr) == (int(False in figures["limits"].values()), "")


def test_limits_of_starts() -> None:
    """A limit holds the processor time of its command, and nothing else."""
    script = """
import startup
cases = [startup.Case("a", (), b"", 0.08), startup.Case("b", (), b"", 0.08), startup.Case("c", (), b"")]
times = {"a": startup.Figures(0.08, 9.0), "b": startup.Figures(0.081, 0.081), "c": startup.Figures(9.0, 9.0)}
print(startup.judge(cases, times))
"""
    environment = {**VARIABLES, "PYTHONPATH": str(SCRIPT.parent)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)

    assert done.stdout == "{'a in 0.08 s': True, 'b in 0.08 s': False}\n"


def test_start_that_fails(project: Project) -> None:
    """A command that fails or prints something else is not timed."""
    script = """
import pathlib, sys, render, startup
for command in (["false"], ["echo", "other"]):
    try:
        startup.time_once(startup.Case("a", tuple(command), b"expected"), pathlib.Path("."))
    except render.Failed as error:
        print(error)
"""
    environment = {**VARIABLES, "PYTHONPATH": str(SCRIPT.parent)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=project({}).path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines() == [
        f"a ended with status {status}, without the expected output" for status in (1, 0)
    ]


# plots ----------------------------------------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"


def plot(folder: Path) -> None:
    """Draw what is in a folder, as `make bench` does."""
    subprocess.run([sys.executable, str(SCRIPT.with_name("plots.py")), str(folder)], env=VARIABLES, check=True)


def test_plot_of_rendering(project: Project) -> None:
    """A line for each tool, with a point for each size that says its seconds; more seconds are further up."""
    folder = project({}).path
    rows = [
        {"services": size, "platform": {"median": ours}, "kompose": {"median": peers}}
        for size, ours, peers in ((10, 0.1, 0.05), (500, 0.5, 0.9))
    ]
    (folder / "render.json").write_text(json.dumps({"rows": rows}))
    plot(folder)
    drawn = ET.parse(folder / "render.svg")  # noqa: S314 -- our own file
    points = {point.findtext(f"{SVG}title"): float(point.get("cy", "")) for point in drawn.iter(f"{SVG}circle")}

    assert len(list(drawn.iter(f"{SVG}polyline"))) == 2
    assert list(points) == [
        "platform, 10 services: 0.10 s", "platform, 500 services: 0.50 s",
        "kompose, 10 services: 0.05 s", "kompose, 500 services: 0.90 s",
    ]  # fmt: skip
    assert sorted(points, key=lambda text: -points[text]) == [
        "kompose, 10 services: 0.05 s", "platform, 10 services: 0.10 s",
        "platform, 500 services: 0.50 s", "kompose, 500 services: 0.90 s",
    ]  # fmt: skip


def test_plot_of_deploys(project: Project) -> None:
    """A chart for each step; a tool that was not measured at a size, or has no such step, has no point there."""
    folder = project({}).path
    steps = {step: {"median": 1.5} for step in ("deploy", "preview", "again", "destroy")}
    table = {"100": {"platform": steps, "kubectl": steps}, "10": {"platform": {**steps, "again": {"median": 0.2}}}}
    (folder / "deploy.json").write_text(json.dumps({"table": table}))
    plot(folder)
    drawn = ET.parse(folder / "deploy.svg")  # noqa: S314 -- our own file
    titles = [text.text for text in drawn.iter(f"{SVG}text") if text.get("class") == "title"]

    assert titles == ["First deploy", "Preview without a change", "Deploy without a change", "Destroy"]
    assert len(list(drawn.iter(f"{SVG}polyline"))) == 2 * 4
    assert len(list(drawn.iter(f"{SVG}circle"))) == (2 + 1) * 4
    assert not (folder / "render.svg").exists()


def test_plot_of_many_services(project: Project) -> None:
    """A line of kubectl is in the charts of the steps that it took, too."""
    folder = project({}).path
    steps = {step: {"seconds": 2.0} for step in ("deploy", "preview", "no change", "destroy")}
    kubectl = {"deploy": 1.0, "preview": 3.0}
    content = {"table": {"100": steps, "1000": steps}, "kubectl": {"100": kubectl, "1000": kubectl}}
    (folder / "scale.json").write_text(json.dumps(content))
    plot(folder)
    drawn = ET.parse(folder / "scale.svg")  # noqa: S314 -- our own file

    assert len(list(drawn.iter(f"{SVG}polyline"))) == 4 + 2
    assert len(list(drawn.iter(f"{SVG}circle"))) == 2 * (4 + 2)


SAVED = ("saved_median", "saved_p95", "delayed_median", "watched_median", "first_sync", "slow_sync", "switch")
BY_HAND = ("copied_median", "tar_over_exec", "slow_tar", "switch_tar")
BUILD = {"seconds": {"platform build": [1.0, 2.0, 9.0], "bake": [4.0]}, "peer": "bake", "at_most": 0.25}


@pytest.mark.parametrize(
    ("name", "content", "bars", "limits"),
    [
        pytest.param(
            "startup",
            {
                "rows": {
                    "python": {"processor": 0.01, "limit": None}, "--help": {"processor": 0.0625, "limit": 0.08},
                },
            },
            ["python: 10 ms", "--help: 62.5 ms, at most 80"],
            1,
            id="startup",
        ),
        pytest.param(
            "builds",
            {"no change": {**BUILD, "judged": ["platform build"]}, "a change": {**BUILD, "judged": []}},
            ["platform build: 2 s, at most 1", "bake: 4 s", "platform build: 2 s", "bake: 4 s"],
            1,
            id="builds",
        ),
        pytest.param(
            "idle",
            {
                "rows": {
                    "platform logs": {"share": 0.005, "bytes_per_s": 0},
                    "kubectl logs": {"share": 0.25, "bytes_per_s": 1234},
                }
            },
            [
                *["platform logs: 0.5 %, at most 1", "kubectl logs: 25 %"],
                *["platform logs: 0 bytes/s", "kubectl logs: 1,234 bytes/s"],
            ],
            1,
            id="idle",
        ),
        pytest.param(
            "sync",
            {"figures": dict.fromkeys((*SAVED, *BY_HAND), 0.5), "limits": dict.fromkeys(SAVED, 0.25)},
            [
                *["a save with platform up, median: 500 ms, at most 250", "the same, 95 of 100: 500 ms, at most 250"],
                "the same with a delay on the wire, median: 500 ms, at most 250",
                *["a save with platform watch, median: 500 ms, at most 250", "a save with kubectl cp, median: 500 ms"],
                *["first sync of 10,000 files: 0.5 s, at most 0.25", "tar over exec, the same files: 0.5 s"],
                *["first sync of sources, slow wire: 0.5 s, at most 0.25", "tar over exec, the same files: 0.5 s"],
                *["3,000 files change at once: 0.5 s, at most 0.25", "tar over exec of as many files: 0.5 s"],
            ],
            7,
            id="sync",
        ),
    ],
)  # fmt: skip
def test_plot_of_bars(project: Project, name: str, content: Mapping[str, object], bars: list[str], limits: int) -> None:
    """Each figure is a bar that says its value; a peer's has another color, and a limit is a mark."""
    folder = project({}).path
    (folder / f"{name}.json").write_text(json.dumps(content))
    plot(folder)
    drawn = ET.parse(folder / f"{name}.svg")  # noqa: S314 -- our own file
    colors = {
        (found.get("fill"), " at most " in found.findtext(f"{SVG}title", "")) for found in drawn.iter(f"{SVG}rect")
    }

    assert [found.findtext(f"{SVG}title") for found in drawn.iter(f"{SVG}rect")] == bars
    assert [found.get("class") for found in drawn.iter(f"{SVG}line")] == ["limit"] * limits
    assert len(colors) >= 2


# idle commands and deploys --------------------------------------------------------------------------------------------


def test_limits_of_idle_commands() -> None:
    """Ours may use 1 % of a core, and send nothing but for the claim of `up`; those of others are not judged."""
    cases = idle.find_cases(["kubectl"], "web-1")
    rows = {case.name: idle.Row(share=0.02 if case.peer else 0.001, bytes_per_s=40) for case in cases}
    rows["platform logs --follow"] = idle.Row(share=0.5, bytes_per_s=0)

    missed = [limit for limit, met in idle.judge(cases, rows).items() if not met]

    assert missed == ["platform logs --follow: less than 1 % of a core", "platform status --watch: sends nothing"]


def test_limits_of_first_deploys() -> None:
    """A first deploy of few services is compared with the program that waits, of many with kubectl."""
    seconds = {10: {"platform": 3, "pulumi": 2, "pulumi that waits": 20, "kubectl": 1},
               100: {"platform": 7, "pulumi": 15, "kubectl": 5}}  # fmt: skip
    table = {
        size: {tool: {step: deploy.Figures(time, time, time) for step in deploy.STEPS} for tool, time in tools.items()}
        for size, tools in seconds.items()
    }
    verdicts = deploy.judge(table)

    first = {limit: met for limit, met in verdicts.items() if limit.startswith("first deploy")}
    assert first == {
        "first deploy of 10 at most the time of pulumi that waits": True,
        "first deploy of 100 at most the time of kubectl": False,
        "first deploy of 500 at most the time of kubectl": None,
    }
