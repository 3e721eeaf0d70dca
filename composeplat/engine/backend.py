"""Where Pulumi's things lie on this machine: state, passphrase, plugins, and a folder for each stack.

Owns the layout and the private parts of it; nothing in here starts a process.
The home given to Pulumi is our own, so that a user's plugins, logins and settings stay as they are; what they are
logged in to is read from theirs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from composeplat.diagnostics import ComposeplatError
from composeplat.system.machine import system_machine_id

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Home:
    folder: Path

    @property
    def pulumi(self) -> Path:
        return self.folder / "pulumi"

    @property
    def passphrase(self) -> Path:
        return self.folder / "passphrase"

    def state(self, cluster: str) -> Path:
        """The state of all environments of a cluster: another cluster, or one made anew, has another."""
        return self.folder / "state" / cluster

    def stack(self, backend: str, environment: str, namespace: str) -> Path:
        key = hashlib.sha256(backend.encode()).hexdigest()[:12]
        return self.folder / "stacks" / key / environment / namespace

    def prepare(self) -> None:
        """Make the folders, and the passphrase when there is none."""
        with writing(self.folder):
            self._make_folders()
            logs = self.pulumi / "logs"
            # Where a file stands, Pulumi can't write the log that it otherwise makes of every run.
            if not logs.exists():
                logs.touch()
            if not self.passphrase.exists():
                with contextlib.suppress(FileExistsError):
                    write_private(self.passphrase, secrets.token_urlsafe(32), anew=True)

    def _make_folders(self) -> None:
        """Make what is not there, closed to others. A folder that is there keeps its mode: it may not be ours alone."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        make_private_folder(self.folder)
        if self.folder.stat().st_mode & _WRITABLE_BY_OTHERS:
            raise ComposeplatError(
                f"others can write in '{self.folder}', which is to hold the state of deploys and its passphrase",
                f"name a folder of your own, such as COMPOSEPLAT_DATA={self.folder / 'composeplat'},"
                f" or close it: chmod go-w {self.folder}",
            )
        for folder in (self.pulumi, self.folder / "state", self.folder / "stacks"):
            make_private_folder(folder)

    def machine_id(self) -> str:
        """The id that the system gave this machine, else one that was made once and is kept here."""
        given = system_machine_id()
        if given:
            return given
        path = self.folder / "machine-id"
        with writing(path):
            if not path.exists():
                self._make_folders()
                with contextlib.suppress(FileExistsError):
                    write_private(path, secrets.token_hex(16), anew=True)
            return path.read_text(encoding="utf-8")

    def place_plugin(self, name: str, version: str, program: Path) -> None:
        """Put a provider where Pulumi looks for it."""
        folder = self.pulumi / "plugins" / f"resource-{name}-v{version}"
        link = folder / f"pulumi-resource-{name}"
        if link.is_symlink() and link.readlink() == program:
            return
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            aside = folder / f".{os.getpid()}"
            aside.symlink_to(program)
            aside.replace(link)


def find_home(environment: Mapping[str, str]) -> Home:
    """``COMPOSEPLAT_DATA``, else the user's data folder."""
    named = environment.get("COMPOSEPLAT_DATA")
    base = environment.get("XDG_DATA_HOME") or os.path.join(environment.get("HOME") or "/root", ".local", "share")
    return Home(Path(named) if named else Path(base) / "composeplat")


@dataclass(frozen=True, slots=True)
class Backend:
    """Where Pulumi keeps state; variables are what Pulumi needs to get there."""

    url: str
    variables: Mapping[str, str]
    folder: Path | None = None
    """The folder of a backend of files: its state can be looked at without asking Pulumi."""


def find_backend(environment: Mapping[str, str], home: Home, cluster: str) -> Backend:
    """What the user set or logged in to, else files of our own."""
    passphrase = {} if _knows_passphrase(environment) else {"PULUMI_CONFIG_PASSPHRASE_FILE": str(home.passphrase)}
    url = environment.get("PULUMI_BACKEND_URL", "")
    token = {}
    if not url:
        login = _login(environment)
        url = str(login.get("current") or "")
        tokens = login.get("accessTokens")
        if isinstance(tokens, dict) and url in tokens:
            token = {"PULUMI_ACCESS_TOKEN": str(tokens[url])}
    if not url and not environment.get("PULUMI_ACCESS_TOKEN"):
        folder = home.state(cluster)
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        return Backend(f"file://{folder}", {**_file_variables(folder, ""), **passphrase}, folder)
    if url.startswith("file://"):
        path, _, query = url.removeprefix("file://").partition("?")
        # Pulumi is run in a folder of ours.
        local = Path(os.path.normpath(Path(os.path.expanduser(path)).absolute()))
        return Backend(f"file://{local}", {**_file_variables(local, query), **token, **passphrase}, local)
    address = {"PULUMI_BACKEND_URL": url} if url else {}
    return Backend(url or "https://api.pulumi.com", {**address, **token, **passphrase})


def _file_variables(folder: Path, query: str) -> dict[str, str]:
    """The address of a folder of state, without the metadata files that a kill may leave empty beside each file."""
    options = {"metadata": "skip", **dict(parse_qsl(query, keep_blank_values=True))}
    return {"PULUMI_BACKEND_URL": f"file://{folder}?{urlencode(options)}"}


def _knows_passphrase(environment: Mapping[str, str]) -> bool:
    return "PULUMI_CONFIG_PASSPHRASE" in environment or bool(environment.get("PULUMI_CONFIG_PASSPHRASE_FILE"))


def _login(environment: Mapping[str, str]) -> dict[str, object]:
    base = environment.get("PULUMI_HOME") or os.path.join(environment.get("HOME") or "/root", ".pulumi")
    try:
        read = json.loads((Path(base) / "credentials.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


def make_private_folder(folder: Path) -> None:
    """Make a folder that its owner alone can enter; one that is there stays as it is."""
    folder.mkdir(mode=0o700, exist_ok=True)


def write_private(path: Path, text: str, *, anew: bool = False) -> None:
    """Write a file that its owner alone can read, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        if anew:
            os.link(aside, path)
        else:
            aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


@contextlib.contextmanager
def writing(place: Path) -> Iterator[None]:
    """Say in a sentence why something can't be written at a place."""
    try:
        yield
    except OSError as error:
        where, reason = error.filename or place, (error.strerror or str(error)).lower()
        raise ComposeplatError(
            f"can't write '{where}': {reason}",
            "see to that, or name another folder for the data of deploys with COMPOSEPLAT_DATA",
        ) from None
