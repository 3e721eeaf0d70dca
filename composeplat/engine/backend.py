"""The data folder on this machine and the backend that keeps Pulumi's state.

Owns the layout of the data folder (state, passphrase, plugins, a folder for each stack) and its permissions.
Must not start a process, so that the layout can be read without Pulumi.
Pulumi gets a home folder of its own: the user's plugins, logins and settings stay as they are. Only the user's login is
read from theirs.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from composeplat.diagnostics import ComposeplatError
from composeplat.engine.backend_url import (
    URL_VARIABLE,
    file_url,
    folder_of,
    kind_of,
    secrets_of,
    secrets_of_azure,
    shown_url,
)
from composeplat.system.atomic import (
    OfAnotherUser,
    WritableByOthers,
    create_private,
    make_private_folder,
    make_protected_folder,
    replace_link,
)
from composeplat.system.folders import data_folder, home_folder
from composeplat.system.machine import system_machine_id
from composeplat.system.records import record

_NO_SPACE, _NO_LINKS = (errno.ENOSPC, errno.EDQUOT), (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
_FIXES = {
    **dict.fromkeys(_NO_SPACE, "free space there, or"),
    **dict.fromkeys(_NO_LINKS, "its file system may have no links, such as FAT:"),
}


@record
class DataFolder:
    """The folder that holds everything the engine keeps between runs."""

    path: Path

    @property
    def pulumi(self) -> Path:
        return self.path / "pulumi"

    @property
    def passphrase(self) -> Path:
        return self.path / "passphrase"

    def state(self, cluster: str) -> Path:
        """The folder with the state of all environments of a cluster; a recreated cluster is another cluster."""
        return self.path / "state" / cluster

    def stack(self, backend: str, environment: str, namespace: str) -> Path:
        """The folder of a stack, with a passphrase of its own; another password in the URL leads to the same one."""
        keys = [hashlib.sha256(url.encode()).hexdigest()[:12] for url in (backend, shown_url(backend))]
        former, found = (self.path / "stacks" / key / environment / namespace for key in keys)
        # Before there was this rule, the key was of the whole URL.
        return former if former.exists() else found

    def prepare(self) -> None:
        """Make the folders, and the passphrase unless it exists."""
        with writing(self.path):
            self._make_folders()
            logs = self.pulumi / "logs"
            # A file in the place of the log folder keeps Pulumi from writing a log of every run.
            if not logs.exists():
                logs.touch()
            if not self.passphrase.exists():
                create_private(self.passphrase, secrets.token_urlsafe(32))

    def _make_folders(self) -> None:
        """Make the missing folders, closed to others. An existing folder keeps its mode: others may share it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            make_protected_folder(self.path)
        except OfAnotherUser as error:
            raise ComposeplatError(
                f"'{self.path}', the folder for the state of deployments and its passphrase, belongs to another user",
                "set COMPOSEPLAT_DATA to a folder of your own",
            ) from error
        except WritableByOthers as error:
            raise ComposeplatError(
                f"other users can write to '{self.path}', the folder for the state of deployments and its passphrase",
                f"set COMPOSEPLAT_DATA to a folder of your own, such as {self.path / 'composeplat'},"
                f" or remove their access: chmod go-w {self.path}",
            ) from error
        for folder in (self.pulumi, self.path / "state", self.path / "stacks"):
            make_private_folder(folder)

    def machine_id(self) -> str:
        """The id that the system gave this machine, else a random one that is kept in the data folder."""
        given = system_machine_id()
        if given:
            return given
        path = self.path / "machine-id"
        with writing(path):
            if not path.exists():
                self._make_folders()
                create_private(path, secrets.token_hex(16))
            return path.read_text(encoding="utf-8")

    def place_plugin(self, name: str, version: str, program: Path) -> None:
        """Link a provider into the folder where Pulumi looks for plugins."""
        folder = self.pulumi / "plugins" / f"resource-{name}-v{version}"
        link = folder / f"pulumi-resource-{name}"
        if link.is_symlink() and link.readlink() == program:
            return
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            replace_link(link, program)


def find_data_folder(environment: Mapping[str, str]) -> DataFolder:
    return DataFolder(data_folder(environment))


