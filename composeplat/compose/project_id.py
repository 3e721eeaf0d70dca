"""The identity of a project, as a value that is the same on every machine.

Owns how a git remote or a path becomes the identity. All clones of a git repository are the same project; without a
remote, machine and path identify it.
Must not know where the identity is stored, or how two of them are compared.
"""

from __future__ import annotations

import hashlib
import json
import os.path
import re
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from composeplat.system.records import record

_KNOWN_PORTS = {"ssh": 22, "http": 80, "https": 443, "git": 9418}
_MAX_PORT_DIGITS = 5
_SCP_FORM = re.compile(r"(?:[^/@]+@)?(\[[^\]]+\]|[^/:@]+):(?!//)(.+)")


@record
class ProjectId:
    key: str
    """A hash, so that paths of a machine are not published."""
    description: str
    """The remote, or the end of the path, for messages."""


@record(kw_only=True)
class Machine:
    id: str
    host: str


def project_id(folder: Path, machine: Machine, *, work_tree: Path | None = None, remote: str = "") -> ProjectId:
    """Return the identity of the project in a folder; folder and work tree are absolute."""
    if work_tree is None or not remote:
        return ProjectId(_key("path", machine.id, str(folder)), f"{_end_of(folder)} on {machine.host}")
    inside = os.path.relpath(folder, work_tree)
    where = "" if inside == "." else f", folder {inside}"
    url = normal_remote(remote)
    if url:
        return ProjectId(_key("git", url, inside), f"{url}{where}")
    path = local_remote(remote, work_tree)
    return ProjectId(_key("git path", machine.id, str(path), inside), f"{_end_of(path)}{where} on {machine.host}")


def normal_remote(remote: str) -> str:
    """Normalize a remote's URL to host and path, without credentials; return an empty text for a local path."""
    parts = _split(remote) if "://" in remote else None
    if parts is not None and parts.scheme != "file":
        host, path = (parts.hostname or "").lower(), unquote(parts.path)
        port = _port(parts.netloc)
        if port and port != _KNOWN_PORTS.get(parts.scheme.lower()):
            host += f":{port}"
    elif parts is None and (found := _SCP_FORM.fullmatch(remote)):
        host, path = found[1].lower(), found[2]
    else:
        return ""
    path = re.sub(r"/+", "/", path).strip("/").removesuffix(".git").strip("/")
    return f"{host}/{path}" if host and path else ""


def _split(remote: str) -> SplitResult:
    """Split a URL without its login: git takes a password with any character but a slash."""
    scheme, _, rest = remote.partition("://")
    authority, slash, path = rest.partition("/")
    host = authority.rpartition("@")[2]
    try:
        return urlsplit(f"{scheme}://{host}{slash}{path}")
    except ValueError:
        return SplitResult(scheme, host, slash + path, "", "")


def _port(netloc: str) -> int:
    digits = netloc.rpartition("@")[2].rpartition(":")[2]
    return int(digits) if len(digits) <= _MAX_PORT_DIGITS and digits.isascii() and digits.isdigit() else 0


def local_remote(remote: str, work_tree: Path) -> Path:
    """Return the absolute path of a local remote."""
    text = unquote(_split(remote).path) if remote.startswith("file://") else remote
    return Path(os.path.normpath(work_tree / text))


def _end_of(path: Path) -> str:
    """Return the last two steps of a path, which distinguish most folders of the same name."""
    return "/".join(path.parts[-2:]).replace("//", "/")


def _key(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
