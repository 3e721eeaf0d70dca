"""Measure how soon files that are saved here are in a development container, beside tar over exec and `kubectl cp`.

Owns the tree that is synced, the moments that are timed, and the limits.
A real local cluster, one service, `platform up` without a terminal.
A saved file counts as there when a program in the container has read it and its answer has come back, so each figure
has the way back in it, to our cost.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from proxy import DELAY, SLOW_RATE, Proxy
from sessions import NAMESPACE, Failed, Testbed, Up, until

from composeplat.cluster.api import Api
from composeplat.local.base_images import push_busybox
from composeplat.local.cluster_kind import local_cluster
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import DEPLOY_TOOLS, DEVELOPMENT_TOOLS, KUBE

PORTS = {"api": 25843, "registry": 25900, "https": 25844, "http": 25880}
FILES, SIZE = 10_000, 4096
LARGE, SMALL_SIZE = 100_000, 64
SWITCHED = 3000
SAVES = 50
COPIES = 10
IDLE = 20.0

SAVED_MEDIAN, SAVED_P95 = 0.04, 0.06
DELAYED_MEDIAN = 0.15
SWITCH_WITHIN = 1.5
OVER_TAR = 0.5
LARGE_PROCESSOR = 0.02
"""In seconds."""
IDLE_SHARE = 0.01
"""Of one core, here."""

WATCHED_MEDIAN = 0.6
COMPOSE = """\
x-platform: {full: true}
services:
  app:
    image: busybox:1.37
    command: sleep 100000
    stop_grace_period: 0
    volumes: ['./src:/app']
    develop: {watch: [{path: ./watched, action: sync, target: /watched}]}
"""
LARGE_SERVICE = """\
  large:
    image: busybox:1.37
    command: sleep 100000
    stop_grace_period: 0
    volumes: ['./large:/app']
"""
CODE_SERVICE = """\
  code:
    image: busybox:1.37
    command: sleep 100000
    stop_grace_period: 0
    volumes: ['./code:/app']
"""
#: For the first syncs, each on a volume of its own: file systems are slow for minutes where many files were deleted.
FRESH = """\
  fresh-{}:
    image: busybox:1.37
    command: sleep 100000
    stop_grace_period: 0
    volumes: ['./src:/app']
