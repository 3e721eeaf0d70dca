"""The state of one environment in one backend, without a cluster and without the environment's program.

Owns reading, writing and removing it through Pulumi, with one passphrase or another. Plain secrets go through pipes
and stay in memory. Must not decide what is moved or changed: operations do.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from composeplat.diagnostics import ComposeplatError, MissingPiece
from composeplat.engine.backend import Backend, DataFolder, writing
from composeplat.engine.backend_health import BackendHealth, health_of
from composeplat.engine.backend_url import URL_VARIABLE, file_url
from composeplat.engine.new_state import read_salt
from composeplat.engine.passphrase import FILE_VARIABLE, VARIABLE, Passphrase, PassphraseChange, salt_of
from composeplat.engine.pulumi_errors import explain
from composeplat.engine.pulumi_process import Interrupts, PulumiResult, PulumiRunner
from composeplat.engine.pulumi_variables import passed_variables, program_variables
from composeplat.engine.stack_lock import hold_stack_lock, was_left_by_us
from composeplat.system.atomic import write_private
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import PULUMI

Deployment = dict[str, Any]
#: A stack with one resource has nothing deployed: the resource is the stack's own.
_EMPTY_RESOURCES = 1


def is_empty(state: Deployment) -> bool:
    return len(state.get("resources") or ()) <= _EMPTY_RESOURCES


class WrongPassphrase(MissingPiece):
    """The state has another passphrase than those that were tried."""

    def __init__(self, store: StateStore) -> None:
        super().__init__(
            f"the state of {store.what} in {store.backend.shown} has another passphrase",
            "set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE to the one it was made with; to move it,"
            " give --from-passphrase-file",
        )


@dataclass(kw_only=True)
class StateStore:
    backend: Backend
    data_folder: DataFolder
    environment_name: str
    namespace: str
    environment: Mapping[str, str]
    interrupts: Interrupts = field(default_factory=Interrupts)
    url_name: str = URL_VARIABLE
    """Where the URL of the backend was given, for messages."""

    @property
    def folder(self) -> Path:
        """The stack's, on this machine."""
        return self.data_folder.stack(self.backend.url, self.environment_name, self.namespace)

    def of(self, environment_name: str, namespace: str) -> StateStore:
        """Return the state of another environment of the same backend."""
        return replace(self, environment_name=environment_name, namespace=namespace)

    @property
    def change(self) -> PassphraseChange:
        return PassphraseChange(self.folder)

    @property
    def what(self) -> str:
        return f"environment '{self.environment_name}' in namespace '{self.namespace}'"

    @cached_property
    def _program(self) -> Path:
        return Toolchain(self.environment).need(PULUMI).path

    @contextlib.contextmanager
    def lock(self, what: str) -> Iterator[None]:
        """Hold the lock of the stack on this machine."""
        with hold_stack_lock(self.folder, self.environment_name, self.namespace, what):
            yield

    def runner(self, passphrase: Passphrase | None = None) -> PulumiRunner:
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_private(self.folder / "Pulumi.yaml", _project(self.environment_name))
        return self._runner(self.folder, {**self.backend.variables}, passphrase, self._health)

    @cached_property
    def _health(self) -> BackendHealth:
        return health_of(self.backend.url, self.environment)

    def _runner(
        self, folder: Path, variables: Mapping[str, str], passphrase: Passphrase | None, health: BackendHealth
    ) -> PulumiRunner:
        found = {
            **passed_variables(self.environment),
            **variables,
            **program_variables(self._program, self.data_folder, self.environment),
        }
        if passphrase is not None:
            found.pop(FILE_VARIABLE, None)
            found.update(passphrase.variables)
        elif VARIABLE not in found and FILE_VARIABLE not in found:
            found[VARIABLE] = ""
        return PulumiRunner(
            program=self._program, folder=folder, variables=found, interrupts=self.interrupts, health=health
        )

    # reading

    def read(self, passphrase: Passphrase | None = None) -> Deployment | None:
        """Return the deployment: encrypted, or plain with a passphrase; none if there is no stack."""
        options = () if passphrase is None else ("--show-secrets",)
        done = self.runner(passphrase).query("stack", "export", *options, "--stack", self.namespace)
        if not done.status:
            found: Deployment = json.loads(done.output)["deployment"] or {}
            return found
        if re.search(r"(?i)no stack named|stack \S+ not found", done.output):
            return None
        if "incorrect passphrase" in done.output or "passphrase must be set" in done.output:
            raise WrongPassphrase(self)
        raise explain(done.output, self.url_name)

    def open(self, passphrases: Iterable[Passphrase]) -> tuple[Passphrase, Deployment]:
        """Return the deployment with its secrets in plain text, and the passphrase of it, which is one of these."""
        for passphrase in passphrases:
            with contextlib.suppress(WrongPassphrase):
                return passphrase, self.read(passphrase) or {}
        raise WrongPassphrase(self)

    # writing

    def write(self, plain: Deployment, passphrase: Passphrase, salt: str) -> None:
        """Replace the state by a plain deployment, which Pulumi encrypts before it writes it."""
        providers = {"type": "passphrase", "state": {"salt": salt}}
        given = json.dumps({"version": 3, "deployment": {**plain, "secrets_providers": providers}})
        self._change(self.runner(passphrase), "stack", "import", given=given)
        self.write_settings(salt)

    def write_settings(self, salt: str) -> None:
        """Write the salt where Pulumi looks for it on this machine."""
        settings = self.folder / f"Pulumi.{self.namespace}.yaml"
        if read_salt(settings) != salt:
            with writing(settings):
                write_private(settings, f"encryptionsalt: {salt}\n")

    def create(self, passphrase: Passphrase) -> None:
        """Create the stack, with an empty state."""
        with writing(self.folder):
            (self.folder / f"Pulumi.{self.namespace}.yaml").unlink(missing_ok=True)
        self._change(self.runner(passphrase), "stack", "init")

    def remove(self) -> None:
        """Remove the stack with its state; nothing happens to the objects in the cluster."""
        self._change(self.runner(), "stack", "rm", "--yes", "--force", "--preserve-config")

    def check_unlocked(self, state: Deployment) -> None:
        """Raise if Pulumi's own lock is held, which another machine may hold.

        No command shows a lock. One that Pulumi refuses for another reason afterwards does: the removal of a stack
        that has resources. An empty stack has nothing that a lock would protect.
        """
        if is_empty(state):
            return
        done = self._try_removal()
        if was_left_by_us(done.output, self.folder, state_is_private=self.is_private) and self._cancel():
            done = self._try_removal()
        if "still contains resources" not in done.output and "still has resources" not in done.output:
            raise explain(done.output, self.url_name)

    def _try_removal(self) -> PulumiResult:
        return self.runner().run_locked("stack", "rm", "--yes", "--preserve-config", "--stack", self.namespace)

    def remove_lock(self) -> None:
        """Remove Pulumi's own lock, even if its holder may be alive."""
        if not self._cancel():
            raise ComposeplatError("Pulumi did not remove the lock", "platform state show")

    def _cancel(self) -> bool:
        return self.runner().run_locked("cancel", "--yes", "--stack", self.namespace).status == 0

    def _change(self, runner: PulumiRunner, *args: str, given: str | None = None) -> None:
        command = (*args, "--stack", self.namespace)
        done = runner.run_locked(*command, given=given)
        if (
            done.status
            and was_left_by_us(done.output, self.folder, state_is_private=self.is_private)
            and self._cancel()
        ):
            done = runner.run_locked(*command, given=given)
        if done.status:
            raise explain(done.output, self.url_name)

    @property
    def is_private(self) -> bool:
        """Whether the state is in our own data folder, which no other machine should use."""
        return self.backend.is_within(self.data_folder.path)

    def new_salt(self, passphrase: Passphrase) -> str:
        """Let Pulumi make a salt for a passphrase, in a folder of its own that has nothing else."""
        with tempfile.TemporaryDirectory(prefix="composeplat-") as temporary:
            folder = Path(temporary)
            (folder / "state").mkdir()
            write_private(folder / "Pulumi.yaml", _project("salt"))
            address = {URL_VARIABLE: file_url(folder / "state")}
            done = self._runner(folder, address, passphrase, BackendHealth()).query("stack", "init", "--stack", "new")
            salt = read_salt(folder / "Pulumi.new.yaml")
        if done.status or not salt:
            raise explain(done.output)
        return salt

    def forget_copies(self) -> None:
        """Delete the copies of earlier states on this machine, and the records that depend on them."""
        names = ("unchanged.json", "mended.json")
        with writing(self.folder):
            for path in (*(self.folder / "states").glob("*.json"), *(self.folder / name for name in names)):
                path.unlink(missing_ok=True)
            # What a rollback that was killed has left.
            for folder in self.folder.glob("earlier-*"):
                shutil.rmtree(folder, ignore_errors=True)

    def resolve_change(self, state: Deployment) -> str:
        """End a change of the passphrase that was interrupted; return what became of it."""
        return self.change.resolve(salt_of(state))


def _project(name: str) -> str:
    return json.dumps({"name": name, "runtime": "python", "description": "Made by platform deploy."}, indent=1) + "\n"
