"""The workspace of one stack on this machine: its folder, lock and state, and the variables of Pulumi's environment.

Owns the preparation of a stack for an operation: programs and plugins are in place, settings are written, processes of
a killed run have ended, and the state can be read.
Must not know the operation: it lends the lock and the state to any of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from composeplat import progress
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.backend import Backend, DataFolder, find_backend, find_data_folder, writing
from composeplat.engine.backend_health import health_of
from composeplat.engine.moved_mark import forget_begun, moved_mark, read_moved
from composeplat.engine.new_state import packs_states, read_settings, settings_text, write_new_state
from composeplat.engine.operation_log import log_operation
from composeplat.engine.own_processes import OwnProcesses
from composeplat.engine.passphrase import PassphraseChange, salt_of, settings_of
from composeplat.engine.pulumi_errors import FREE_SPACE, FULL_DISK, explain
from composeplat.engine.pulumi_process import Event, Interrupts, PulumiResult, PulumiRunner, end_leftovers, read_note
from composeplat.engine.pulumi_variables import passed_variables, program_variables
from composeplat.engine.stack_lock import hold_stack_lock, was_left_by_us
from composeplat.engine.state_references import is_in_order
from composeplat.engine.target import Target
from composeplat.system.atomic import write_private
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import DOCKER_BUILD_PROVIDER, KUBERNETES_PROVIDER, PULUMI

_MAX_STATES = 10
_MIN_FREE_BYTES = 256 * 1024
_STATE_COPIES = 6
"""How many copies of the state an operation writes, its backups and history among them."""
_PLUGINS = {"kubernetes": KUBERNETES_PROVIDER, "docker-build": DOCKER_BUILD_PROVIDER}


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
        progress.hide(self.backend.secrets)
        self.folder = self.data_folder.stack(self.backend.url, self.environment_name, self.namespace)
        self.backend = self.backend.for_stack(PassphraseChange(self.folder).file)
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)

    # before an operation

    def prepare(self, *, builds: bool) -> None:
        """Put programs, plugins and settings in place."""
        toolchain = Toolchain(self.environment)
        with self.interrupts.raised_at_once():
            program = toolchain.need(PULUMI).path
            plugins = {
                name: toolchain.need(tool) for name, tool in _PLUGINS.items() if name != "docker-build" or builds
            }
        for name, found in plugins.items():
            self.data_folder.place_plugin(name, found.tool.version, found.path)
        project = {"name": self.environment_name, "runtime": "python", "description": "Made by platform deploy."}
        with writing(self.folder):
            variables = self._variables(program)
            write_private(self.folder / "Pulumi.yaml", json.dumps(project, indent=1) + "\n")
        self.runner = PulumiRunner(
            program=program,
            folder=self.folder,
            variables=variables,
            interrupts=self.interrupts,
            health=health_of(self.backend.url, self.environment),
        )

    def _variables(self, program: Path) -> dict[str, str]:
        return {
            **passed_variables(self.environment),
            **self.backend.variables,
            **self.builder,
            **program_variables(program, self.data_folder, self.environment),
            "KUBECONFIG": self.target.kubeconfig_for(self.folder),
            # Fields that someone else has changed by hand are ours again with the next deploy.
            "PULUMI_K8S_ENABLE_PATCH_FORCE": "true",
            "PULUMI_K8S_CLIENT_QPS": "200",
            "PULUMI_K8S_CLIENT_BURST": "400",
        }

    @contextlib.contextmanager
    def lock(self, what: str) -> Iterator[None]:
        """Hold the lock of the stack for an operation; the kernel releases it when this process ends."""
        with self.hold_lock(what), log_operation(self.folder, what, lambda: self.interrupts.count > 0):
            with writing(self.folder):
                self._end_leftovers(self.folder / "running.json")
                self._mend_state()
                # Operations that are not prepared run no Pulumi, and need no state to be open.
                if hasattr(self, "runner"):
                    self._check_moved()
                    self._end_passphrase_change()
                if what != "preview":
                    self.record_file.unlink(missing_ok=True)
                    forget_begun(self.folder)
                    self._check_free_space()
            self._read.clear()
            yield

    @contextlib.contextmanager
    def hold_lock(self, what: str) -> Iterator[None]:
        """Hold the lock of the stack, and change nothing."""
        with hold_stack_lock(self.folder, self.environment_name, self.namespace, what):
            yield

    def _end_passphrase_change(self) -> None:
        """End a change of the passphrase that was interrupted, and use the passphrase that the state has."""
        change = PassphraseChange(self.folder)
        if not change.is_pending:
            return
        progress.note(change.resolve(salt_of(self.read_state() or {})))
        self.backend = self.backend.for_stack(change.file)
        self.runner.variables = {**self.runner.variables, **self.backend.variables}

    def _check_moved(self) -> None:
        """Refuse to begin a new state where `platform state move` has removed one."""
        self._read.clear()
        moved = read_moved(self.folder)
        if moved and self.read_state() is None:
            raise ComposeplatError(
                f"the state of environment '{self.environment_name}' in namespace '{self.namespace}'"
                f" was moved to {moved}",
                f"set PULUMI_BACKEND_URL to that backend; to begin a new state here, delete {moved_mark(self.folder)}",
            )

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
        # A tmpfs without a limit, and file systems of programs that count no blocks, say that they have none.
        if disk.f_blocks and disk.f_bavail * disk.f_frsize < _MIN_FREE_BYTES + _STATE_COPIES * state_bytes:
            raise ComposeplatError(FULL_DISK, FREE_SPACE)

    def _end_leftovers(self, note: Path) -> None:
        cut_off = read_note(note)
        if cut_off is not None:
            # A kill may have come between the two notes of it.
            self._own_processes.add(cut_off)
        self.was_cut_off = end_leftovers(note)

    @property
    def _own_processes(self) -> OwnProcesses:
        return OwnProcesses(self.folder)

    # the state

    @property
    def state_file(self) -> Path | None:
        """The file with the state of this stack; none if the backend has no files here, or packs them."""
        if self.backend.folder is None:
            return None
        path = self.backend.folder / ".pulumi" / "stacks" / self.environment_name / f"{self.namespace}.json"
        return None if packs_states(self.environment) or path.with_name(f"{path.name}.gz").exists() else path

    def _mend_state(self) -> None:
        """Back up a readable state; restore the last backup of an unreadable one."""
        path = self.state_file
        if path is None or not path.exists():
            return
        self._remove_broken_metadata(path)
        copies = self.folder / "states"
        copies.mkdir(exist_ok=True)
        known = sorted(copies.glob("*.json"), key=lambda copy: (len(copy.stem), copy.stem))
        try:
            content = path.read_text(encoding="utf-8")
            json.loads(content)["checkpoint"]
        except OSError as error:
            # It may be sound, and newer than each copy.
            reason = (error.strerror or str(error)).lower()
            raise ComposeplatError(f"can't read the state in '{path}': {reason}", "make it readable for you") from error
        except (ValueError, KeyError, TypeError):
            self._restore(path, known)
            return
        if not known or known[-1].read_text(encoding="utf-8") != content:
            # A clock that was ahead must not leave older copies last.
            number = max([time.time_ns(), *(int(copy.stem) + 1 for copy in known[-1:])])
            write_private(copies / f"{number}.json", content)
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
            try:
                os.link(path, broken)
            except OSError:
                shutil.copy2(path, broken)
            write_private(path, copies[-1].read_text(encoding="utf-8"))
            written = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(copies[-1].stat().st_mtime))
            successor = f"this machine's last copy, of {written}, replaces it, and may lack what others did since"
        else:
            # A new state follows; the labels identify the existing objects.
            path.replace(broken)
            successor = "a new one follows, as this machine has no copy"
        progress.note(f"the state in '{path}' can't be read, and is '{broken.name}' now: {successor}")

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
            try:
                checkpoint: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["checkpoint"]
            except (ValueError, KeyError, TypeError) as error:
                raise ComposeplatError(
                    f"the state in '{path}' is broken", "run this again: it begins with the last copy of the state"
                ) from error
            return checkpoint.get("latest") or {}
        return self._export()

    def reveal_state(self) -> dict[str, Any]:
        """The deployment in the state with its secrets in plain text, which must not leave this process."""
        return self._export("--show-secrets") or {}

    def _export(self, *options: str) -> dict[str, Any] | None:
        exported = self.runner.query("stack", "export", *options, "--stack", self.namespace)
        if exported.status:
            if re.search(r"(?i)no stack named|stack \S+ not found", exported.output):
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
        elif state:
            wanted = settings_of(state)
            # Another machine may have changed the passphrase, and with it the salt.
            if not settings.exists() or (wanted and read_settings(settings) != wanted):
                with writing(settings):
                    write_private(settings, settings_text(wanted))
        elif path is not None:
            # Nothing is encrypted yet: the salt is of a run before the first deploy, such as a preview, and its
            # passphrase may have been another one.
            with writing(settings):
                settings.unlink(missing_ok=True)

    def secret_settings(self) -> dict[str, str]:
        """The settings for the secrets in the state, for plain Pulumi; empty without one."""
        if self.state_file is not None:
            # The next operation mends a broken state.
            with contextlib.suppress(ComposeplatError):
                if found := settings_of(self.read_state() or {}):
                    return found
        return read_settings(self.folder / f"Pulumi.{self.namespace}.yaml")

    def repair_order(self) -> bool:
        """Sort the resources of a state in which one comes before a dependency of its own; return whether one did."""
        if is_in_order(self.read_state() or {}):
            return False
        repaired = self.runner.run_locked("state", "repair", "--stack", self.namespace, "--yes")
        self._read.clear()
        if repaired.status:
            raise explain(repaired.output)
        return True

    def drop_pending(self) -> None:
        """Remove pending operations, which a kill leaves: Pulumi would warn for ever, and labels find their objects."""
        self.change_state(
            lambda state: {**state, "pending_operations": []} if state.get("pending_operations") else None
        )

    def change_state(self, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
        """Replace the state by what ``change`` makes of it; None leaves it."""
        if change(self.read_state() or {}) is None:
            return
        # Another machine's run may have written more since it was read.
        self._read.clear()
        changed = change(self.read_state() or {})
        if changed is None:
            return
        path = self.folder / "mended.json"
        with writing(path):
            write_private(path, json.dumps({"version": 3, "deployment": changed}))
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
        """Break Pulumi's own lock if all its holders are ended processes of ours; return whether it was broken."""
        if not was_left_by_us(output, self.folder, state_is_private=self._has_private_state):
            return False
        return self.runner.run_locked("cancel", "--yes", "--stack", self.namespace).status == 0

    @property
    def _has_private_state(self) -> bool:
        """Whether the state is in our own data folder, which no other machine should use."""
        return self.backend.is_within(self.data_folder.path)