"""
#: Prints the content of a file each time that it changes.
READER = 'last=; while :; do read -r now < {}/saved; [ "$now" = "$last" ] || echo "$now"; last=$now; usleep 2000; done'


def make_tree(folder: Path, files: int, size: int) -> None:
    for number in range(files):
        path = folder / f"d{number // 100:03}" / f"f{number:05}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(size))


def first_sync(testbed: Testbed, number: int) -> float:
    """From the connection to everything being there, on a volume that has nothing yet."""
    service = f"fresh-{number}"
    up = Up(testbed, ("sleep", "100000"), service=service)
    seconds = up.at("synced", first=True) - up.at("connected")
    count = int(testbed.in_container("sh", "-c", "find /app -type f | wc -l"))
    up.end()
    testbed.run("down", service)
    if count < FILES:
        raise Failed(f"only {count} files are in the container")
    return seconds


def tar_over_exec(testbed: Testbed, number: int) -> float:
    pod = until(partial(testbed.running, "app"), 60)
    seconds = send_tar(testbed, pod, f"mkdir -p /copy-{number} && tar -C /copy-{number} -xf -")
    count = subprocess.run(
        [*testbed.kubectl, "exec", pod, "--", "sh", "-c", f"find /copy-{number} -type f | wc -l"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    if int(count.stdout) < FILES:
        raise Failed("tar has not brought all files")
    return seconds


def send_tar(testbed: Testbed, pod: str, script: str, folder: Path | None = None) -> float:
    """Send a tree as an archive to a script in the container."""
    began = time.monotonic()
    with subprocess.Popen(
        [str(shutil.which("tar")), "-C", str(folder or testbed.source), "-cf", "-", "."], stdout=subprocess.PIPE
    ) as tar:
        subprocess.run([*testbed.kubectl, "exec", "-i", pod, "--", "sh", "-c", script], stdin=tar.stdout, check=True)
    return time.monotonic() - began


def parts_of_tar(testbed: Testbed, number: int) -> tuple[float, float]:
    """The two parts that every way of copying has: the bytes on their way, and the files being written."""
    pod = until(partial(testbed.running, "app"), 60)
    # Without a command after it, `cat` is the one whose output is closed, and containerd closes its input then.
    on_the_way = send_tar(testbed, pod, "cat >/dev/null; true")
    send_tar(testbed, pod, "cat >/tree.tar; true")
    script = f"mkdir -p /part-{number} && tar -C /part-{number} -xf /tree.tar"
    began = time.monotonic()
    subprocess.run([*testbed.kubectl, "exec", pod, "--", "sh", "-c", script], check=True)
    return on_the_way, time.monotonic() - began


def saves(testbed: Testbed) -> list[float]:
    (testbed.source / "saved").write_text("start\n")
    up = Up(testbed, ("sh", "-c", READER.format("/app")))
    up.wait_for_output(120)
    times = [save(testbed.source, number, up) for number in range(SAVES)]
    up.end()
    return times


def copies(testbed: Testbed) -> list[float]:
    """The same with `kubectl cp` of the saved file into the deployed pod, as one would do it by hand."""
    folder = testbed.folder / "copied"
    folder.mkdir()
    pod = until(partial(testbed.running, "app"), 60)
    copy = [*testbed.kubectl, "cp", str(folder / "saved"), f"{pod}:/copied/saved"]
    (folder / "saved").write_text("start\n")
    subprocess.run([*testbed.kubectl, "exec", pod, "--", "mkdir", "/copied"], check=True)
    subprocess.run(copy, check=True)
    reader = Up(testbed, (), [*testbed.kubectl, "exec", pod, "--", "sh", "-c", READER.format("/copied")])
    until(lambda: reader.lines, 60)
    times = [save(folder, number, reader, copy) for number in range(COPIES)]
    reader.end()
    return times


def delayed_testbed(proxy: Proxy, testbed: Testbed) -> Testbed:
    """The same testbed, whose requests to the API server go through the proxy."""
    path = proxy.write_kubeconfig(testbed.folder, testbed.variables)
    registry = f"localhost:{PORTS['registry']}"
    return replace(
        testbed,
        kubectl=[f"--kubeconfig={path}" if word.startswith("--kubeconfig=") else word for word in testbed.kubectl],
        variables={**testbed.variables, "KUBECONFIG": str(path), "PLATFORM_REGISTRY": registry},
    )


def delayed_saves(testbed: Testbed) -> list[float]:
    """The same where each message to the API server and back takes ``DELAY`` longer, as does the reader's answer."""
    proxy = Proxy(PORTS["api"], DELAY)
    try:
        return saves(delayed_testbed(proxy, testbed))
    finally:
        proxy.close()


def copy_sources(folder: Path) -> None:
    """Real source code: that of this project."""
    for name in ("composeplat", "tests", "docs"):
        source = Path(__file__).parents[1] / name
        shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.png"))


def slow_copies(testbed: Testbed) -> tuple[float, float]:
    """The sources of this project over a slow wire: a first sync, and tar over exec."""
    proxy = Proxy(PORTS["api"], DELAY, SLOW_RATE)
    try:
        slow = delayed_testbed(proxy, testbed)
        pod = until(partial(slow.running, "app"), 60)
        tar = send_tar(slow, pod, "mkdir -p /code && tar -C /code -xf -", testbed.folder / "code")
        up = Up(slow, ("sh", "-c", "find /app -type f | wc -l; sleep 100000"), service="code")
        synced = up.at("synced", first=True) - up.at("connected")
        up.wait_for_output(60)
        count = int(up.lines[0][1])
        up.end()
        testbed.run("down", "code")
    finally:
        proxy.close()
    if count != sum(path.is_file() for path in (testbed.folder / "code").rglob("*")):
        raise Failed(f"{count} files are in the container")
    return synced, tar


def save(folder: Path, number: int, reader: Up, copy: Sequence[str] = ()) -> float:
    """Save a file as editors do; return the seconds until a program in the container has read it.

    With ``copy``, a command brings it there.
    """
    time.sleep(0.3)
    text = f"save-{number}"
    began = time.monotonic()
    aside = folder / ".saved.tmp"
    aside.write_text(f"{text}\n")
    aside.replace(folder / "saved")
    if copy:
        subprocess.run(list(copy), check=True)
    found = until(partial(reader.times_of, text), 30)
    return float(found[0]) - began


