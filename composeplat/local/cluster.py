"""Start, stop and inspect the local cluster.

Owns the order of starting, the proof that a process is the supervisor (its number and start time), and what is cleaned
away when it has ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from composeplat import progress
from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.diagnostics import ComposeplatError, MissingPiece
from composeplat.local.base_images import FILL_NAME, fill_image
from composeplat.local.builder import builder_mounts, prepare_builder
from composeplat.local.certificates import make_certificates
from composeplat.local.cgroups import check_cgroups, make_cgroups, remove_cgroups
from composeplat.local.containerd import note_other_version
from composeplat.local.docker_settings import read_registry_settings
from composeplat.local.held_ports import check_ports, close_all, hold_ports
from composeplat.local.images import File, Image, push
from composeplat.local.kernel import load_modules
from composeplat.local.layout import NODE, PAUSE_IMAGE, STORAGE_CLASS, Layout
from composeplat.local.networks import find_slirp4netns, network_commands
from composeplat.local.own_access import own_access
from composeplat.local.packages import cni_folder, need_packages, search_path
from composeplat.local.parts import Programs, make_files, make_parts
from composeplat.local.private_folder import check_path, make_private, remove_folder, secure_folder
from composeplat.local.running_settings import check_same_settings, note_settings
from composeplat.local.sized_volumes import mount_commands
from composeplat.local.start_limit import StartLimit, find_reached
from composeplat.local.states import Status, read_states
from composeplat.local.supervisor import is_listening
from composeplat.local.upgrade import check_upgrade, note_version
from composeplat.system.atomic import write_private
from composeplat.system.deadline import Deadline, poll
from composeplat.system.locks import hold_lock
from composeplat.system.processes import ProcessId, python_module
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import (
    BUILDKITD,
    BUILDX,
    CLUSTER_TOOLS,
    CONTAINERD,
    CONTAINERD_SHIM,
    COREDNS,
    CTR,
    FRONTDOOR,
    KUBE,
    MIRROR,
    REGISTRY,
)

#: For the next part or wait, not for the whole start.
_START_TIMEOUT_S = 180.0
_STOP_TIMEOUT_S = 20.0
_POLL_INTERVAL_S = 0.1
#: How long the supervisor may take to note itself.
_NOTE_TIMEOUT_S = 60.0
_NOTE_POLL_INTERVAL_S = 0.01
#: A part that has been started so often will not run by being started again.
_MAX_STARTS = 8
#: Folders where programs keep notes of pods, which end with the cluster: inside it, they are empty at each start.
_EMPTIED_FOLDERS = ("/var/lib/cni", "/run/netns", "/var/log/containers")
#: Variables by which Go programs decide when they collect garbage.
_GO_MEMORY = ("GOGC", "GOMEMLIMIT")
#: Supervisors that this process started: they outlive it, and Python is not to complain of that.
_SUPERVISORS: list[subprocess.Popen[bytes]] = []


class LocalCluster:
    title = "the local cluster"
    kube = KUBE

    def __init__(self, layout: Layout, environment: Mapping[str, str]) -> None:
        self.layout = layout
        self.environment = environment

    # looking

    def choose_ports(self, ports: Mapping[str, int]) -> None:
        """Take the ports that are asked for, else those of the last time, else the usual ones."""
        names = set(asdict(self.layout.host_ports))
        chosen = {name: port for name, port in {**self._known_ports(), **ports}.items() if name in names}
        self.layout = replace(self.layout, host_ports=replace(self.layout.host_ports, **chosen))

    def _known_ports(self) -> dict[str, int]:
        """The ports of the last start; none where there was no start, or the file can't be read."""
        try:
            known = json.loads(self.layout.ports_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}

    @property
    def access(self) -> Access:
        return own_access(self.layout.keys, self.layout.host_ports.api)

    def status(self) -> Status:
        supervisor = self._supervisor()
        if supervisor is None:
            return Status(running=False)
        return Status(running=True, pid=supervisor.pid, parts=read_states(self.layout.states))

    def _supervisor(self) -> ProcessId | None:
        """The supervisor's process, if the one that was started is still there; a number used again is not it."""
        try:
            known = ProcessId.from_data(json.loads(self.layout.supervisor.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return None
        return known if known is not None and known.is_running else None

    # starting

    def start(self) -> bool:
        """Start the cluster and wait until it can be used, and return whether it was not running before."""
        self._check_machine()
        with self._lock():
            if self._supervisor() is not None:
                self._check_ports_are_same()
                check_same_settings(self.layout, self.title)
                # A start that ended before the cluster was ready may not have come to its images.
                self._wait_until_ready(None if self.layout.ready_mark.exists() else self._programs())
                self.layout.ready_mark.touch()
                return False
            check_upgrade(self.layout, self.kube.version)
            self._clean()
            check_ports(self.host_ports)
            programs = self._programs()
            make_certificates(self.layout, self.environment)
            self._write_files(programs)
            with progress.step(f"starting {self.title}", usual_seconds=20):
                self._launch(programs)
                self._wait_until_ready(programs)
            self.layout.ready_mark.touch()
            return True

    def _check_machine(self) -> None:
        elsewhere = "use kind, k3d or Docker Desktop there: whatever your kubeconfig names will do"
        if sys.platform != "linux":
            raise MissingPiece("the local cluster runs on Linux only", elsewhere)
        if os.geteuid() != 0:
            raise MissingPiece(
                "the local cluster needs root, to make namespaces and mounts", f"run it as root, or {elsewhere}"
            )
        # Before programs are built, which takes long.
        check_path(self.layout.folder)
        check_cgroups()

    def _programs(self) -> Programs:
        need_packages(self.environment)
        search = search_path(self.environment)
        load_modules(search)
        tools = {tool.name: tool for tool in (*CLUSTER_TOOLS, BUILDKITD, self.kube)}
        toolchain = Toolchain(self.environment)
        found, buildx = toolchain.need_all(tools.values()), toolchain.find(BUILDX)
        return Programs(
            kube=str(found[self.kube.name].path),
            coredns=str(found[COREDNS.name].path),
            registry=str(found[REGISTRY.name].path),
            frontdoor=str(found[FRONTDOOR.name].path),
            mirror=str(found[MIRROR.name].path),
            environment=self.environment,
            buildkitd=str(found[BUILDKITD.name].path),
            containerd=str(found[CONTAINERD.name].path),
            shim=str(found[CONTAINERD_SHIM.name].path),
            python=sys.executable,
            cni=cni_folder(),
            search_path=search,
            slirp4netns=find_slirp4netns(self.layout, search),
            ctr=str(found[CTR.name].path),
            buildx=str(buildx.path) if buildx else "",
            registries=read_registry_settings(self.environment),
        )

    def _check_ports_are_same(self) -> None:
        if self._known_ports() != asdict(self.layout.host_ports):
            raise ComposeplatError(f"{self.title} is running with other ports", "stop it, then start it with these")

    @property
    def host_ports(self) -> dict[str, int]:
        """The ports of this machine that the cluster listens on, by the names of their options."""
        return {name: outside for name, (outside, _) in self.layout.host_ports.pairs().items()}

    def _write_files(self, programs: Programs) -> None:
        token = (self.layout.keys / "token").read_text(encoding="utf-8").strip()
        for folder in self._run_folders():
            make_private(folder)
        for path, text in self._files(programs, token).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_private(path, text)
        self._prepare_node(programs)
        note_version(self.layout, self.kube.version)
        write_private(self.layout.ports_file, json.dumps(asdict(self.layout.host_ports)))
        for folder in (self.layout.logs, self.layout.volumes):
            folder.mkdir(parents=True, exist_ok=True)
        note_settings(self.layout)

    def _run_folders(self) -> tuple[Path, ...]:
        return self.layout.run, self.layout.build_run

    def _prepare_node(self, programs: Programs) -> None:
        prepare_builder(self.layout, self.environment, programs.registries)
        note_other_version(self.layout, CONTAINERD.version)

    def _files(self, programs: Programs, token: str) -> dict[Path, str]:
        return make_files(self.layout, programs, token)

    def _launch(self, programs: Programs) -> None:
        make_cgroups(self.layout.cgroup, search_path=programs.search_path)
        # The supervisor keeps them until the last part has ended.
        held = hold_ports(self.host_ports, self.layout.build_mirror_host)
        network = os.open("/proc/self/ns/net", os.O_RDONLY)
        processes = os.open("/proc", os.O_RDONLY)
        try:
            args = ["unshare", "--net", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child=KILL"]
            args += ["--mount-proc", "--"]
            descriptors = [network, processes, *(port.fileno() for port in held)]
            plan = {**self._plan(programs, network), "note": self._note(processes)}
            process = self._supervise(args, plan, programs.search_path, descriptors)
        finally:
            os.close(network)
            os.close(processes)
            close_all(held)
        self._await_note(process)

    def _supervise(
        self, before: list[str], plan: dict[str, Any], path: str, descriptors: list[int]
    ) -> subprocess.Popen[bytes]:
        """Start the supervisor, apart from this process."""
        place = self.layout.run / "plan.json"
        write_private(place, json.dumps(plan))
        with (self.layout.logs / "supervisor.log").open("ab") as log:
            process = subprocess.Popen(
                [*before, *python_module(sys.executable, "composeplat.local.supervisor"), str(place)],
                env={**self.environment, "PATH": path},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=descriptors,
            )
        _SUPERVISORS.append(process)
        return process

    def _note(self, processes: int) -> dict[str, Any]:
        """What the supervisor needs to note itself: this process may be killed before it could do that."""
        known = ProcessId.from_pid(os.getpid()).to_data()
        return {"path": str(self.layout.supervisor), "processes_fd": processes, "process": known}

    def _plan(self, programs: Programs, network: int) -> dict[str, Any]:
        return {
            "parts": [asdict(part) for part in make_parts(self.layout, programs)],
            "environment": self._part_environment(programs),
            "logs": str(self.layout.logs),
            "states": str(self.layout.states),
            "network_fd": network,
            "before": [
                ["mount", "--make-rshared", "/"],
                *builder_mounts(self.layout, programs.buildkitd),
                *(["sh", "-c", f"mkdir -p {path} && mount -t tmpfs tmpfs {path}"] for path in _EMPTIED_FOLDERS),
                *network_commands(),
                *mount_commands(self.layout.volumes, programs.python),
            ],
        }

    def _part_environment(self, programs: Programs) -> dict[str, str]:
        """The environment of the parts: of the user's, only how much memory a Go program takes."""
        memory = {name: self.environment[name] for name in _GO_MEMORY if name in self.environment}
        return {"PATH": programs.search_path, "HOME": str(self.layout.folder), **memory}

    def _await_note(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the supervisor has noted itself: ``unshare`` waits for it outside."""
        deadline = Deadline(_NOTE_TIMEOUT_S)
        poll(lambda: process.poll() is not None or self._supervisor(), deadline, interval_s=_NOTE_POLL_INTERVAL_S)
        if self._supervisor() is None:
            raise ComposeplatError(f"the local cluster did not start: {self._last_log_lines('supervisor')}")

    def _last_log_lines(self, name: str) -> str:
        try:
            lines = (self.layout.logs / f"{name}.log").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            lines = []
        return " | ".join(lines[-3:]) or "its log is empty"

    # waiting

    def _wait_until_ready(self, programs: Programs | None) -> None:
        limit = StartLimit(_START_TIMEOUT_S)
        self._wait_until(
            "its registry", limit, lambda: is_listening(f"tcp:127.0.0.1:{self.layout.host_ports.registry}")
        )
        if programs is not None:
            self._wait_until("its registry", limit, lambda: self._push_images(programs))
        with Api(self.access) as api:
            self._wait_until("its API server", limit, lambda: api.text("/readyz") == "ok")
            self._wait_until("its node", limit, lambda: _is_ready(api.get(kind_path("v1", "Node") + f"/{NODE}")))
            classes = kind_path("storage.k8s.io/v1", "StorageClass")
            self._wait_until("its storage class", limit, lambda: bool(api.get(f"{classes}/{STORAGE_CLASS}")))
            accounts = "/api/v1/namespaces/default/serviceaccounts/default"
            self._wait_until("its service accounts", limit, lambda: bool(api.get(accounts)))
            self._wait_until("its parts", limit, lambda: not self.status().broken)

    def _push_images(self, programs: Programs) -> bool:
        registry = ("127.0.0.1", self.layout.host_ports.registry)
        frontdoor = File(Path(programs.frontdoor).read_bytes())
        push(Image(files={"frontdoor": frontdoor}, entrypoint=("/frontdoor", "pause")), PAUSE_IMAGE, registry)
        push(fill_image(frontdoor, self.environment), FILL_NAME, registry)
        return True

    def _wait_until(self, what: str, limit: StartLimit, is_done: Callable[[], bool]) -> None:
        cause: Exception | None = None
        limit.note(find_reached(what, None))

        def check() -> bool:
            nonlocal cause
            try:
                if is_done():
                    return True
            except (ApiError, ComposeplatError) as error:
                cause = error
            if self._supervisor() is None:
                raise ComposeplatError(f"the local cluster ended while starting: {self._last_log_lines('supervisor')}")
            status = self.status()
            if status.most_starts > _MAX_STARTS:
                raise self._not_ready(what, cause) from cause
            limit.note(find_reached(what, status.parts))
            return False

        if not poll(check, limit.deadline, interval_s=_POLL_INTERVAL_S):
            raise self._not_ready(what, cause) from cause

    def _not_ready(self, what: str, cause: Exception | None) -> ComposeplatError:
        broken = ", ".join(f"{name} ({self._last_log_lines(name)})" for name in self.status().broken)
        return ComposeplatError(
            f"the local cluster is not ready: waited for {what}" + (f": {cause}" if cause else ""),
            f"parts that don't run: {broken}" if broken else f"logs are in {self.layout.logs}",
        )

    # stopping

    def stop(self) -> bool:
        """End the cluster, keeping its data, and return whether it was running."""
        with self._lock():
            return self._end()

    def _end(self) -> bool:
        supervisor = self._supervisor()
        if supervisor is not None:
            with progress.step(f"stopping {self.title}", usual_seconds=5):
                if not supervisor.terminate(grace_s=_STOP_TIMEOUT_S):
                    supervisor.kill()
        self._clean()
        return supervisor is not None

    def _clean(self) -> None:
        """Take away what outlives the namespaces: cgroups and the folders of sockets."""
        remove_cgroups(self.layout.cgroup)
        for folder in (self.layout.run, self.layout.build_run):
            shutil.rmtree(folder, ignore_errors=True)

    def delete(self) -> None:
        """Remove the data too; a start that comes meanwhile waits until all of it is gone."""
        with self._lock():
            self._end()
            remove_folder(self.layout.folder, last=self.layout.lock.name)

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """One start or stop at a time, in a folder that nobody else can reach into, also after a deletion."""
        secure_folder(self.layout.folder, self.environment)
        message = "waiting for another start or stop of the local cluster"
        with hold_lock(self.layout.lock, lambda: progress.note(message)):
            secure_folder(self.layout.folder, self.environment)
            yield


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = {c["type"]: c["status"] for c in node.get("status", {}).get("conditions", [])}
    return conditions.get("Ready") == "True"
