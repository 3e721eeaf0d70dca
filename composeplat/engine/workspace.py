"""The workspace of one stack on this machine: its folder, lock and state, and the variables of Pulumi's environment.

Owns the preparation of a stack for an operation: programs and plugins are in place, settings are written, processes of
a killed run have ended, and the state can be read.
Must not know the operation: it lends the lock and the state to any of them.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from composeplat.diagnostics import ComposeplatError, MissingPiece
from composeplat.engine.backend import Backend, DataFolder, find_backend, find_data_folder, writing
from composeplat.engine.new_state import read_salt, write_new_state
from composeplat.engine.own_processes import OwnProcesses, is_locked_out, lock_holders
from composeplat.engine.pulumi_flags import FLAG_VARIABLES
from composeplat.engine.pulumi_process import Event, Interrupts, PulumiResult, PulumiRunner, end_leftovers, read_note
from composeplat.engine.target import Target
from composeplat.system.atomic import write_private
from composeplat.system.locks import Locked, try_lock
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import DOCKER_BUILD_PROVIDER, KUBERNETES_PROVIDER, PULUMI

_MAX_STATES = 10
_MIN_FREE_BYTES = 256 * 1024
_STATE_COPIES = 6
"""How many copies of the state an operation writes, its backups and history among them."""
_FULL_DISK, _FREE_SPACE = "the state can't be written: the disk is full", "free some space, then run this again"
_PATHS = (
    "PULUMI_CONFIG_PASSPHRASE_FILE",
    "DOCKER_CONFIG",
    "BUILDX_CONFIG",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
)
_NOT_PASSED = ("PULUMI_K8S_", *FLAG_VARIABLES)
_PLUGINS = {"kubernetes": KUBERNETES_PROVIDER, "docker-build": DOCKER_BUILD_PROVIDER}


class Busy(ComposeplatError):
    """Another operation is running on the same stack."""


@dataclass(slots=True, kw_only=True)
class Workspace:
    environment_name: str
    namespace: str
    target: Target
    environment: Mapping[str, str]
    interrupts: Interrupts = field(default_factory=Interrupts)
    builder: Mapping[str, str] = field(default_factory=dict)
    data_folder: DataFolder = field(init=False)
    backend: Backend = field(init=False)
    cluster: str = field(init=False)
    folder: Path = field(init=False)
    runner: PulumiRunner = field(init=False)
    was_cut_off: bool = False
    _read: list[dict[str, Any] | None] = field(default_factory=list)
    """The state, if it was read and no run has changed it since."""

    def __post_init__(self) -> None:
        self.cluster = self.target.identity()
        self.data_folder = find_data_folder(self.environment)
        self.data_folder.prepare()
        self.backend = find_backend(self.environment, self.data_folder, self.cluster)
        self.folder = self.data_folder.stack(self.backend.url, self.environment_name, self.namespace)
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)

    # before an operation

    def prepare(self, *, builds: bool) -> None:
        """Put programs, plugins and settings in place."""
        toolchain = Toolchain(self.environment)
        program = toolchain.need(PULUMI).path
        for name, tool in _PLUGINS.items():
            if name != "docker-build" or builds:
                self.data_folder.place_plugin(name, tool.version, toolchain.need(tool).path)
        project = {"name": self.environment_name, "runtime": "python", "description": "Made by platform deploy."}
        with writing(self.folder):
            variables = self._variables(program)
            write_private(self.folder / "Pulumi.yaml", json.dumps(project, indent=1) + "\n")
        self.runner = PulumiRunner(program=program, folder=self.folder, variables=variables, interrupts=self.interrupts)

    def _variables(self, program: Path) -> dict[str, str]:
        passed = {key: value for key, value in self.environment.items() if not key.startswith(_NOT_PASSED)}
        # Pulumi runs in another folder, so relative paths have to become absolute.
        passed.update({key: os.path.abspath(passed[key]) for key in _PATHS if passed.get(key)})
        return {
            **passed,
            **self.backend.variables,
            **self.builder,
            "PATH": f"{program.parent}{os.pathsep}{self.environment.get('PATH', '')}",
            "KUBECONFIG": self.target.kubeconfig_for(self.folder),
            "PULUMI_HOME": str(self.data_folder.pulumi),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_AUTOMATION_API": "true",
            # Without it there is no flag for a log of events.
            "PULUMI_DEBUG_COMMANDS": "true",
            # Fields that someone else has changed by hand are ours again with the next deploy.
            "PULUMI_K8S_ENABLE_PATCH_FORCE": "true",
            "PULUMI_K8S_CLIENT_QPS": "200",
            "PULUMI_K8S_CLIENT_BURST": "400",
        }

    @contextlib.contextmanager
    def lock(self, what: str) -> Iterator[None]:
        """Hold the lock of the stack for an operation; the kernel releases it when this process ends."""
        with self.hold_lock(what):
            with writing(self.folder):
                self._end_leftovers(self.folder / "running.json")
                self._mend_state()
                if what != "preview":
                    self.record_file.unlink(missing_ok=True)
                    self._check_free_space()
            self._read.clear()
            yield

    @contextlib.contextmanager
    def hold_lock(self, what: str) -> Iterator[None]:
        """Hold the lock of the stack, and change nothing."""
        with contextlib.ExitStack() as held:
            with writing(self.folder):
                self._take_lock(what, held)
            yield

    @property
    def record_file(self) -> Path:
        """The record of the last operation, if it ended well; each that may change something removes it first."""
        return self.folder / "unchanged.json"

    def _check_free_space(self) -> None:
        """Refuse to begin where the state may not fit: Pulumi replaces it by half a file if the disk fills up."""
        path = self.state_file
        if path is None:
            return
        state_bytes = path.stat().st_size if path.exists() else 0
        # The backend may be on another disk than the data folder, and not made yet.
        disk = os.statvfs(next(folder for folder in path.parents if folder.exists()))
        if disk.f_bavail * disk.f_frsize < _MIN_FREE_BYTES + _STATE_COPIES * state_bytes:
            raise ComposeplatError(_FULL_DISK, _FREE_SPACE)

    def _end_leftovers(self, note: Path) -> None:
        cut_off = read_note(note)
        if cut_off is not None:
            # A kill may have come between the two notes of it.
            self._own_processes.add(cut_off)
        self.was_cut_off = end_leftovers(note)

    @property
    def _own_processes(self) -> OwnProcesses:
        return OwnProcesses(self.folder)

    def _take_lock(self, what: str, held: contextlib.ExitStack) -> None:
        path = self.folder / "lock"
        note = json.dumps({"what": what, "pid": os.getpid(), "since": time.strftime("%H:%M:%S")})
        try:
            held.enter_context(try_lock(path, note))
        except Locked as error:
            raise self._busy(path) from error

    def _busy(self, path: Path) -> Busy:
        try:
            held = json.loads(path.read_text(encoding="utf-8"))
            who = f"process {held['pid']} has been running '{held['what']}' since {held['since']}"
        except (OSError, ValueError, KeyError):
            who = "another process holds the lock"
        return Busy(
            f"environment '{self.environment_name}' in namespace '{self.namespace}' is busy: {who}",
            "wait until it has finished, then run this again",
        )

    # the state

    @property
    def state_file(self) -> Path | None:
        """The file with the state of this stack; none if the backend has no files here."""
        if self.backend.folder is None:
            return None
        return self.backend.folder / ".pulumi" / "stacks" / self.environment_name / f"{self.namespace}.json"

    def _mend_state(self) -> None:
        """Back up a readable state; restore the last backup of an unreadable one."""
        path = self.state_file
        if path is None or not path.exists():
            return
        self._remove_broken_metadata(path)
        copies = self.folder / "states"
        copies.mkdir(exist_ok=True)
        known = sorted(copies.glob("*.json"))
        try:
            content = path.read_text(encoding="utf-8")
            json.loads(content)["checkpoint"]
        except (OSError, ValueError, KeyError, TypeError):
            self._restore(path, known)
            return
        if not known or known[-1].read_text(encoding="utf-8") != content:
            write_private(copies / f"{time.time_ns()}.json", content)
            for old in known[: -_MAX_STATES + 1]:
                old.unlink(missing_ok=True)

    @staticmethod
    def _remove_broken_metadata(state: Path) -> None:
        """Remove a metadata file that can't be read: Pulumi writes it in place, fails on it, and needs none."""
        for metadata in (state.with_name(f"{state.name}.attrs"), state.parents[2] / "meta.yaml.attrs"):
            try:
                json.loads(metadata.read_text(encoding="utf-8"))
            except FileNotFoundError:
                continue
            except ValueError:
                metadata.unlink(missing_ok=True)

    def _restore(self, path: Path, copies: list[Path]) -> None:
        broken = path.with_name(f"{path.name}.broken")
        broken.unlink(missing_ok=True)
        self.was_cut_off = True
        if copies:
            # A state exists at each moment: a missing file would mean that the stack does not exist.
            os.link(path, broken)
            write_private(path, copies[-1].read_text(encoding="utf-8"))
        else:
            # A new state follows; the labels identify the existing objects.
            path.replace(broken)

    def follow(
        self, args: list[str], on_event: Callable[[Event], None], on_tick: Callable[[], None], more: Mapping[str, str]
    ) -> PulumiResult:
        """Run an operation of Pulumi, which may change the state."""
        self._read.clear()
        return self.runner.follow(args, on_event, on_tick, more)

    def read_state(self) -> dict[str, Any] | None:
        """The deployment in the state; none if the stack does not exist."""
        if not self._read:
            self._read.append(self._load_state())
        return self._read[0]

    def _load_state(self) -> dict[str, Any] | None:
        path = self.state_file
        if path is not None:
            if not path.exists():
                return None
            checkpoint: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["checkpoint"]
            return checkpoint.get("latest") or {}
        return self._export()

    def reveal_state(self) -> dict[str, Any]:
        """The deployment in the state with its secrets in plain text, which must not leave this process."""
        return self._export("--show-secrets") or {}

    def _export(self, *options: str) -> dict[str, Any] | None:
        exported = self.runner.query("stack", "export", *options, "--stack", self.namespace)
        if exported.status:
            if re.search(r"no stack named|not found", exported.output):
                return None
            raise explain(exported.output)
        found: dict[str, Any] = json.loads(exported.output)["deployment"]
        return found

    def make_stack(self) -> None:
        """Create the stack, and write the salt of its secrets where Pulumi looks for it."""
        settings = self.folder / f"Pulumi.{self.namespace}.yaml"
        path = self.state_file if self._has_private_state else None
        state = self.read_state()
        if state is None:
            self._read.clear()
            with writing(settings):
                settings.unlink(missing_ok=True)
                if write_new_state(path, self.environment_name, self.namespace, self.environment):
                    return
            made = self.runner.run_locked("stack", "init", "--stack", self.namespace)
            if made.status and "already exists" not in made.output:
                raise explain(made.output)
        elif state and not settings.exists():
            salt = ((state.get("secrets_providers") or {}).get("state") or {}).get("salt")
            with writing(settings):
                write_private(settings, f"encryptionsalt: {salt}\n" if salt else "{}\n")

    def salt(self) -> str:
        """The salt of the secrets in the state, for plain Pulumi; empty without one."""
        return read_salt(self.folder / f"Pulumi.{self.namespace}.yaml")

    def drop_pending(self, state: dict[str, Any]) -> None:
        """Remove pending operations, which a kill leaves: Pulumi would warn for ever, and labels find their objects."""
        if not state.get("pending_operations"):
            return
        sound = {"version": 3, "deployment": {**state, "pending_operations": []}}
        path = self.folder / "mended.json"
        with writing(path):
            write_private(path, json.dumps(sound))
        try:
            done = self.runner.run_locked("stack", "import", "--stack", self.namespace, "--file", str(path))
            if done.status and self.unlock(done.output):
                done = self.runner.run_locked("stack", "import", "--stack", self.namespace, "--file", str(path))
        finally:
            path.unlink(missing_ok=True)
            self._read.clear()
        if done.status:
            raise explain(done.output)

    def unlock(self, output: str) -> bool:
        """Break Pulumi's own lock if all its holders are ended processes of ours; return whether it was broken.

        Pulumi names a holder by user, host name and process id, all of which another machine may have too.
        """
        holders = lock_holders(output)
        here = (getpass.getuser(), socket.gethostname())
        if not holders or any((holder.user, holder.host) != here for holder in holders):
            return False
        if not self._own_processes.have_left(holders, state_is_private=self._has_private_state):
            return False
        return self.runner.run_locked("cancel", "--yes", "--stack", self.namespace).status == 0

    @property
    def _has_private_state(self) -> bool:
        """Whether the state is in our own data folder, which no other machine should use."""
        return self.backend.folder is not None and self.backend.folder.is_relative_to(self.data_folder.path)