def watched_saves(testbed: Testbed) -> list[float]:
    """The same with `platform watch`, which copies into the deployed pod."""
    folder = testbed.folder / "watched"
    folder.mkdir()
    (folder / "saved").write_text("start\n")
    args = ["watch", "--progress", "json", "--deploy", "app"]
    watch = Up(testbed, (), testbed.platform(*args))
    watch.at("watching")
    (folder / "saved").write_text("began\n")
    watch.at("copied")
    pod = until(partial(testbed.running, "app"), 60)
    reader = Up(testbed, (), [*testbed.kubectl, "exec", pod, "--", "sh", "-c", READER.format("/watched")])
    until(lambda: reader.lines, 60)
    times = [save(folder, number, reader) for number in range(SAVES)]
    reader.end()
    watch.end()
    return times


def switch(testbed: Testbed) -> tuple[float, float]:
    """Thousands of files change at once, as another branch is checked out; and how much of the time is writing them."""
    up = Up(testbed, ("sleep", "100000"))
    up.at("connected")
    time.sleep(3)
    changed = sorted(path for path in testbed.source.rglob("f*") if path.is_file())[:SWITCHED]
    contents = [os.urandom(SIZE) for _ in changed]
    before = len(up.events)
    began = time.monotonic()
    for path, content in zip(changed, contents, strict=True):
        path.write_bytes(content)
    writing = time.monotonic() - began
    until(lambda: sum(e.get("to_container", 0) for _, e in up.events[before:]) >= SWITCHED, 60)
    seconds = up.events[-1][0] - began
    script = "cd {} && find . -name 'f*' -type f | LC_ALL=C sort | xargs cat | md5sum"
    there = testbed.in_container("sh", "-c", script.format("/app"))
    shell = str(shutil.which("sh"))
    here = subprocess.run(
        [shell, "-c", script.format(testbed.source)], capture_output=True, text=True, check=True
    ).stdout
    up.end()
    if there != here:
        raise Failed("the trees are not the same after the switch")
    return seconds, writing


