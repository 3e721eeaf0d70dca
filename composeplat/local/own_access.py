"""The cluster's own access to its API server, with the token and the authority from its folder.

It is apart because the commands use it from this machine, and parts from inside, at another port.
"""

from __future__ import annotations

from pathlib import Path

from composeplat.cluster.access import Access
from composeplat.cluster.credentials import Credential, static_credentials


def own_access(keys: Path, port: int) -> Access:
    token = (keys / "token").read_text(encoding="utf-8").strip()
    return Access(
        host="127.0.0.1",
        port=port,
        credentials=static_credentials(Credential(token=token)),
        authority=str(keys / "ca.crt"),
    )