#: The provider's error for a request that the API server did not answer; a refused request has no URL in it.
_NO_ANSWER = re.compile(
    r'"https?://[^"\s]*/(?:api|apis|openapi|version)(?:[/?][^"\s]*)?": (?!context canceled|tls: failed|x509)'
    r"|Kubernetes cluster is unreachable: (?!.*(?:x509|Unauthorized))|Please retry\. Original error: "
    r"|the server is currently unable to handle the request|unable to return a response in the time allotted"
    # By the API server itself, when it has too much to do.
    r"|Timeout: request did not complete within requested timeout"
    r"|etcdserver: |Too Many Requests"
    # Said by one that has just begun, too, and does not know yet which are taken.
    r"|failed to allocate a serviceIP",
)


#: The provider's error for a credential that the API server did not accept; registries have another error.
_REFUSED = re.compile(
    r"(?:Kubernetes API server|Preview failed|Kubernetes cluster is unreachable): (?:.*: )?Unauthorized"
    r"|the server has asked for the client to provide credentials"
)


def is_refused(output: str) -> bool:
    """Return whether Pulumi failed because its credential had expired: the next run gets a new one."""
    return _REFUSED.search(output) is not None


def broke_off(output: str) -> bool:
    """Return whether Pulumi failed because the cluster did not answer: another run may continue once it does."""
    return _NO_ANSWER.search(output) is not None


