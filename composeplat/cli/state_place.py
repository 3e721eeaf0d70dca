"""What the commands of ``platform state`` work on: the names of an environment, its backends, and passphrases.

Owns how a backend and a passphrase are given: never with a login or a secret in an argument, which others can see.
"""

from __future__ import annotations

import os
import secrets
import sys
from dataclasses import replace
from pathlib import Path

import typer

from composeplat import progress
from composeplat.cli.console import is_terminal
from composeplat.cli.operations import for_target
from composeplat.cli.questions import confirm, end_of_input_refuses
from composeplat.cli.selection import Choice, request_for
from composeplat.cli.source import claim_of, find_source
from composeplat.cluster.api import Api, ApiError
from composeplat.compose.load.reading import NoDefinition, read
from composeplat.compose.load.variables import namespace_of
from composeplat.compose.options import Request
from composeplat.diagnostics import ComposeplatError, Exit, MissingPiece, printable
from composeplat.engine.backend import Backend, backend_at, find_backend, find_data_folder, own_backend
from composeplat.engine.backend_url import URL_VARIABLE, has_login, kind_of, shown_url
from composeplat.engine.passphrase import (
    FILE_VARIABLE,
    VARIABLE,
    Passphrase,
    find_passphrase,
    own_passphrase,
    read_passphrase as read_file,
)
from composeplat.engine.provenance import Claim, check_record, notice_of_other
from composeplat.engine.state_store import StateStore
from composeplat.engine.target import Target, find_target
from composeplat.names import make_label

_NEW = "PLATFORM_NEW_PASSPHRASE"
OWN = "own"
_IN_VARIABLE = "env:"


class UsageError(ComposeplatError):
    exit_code = Exit.USAGE


class StatePlace:
    """The environment of this folder, without reading more of its definition than its name."""

    def __init__(self, choice: Choice) -> None:
        progress.hide(value for name in (VARIABLE, _NEW) if (value := os.environ.get(name)))
        self._choice = choice
        self._failure: ComposeplatError | None = None
        self._target = self._find_target()
        request = request_for(choice)
        if self._target is not None:
            request = for_target(request, self._target)
        self.namespace = namespace_of(request)
        self.environment_name, self._claim = self._read_names(request)
        self.data_folder = find_data_folder(os.environ)
        self.data_folder.prepare()

    def _find_target(self) -> Target | None:
        """Find the cluster; a state that is not in the data folder needs none."""
        choice = self._choice
        try:
            return find_target(os.environ, kubeconfig=choice.kubeconfig, context=choice.context, local=choice.local)
        except ComposeplatError as error:
            self._failure = error
            return None

    def _read_names(self, request: Request) -> tuple[str, Claim | None]:
        """Return the name of the environment and who claims it; without a definition, nobody does."""
        try:
            reading = read(replace(request, publishes=False))
        except NoDefinition:
            name = make_label(self._choice.name)
            if not name:
                raise
            return name, None
        settings, source = reading.settings, find_source(reading.folder)
        return settings.environment, claim_of(source, os.environ, name_from_folder=settings.name_from_folder)

    def check_project(self, command: str) -> None:
        """Refuse an environment that was made from another project, where the cluster can be asked."""
        if self._target is None:
            return
        try:
            with Api(self._target.access) as api:
                check_record(api, self._claim, self.environment_name, self.namespace, command=f"state {command}")
        except ApiError as error:
            if error.status:
                raise
            progress.note(f"can't check whether {self.where} was made from this project: {error}")

    def notice_of_other_project(self) -> str:
        """Return the notice of another project for a command that only reads; empty if it is unknown."""
        if self._target is None:
            return ""
        with Api(self._target.access) as api:
            return notice_of_other(api, self._claim, self.environment_name, self.namespace)

    @property
    def where(self) -> str:
        return f"{self.environment_name} in namespace {self.namespace}"

    @property
    def _cluster(self) -> str:
        if self._target is None:
            raise self._failure or MissingPiece("no cluster is known", "give --context")
        return self._target.identity()

    def current(self) -> StateStore:
        """Return the state where a deploy would look for it."""
        if os.environ.get(URL_VARIABLE):
            return self._store(backend_at(os.environ[URL_VARIABLE], os.environ, self.data_folder))
        return self._store(find_backend(os.environ, self.data_folder, self._cluster))

    def at(self, text: str) -> StateStore:
        """Return the state at a place that was given: ``own``, a URL, or ``env:`` and the name of a variable."""
        if text == OWN:
            return self._store(own_backend(os.environ, self.data_folder, self._cluster))
        in_variable = text.startswith(_IN_VARIABLE)
        if not in_variable and has_login(text):
            raise UsageError(
                f"'{printable(shown_url(text))}' has a login, and a command line can be seen by others",
                "put the URL into a variable, and give its name: env:NAME",
            )
        url = _from_variable(text) if in_variable else text
        kind_of(url, f"give {OWN}, a URL, or {_IN_VARIABLE} and the name of a variable")
        named = printable(text.removeprefix(_IN_VARIABLE) if in_variable else f"'{text}'")
        return replace(self._store(backend_at(url, os.environ, self.data_folder)), url_name=named)

    def _store(self, backend: Backend) -> StateStore:
        progress.hide(backend.secrets)
        return StateStore(
            backend=backend,
            data_folder=self.data_folder,
            environment_name=self.environment_name,
            namespace=self.namespace,
            environment=os.environ,
        )

    def passphrases(self, store: StateStore, file: str = "") -> list[Passphrase]:
        """Return the passphrases that a state may have: that of a file alone, or the variables', then our own."""
        if file:
            return [_hidden(Passphrase(read_file(Path(file))))]
        found = (
            find_passphrase(os.environ, self.data_folder, store.folder),
            own_passphrase(self.data_folder, store.folder),
            Passphrase(read_file(self.data_folder.passphrase)),
        )
        return [_hidden(passphrase) for passphrase in dict.fromkeys(found)]