@record
class Backend:
    """Where Pulumi keeps the state, and the variables with which Pulumi reaches it."""

    url: str
    variables: Mapping[str, str]
    folder: Path | None = None
    """The folder of a file backend: its state can be read without running Pulumi."""
    secrets: frozenset[str] = frozenset()
    """What no message may have of the URL and of the login."""

    @property
    def shown(self) -> str:
        """The URL for messages, without a login."""
        return shown_url(self.url)

    def is_within(self, folder: Path) -> bool:
        """Whether the states are files below a folder."""
        return self.folder is not None and self.folder.is_relative_to(folder)

    def for_stack(self, passphrase: Path) -> Backend:
        """Return the backend with a stack's own file of a passphrase, if there is one and the user set none."""
        if "PULUMI_CONFIG_PASSPHRASE_FILE" not in self.variables or not passphrase.exists():
            return self
        return replace(self, variables={**self.variables, "PULUMI_CONFIG_PASSPHRASE_FILE": str(passphrase)})


def find_backend(environment: Mapping[str, str], data_folder: DataFolder, cluster: str) -> Backend:
    """Find the backend that the user set or logged in to; else it is a folder of files in the data folder."""
    url = _configured_url(environment)
    if not url and not environment.get("PULUMI_ACCESS_TOKEN"):
        return own_backend(environment, data_folder, cluster)
    return backend_at(url, environment, data_folder)


def own_backend(environment: Mapping[str, str], data_folder: DataFolder, cluster: str) -> Backend:
    """Return the backend of files in the data folder for a cluster."""
    folder = data_folder.state(cluster)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    passphrase = _passphrase_variables(environment, data_folder)
    return Backend(f"file://{folder}", {URL_VARIABLE: file_url(folder), **passphrase}, folder)


def backend_at(url: str, environment: Mapping[str, str], data_folder: DataFolder) -> Backend:
    """Return the backend of a URL, with the token of the user's login there; empty means Pulumi's own service."""
    passphrase, token = _passphrase_variables(environment, data_folder), _token_for(url, environment)
    if url:
        kind_of(url)
    if url.startswith("file://"):
        path, mark, query = url.removeprefix("file://").partition("?")
        # Pulumi runs in another folder, so a relative path has to become absolute here.
        local = os.path.normpath(Path(os.path.expanduser(path)).absolute())
        address = {URL_VARIABLE: f"file://{local}{mark}{query}"}
        return Backend(f"file://{local}", {**address, **token, **passphrase}, folder_of(local))
    address = {URL_VARIABLE: url} if url else {}
    secrets = secrets_of(url) | secrets_of_azure(environment)
    return Backend(url or "https://api.pulumi.com", {**address, **token, **passphrase}, secrets=secrets)


def _configured_url(environment: Mapping[str, str]) -> str:
    """The URL that the user set or logged in to; empty without one."""
    return environment.get(URL_VARIABLE) or str(_read_login(environment).get("current") or "")


def _token_for(url: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The variable with the token of the login; where a variable names the backend, another one has the token."""
    if environment.get(URL_VARIABLE):
        return {}
    tokens = _read_login(environment).get("accessTokens")
    return {"PULUMI_ACCESS_TOKEN": str(tokens[url])} if isinstance(tokens, dict) and url in tokens else {}


def _read_login(environment: Mapping[str, str]) -> dict[str, object]:
    """Read what ``pulumi login`` wrote; empty if it cannot be read."""
    named = environment.get("PULUMI_CREDENTIALS_PATH") or environment.get("PULUMI_HOME")
    base = named or home_folder(environment) / ".pulumi"
    try:
        read = json.loads((Path(base) / "credentials.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


def _passphrase_variables(environment: Mapping[str, str], data_folder: DataFolder) -> dict[str, str]:
    """The variable that names our own passphrase file, unless the user set a passphrase."""
    if "PULUMI_CONFIG_PASSPHRASE" in environment or environment.get("PULUMI_CONFIG_PASSPHRASE_FILE"):
        return {}
    return {"PULUMI_CONFIG_PASSPHRASE_FILE": str(data_folder.passphrase)}


@contextlib.contextmanager
def writing(place: Path) -> Iterator[None]:
    """Turn an error of writing into a message with the path and the reason."""
    try:
        yield
    except OSError as error:
        where, reason = error.filename or place, (error.strerror or str(error)).lower()
        fix = _FIXES.get(error.errno or 0, "make it writable, or")
        raise ComposeplatError(
            f"can't write '{where}': {reason}",
            f"{fix} set COMPOSEPLAT_DATA to another folder for the data of deployments",
        ) from error