def explain(output: str) -> ComposeplatError:
    """Explain a failure of Pulumi in a sentence."""
    text = " ".join(line.strip().removeprefix("error: ") for line in output.splitlines() if line.strip())
    if re.search(r"incorrect passphrase|passphrase must be set", text):
        return MissingPiece(
            "the state is encrypted with another passphrase",
            "set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE to the one it was made with",
        )
    unread = re.search(r"unable to read PULUMI_CONFIG_PASSPHRASE_FILE: (.*)", text)
    if unread:
        return MissingPiece(f"the passphrase of the state can't be read: {unread[1]}")
    if is_locked_out(text) or "ConcurrentUpdate" in text:
        holder = re.search(r"created by (\S+) \(pid (\d+)\) at (\S+)", text)
        who = f" by {holder[1]}, process {holder[2]}, since {holder[3]}" if holder else ""
        locks = [folder + path for folder, path in re.findall(r"file://(/[^\s?]*)(?:\?[^\s/]*)?(/\S+\.json)", text)]
        fix = f"delete {', '.join(locks)}" if locks else "pulumi cancel"
        return Busy(f"the stack is locked{who}", f"wait until that has ended; if it is gone for good: {fix}")
    if (failure := _explain_cluster(text)) is not None:
        return failure
    if re.search(r"no space left on device", text):
        return ComposeplatError(_FULL_DISK, _FREE_SPACE)
    if re.search(r"PULUMI_ACCESS_TOKEN|must be logged in|Unauthorized", text):
        return MissingPiece("the state backend requires a login", "pulumi login, or set PULUMI_ACCESS_TOKEN")
    if re.search(r"permission denied|read-only file system", text):
        return ComposeplatError(f"the state can't be written: {text[:300]}")
    return ComposeplatError(f"Pulumi failed: {text[-600:]}")


def _explain_cluster(text: str) -> MissingPiece | None:
    """Explain a failure of the cluster in a sentence; none if the cluster is not the cause."""
    if is_refused(text):
        return MissingPiece(
            "the cluster does not accept the credentials that the kubeconfig gives Pulumi", "kubectl auth whoami"
        )
    if broke_off(text):
        return MissingPiece(
            f"the cluster stopped answering: {text[-600:]}", "check that it answers, then run this again"
        )
    return None