def _from_variable(text: str) -> str:
    name = text.removeprefix(_IN_VARIABLE)
    url = os.environ.get(name, "")
    if not url:
        raise UsageError(f"the variable '{printable(name)}' is not set, which must have the URL of a backend")
    return url


def _hidden(passphrase: Passphrase) -> Passphrase:
    progress.hide((passphrase.text,))
    return passphrase


def is_ours() -> bool:
    """Return whether the passphrase is in the data folder, since the user set none."""
    return VARIABLE not in os.environ and not os.environ.get(FILE_VARIABLE)


def new_passphrase(file: str) -> Passphrase:
    """Read the new passphrase from a file, a variable or a terminal; one of ours is generated."""
    if file:
        return _hidden(Passphrase(read_file(Path(file))))
    if text := os.environ.get(_NEW, "").strip():
        return _hidden(Passphrase(text))
    if is_ours():
        return _hidden(Passphrase(secrets.token_urlsafe(32)))
    if not is_terminal(sys.stdin):
        raise UsageError(
            "no new passphrase was given, and there is no terminal to ask for it",
            f"give --new-passphrase-file, or set {_NEW}",
        )
    with end_of_input_refuses("no passphrase was given: nothing was changed", hidden=True):
        text = typer.prompt("New passphrase", hide_input=True, confirmation_prompt=True, err=True).strip()
    if not text:
        raise UsageError("the passphrase is empty: nothing was changed")
    return _hidden(Passphrase(text))


def confirm_change(question: str, *, yes: bool) -> None:
    """Ask before a state is changed, unless ``--yes`` was given."""
    if not yes:
        no_terminal = ComposeplatError("nothing was changed: there is no terminal to confirm that on", "give --yes too")
        confirm(question, no_terminal, refused="nothing was changed")