def tar_of_some(testbed: Testbed) -> float:
    """Write as many files once more, and send them over exec as an archive."""
    pod = until(partial(testbed.running, "app"), 60)
    folder = testbed.folder / "switched"
    contents = [os.urandom(SIZE) for _ in range(SWITCHED)]
    for part in range(SWITCHED // 100):
        (folder / f"d{part:03}").mkdir(parents=True)
    began = time.monotonic()
    for number, content in enumerate(contents):
        (folder / f"d{number // 100:03}" / f"f{number:05}").write_bytes(content)
    send_tar(testbed, pod, "mkdir /switched && tar -C /switched -xf -", folder)
    return time.monotonic() - began


def idle(testbed: Testbed) -> tuple[float, float]:
    """The share of a core that is used where nothing happens: here, and in the container."""
    up = Up(testbed, ("sleep", "100000"))
    up.at("connected")
    time.sleep(5)
    before = {name: ticks(name) for name in ("platform-link", "platform-agent")}
    time.sleep(IDLE)
    shares = [(ticks(name) - before[name]) / os.sysconf("SC_CLK_TCK") / IDLE for name in before]
    up.end()
    return shares[0], shares[1]


def processor_of_saves(testbed: Testbed) -> tuple[float, float]:
    """The processor time of a save among very many files, in seconds: here, and in the container."""
    folder = testbed.folder / "large"
    make_tree(folder, LARGE, SMALL_SIZE)
    (folder / "saved").write_text("start\n")
    up = Up(testbed, ("sh", "-c", READER.format("/app")), service="large")
    up.wait_for_output(300)
    time.sleep(5)
    save(folder, 0, up)
    before = {name: ticks(name) for name in ("platform-link", "platform-agent")}
    for number in range(1, SAVES + 1):
        save(folder, number, up)
    used = [(ticks(name) - before[name]) / os.sysconf("SC_CLK_TCK") / SAVES for name in before]
    up.end()
    return used[0], used[1]


def ticks(name: str) -> int:
    """The processor time of all processes of a name, in ticks."""
    total = 0
    for entry in Path("/proc").iterdir():
        try:
            if (entry / "comm").read_text().strip() != name[:15]:
                continue
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        except OSError:
            continue
    return total


def measure(testbed: Testbed, rounds: int) -> dict[str, Any]:
    watched = watched_saves(testbed)
    print(f"  saves with watch: median {statistics.median(watched):.3f} s", file=sys.stderr)
    firsts, tars, parts = [], [], []
    for number in range(rounds):
        tars.append(tar_over_exec(testbed, number))
        firsts.append(first_sync(testbed, number))
        parts.append(parts_of_tar(testbed, number))
        print(
            f"  round {number + 1}: first sync {firsts[-1]:.2f} s, tar over exec {tars[-1]:.2f} s, "
            f"of which on the way {parts[-1][0]:.2f} s and unpacking {parts[-1][1]:.2f} s",
            file=sys.stderr,
        )
    copied = copies(testbed)
    print(f"  saves with kubectl cp: median {statistics.median(copied):.3f} s", file=sys.stderr)
    saved = sorted(saves(testbed))
    print(f"  saves: median {statistics.median(saved):.3f} s", file=sys.stderr)
    delayed = delayed_saves(testbed)
    print(f"  saves with {DELAY} s of delay: median {statistics.median(delayed):.3f} s", file=sys.stderr)
    slow, slow_tar = slow_copies(testbed)
    print(f"  over a slow wire: first sync {slow:.2f} s, tar over exec {slow_tar:.2f} s", file=sys.stderr)
    switched, writing = switch(testbed)
    print(f"  {SWITCHED} files at once: {switched:.2f} s, of which writing {writing:.2f} s", file=sys.stderr)
    switched_tar = tar_of_some(testbed)
    print(f"  tar of as many files: {switched_tar:.2f} s", file=sys.stderr)
    here, there = idle(testbed)
    large_here, large_there = processor_of_saves(testbed)
    return {
        "first_sync": statistics.median(firsts), "tar_over_exec": statistics.median(tars),
        "tar_on_the_way": statistics.median(sent for sent, _ in parts),
        "tar_unpacking": statistics.median(unpacked for _, unpacked in parts),
        "saved_median": statistics.median(saved), "saved_p95": saved[int(len(saved) * 0.95)],
        "delayed_median": statistics.median(delayed), "delayed_p95": sorted(delayed)[int(len(delayed) * 0.95)],
        "copied_median": statistics.median(copied), "watched_median": statistics.median(watched), "switch": switched,
        "switch_tar": switched_tar, "slow_sync": slow, "slow_tar": slow_tar,
        "switch_writing": writing, "idle_here": here, "idle_in_container": there,
        "large_here": large_here, "large_in_container": large_there,
    }  # fmt: skip


def find_limits(figures: Mapping[str, float]) -> dict[str, float]:
    """The limits of the figures that have one; some are a part of a peer's time."""
    return {
        "saved_median": SAVED_MEDIAN, "saved_p95": SAVED_P95, "delayed_median": DELAYED_MEDIAN,
        "watched_median": WATCHED_MEDIAN, "switch": SWITCH_WITHIN,
        "first_sync": OVER_TAR * figures["tar_over_exec"], "slow_sync": OVER_TAR * figures["slow_tar"],
        "large_here": LARGE_PROCESSOR, "idle_here": IDLE_SHARE,
    }  # fmt: skip


def show(figures: Mapping[str, float]) -> str:
    ratio = figures["first_sync"] / figures["tar_over_exec"]
    rows = [
        ("a saved file is there, median", f"{figures['saved_median'] * 1000:.0f} ms", f"{SAVED_MEDIAN * 1000:.0f} ms"),
        ("the same, 95 of 100", f"{figures['saved_p95'] * 1000:.0f} ms", f"{SAVED_P95 * 1000:.0f} ms"),
        (
            f"a saved file is there with {DELAY * 1000:.0f} ms of delay there and back, median",
            f"{figures['delayed_median'] * 1000:.0f} ms",
            f"{DELAYED_MEDIAN * 1000:.0f} ms",
        ),
        ("a saved file is there with platform watch, median", f"{figures['watched_median'] * 1000:.0f} ms", "600 ms"),
        ("a saved file is there with kubectl cp, median", f"{figures['copied_median'] * 1000:.0f} ms", ""),
        (f"{SWITCHED} files change at once", f"{figures['switch']:.2f} s", f"{SWITCH_WITHIN} s"),
        ("of which writing them here", f"{figures['switch_writing']:.2f} s", ""),
        ("writing as many files here and tar over exec", f"{figures['switch_tar']:.2f} s", ""),
        (
            f"first sync of {FILES} files of 4 KiB",
            f"{figures['first_sync']:.2f} s ({ratio:.2f} times tar)",
            f"{OVER_TAR} times",
        ),
        ("tar over exec, the same files", f"{figures['tar_over_exec']:.2f} s", ""),
        ("the same archive over exec, written nowhere", f"{figures['tar_on_the_way']:.2f} s", ""),
        ("the same archive unpacked in the container", f"{figures['tar_unpacking']:.2f} s", ""),
        (
            f"first sync of the sources of this project over a wire of {SLOW_RATE * 8 // 1_000_000} Mbit/s",
            f"{figures['slow_sync']:.2f} s ({figures['slow_sync'] / figures['slow_tar']:.2f} times tar)",
            f"{OVER_TAR} times",
        ),
        ("tar over exec, the same files over the same wire", f"{figures['slow_tar']:.2f} s", ""),
        (
            f"processor for a save among {LARGE} files, here",
            f"{figures['large_here'] * 1000:.1f} ms",
            f"{LARGE_PROCESSOR * 1000:.0f} ms",
        ),
        ("the same in the container", f"{figures['large_in_container'] * 1000:.1f} ms", ""),
        ("nothing happens, share of a core here", f"{figures['idle_here'] * 100:.2f} %", "1 %"),
        ("the same in the container", f"{figures['idle_in_container'] * 100:.2f} %", ""),
    ]
    return "\n".join(["| Figure | Measured | Limit |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)])


def main(args: Sequence[str] | None = None) -> int:
    """Return 0 if all limits are held, else 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="first syncs, each beside one tar")
    parser.add_argument("--json", metavar="FILE", help="write the figures here too")
    options = parser.parse_args(args)
    work = Path(tempfile.mkdtemp(prefix="composeplat-sync-"))
    cluster = local_cluster({**os.environ, "COMPOSEPLAT_CLUSTER": str(work / "cluster")}, ports=PORTS)
    try:
        toolchain = Toolchain(os.environ)
        toolchain.need_all((*DEPLOY_TOOLS, *DEVELOPMENT_TOOLS))
        cluster.start()
        push_busybox(("127.0.0.1", PORTS["registry"]), os.environ)
        config = str(cluster.layout.kubeconfig)
        variables = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("PULUMI_", "COMPOSE", "PLATFORM_"))},
            "COMPOSEPLAT_CLUSTER": str(work / "cluster"), "COMPOSEPLAT_DATA": str(work / "data"), "KUBECONFIG": config,
            "COMPOSEPLAT_CACHE": str(toolchain.cache.folder),
        }  # fmt: skip
        kubectl = [str(toolchain.need(KUBE).path), "kubectl", f"--kubeconfig={config}", "-n", NAMESPACE]
        folder = work / "project"
        folder.mkdir()
        (folder / "large").mkdir()
        (folder / "code").mkdir()
        (folder / "compose.yaml").write_text(
            COMPOSE + LARGE_SERVICE + CODE_SERVICE + "".join(map(FRESH.format, range(options.rounds)))
        )
        (folder / "src").mkdir()
        (folder / "src" / "saved").write_text("start\n")
        with Api(cluster.access) as api:
            testbed = Testbed(folder, variables, kubectl, api)
            testbed.run("deploy")
            make_tree(testbed.source, FILES, SIZE)
            copy_sources(folder / "code")
            figures = measure(testbed, options.rounds)
    finally:
        cluster.delete()
        shutil.rmtree(work, ignore_errors=True)
    print(show(figures))
    limits = find_limits(figures)
    if options.json:
        Path(options.json).write_text(json.dumps({"figures": figures, "limits": limits}, indent=2) + "\n")
    missed = [name for name, most in limits.items() if figures[name] > most]
    for name in missed:
        print(f"limit missed: {name}: {figures[name]:.3f}, at most {limits[name]:.3f}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
