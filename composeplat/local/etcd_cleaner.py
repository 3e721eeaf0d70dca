"""Makes space in etcd and clears its alarm, so that a cluster whose etcd was full works again by itself.

Owns the requests to etcd, and their pauses. Must not decide what to do: that is :mod:`~composeplat.local.etcd_space`.
The part ``cleaner`` runs it; in the simulated cluster it is that part, as there are no images.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from composeplat.local import etcd
from composeplat.local.etcd_space import EtcdSpace, Step, full_members, note_space, parse_space
from composeplat.local.layout import Layout
from composeplat.progress import format_bytes
from composeplat.system.processes import python_module

_CHECK_INTERVAL_S = 5.0
#: Where it was of no use, to make space again at once would only block etcd.
_USELESS_PAUSE_S = 60.0
_REQUEST_TIMEOUT_S = 10.0
#: While it defragments, etcd copies its whole file.
_STEP_TIMEOUT_S = 600.0
_OK = 200
_ALREADY_COMPACTED = "has been compacted"


class EtcdError(OSError):
    """etcd refused a request."""


@dataclass(slots=True)
class EtcdClient:
    """Requests to the one etcd of a cluster, through its gateway for JSON."""

    keys: Path
    port: int

    def post(self, path: str, body: dict[str, Any], timeout_s: float = _REQUEST_TIMEOUT_S) -> dict[str, Any]:
        context = ssl.create_default_context(cafile=str(self.keys / f"{etcd.AUTHORITY}.crt"))
        # Python 3.13 refuses certificates without key identifiers, which OpenSSL made none of before 3.0.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.load_cert_chain(self.keys / f"{etcd.CLIENT}.crt", self.keys / f"{etcd.CLIENT}.key")
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=timeout_s)
        with contextlib.closing(connection):
            connection.request("POST", f"/v3/{path}", json.dumps(body))
            response = connection.getresponse()
            found = json.loads(response.read())
        if response.status != _OK:
            raise EtcdError(found.get("message") or found.get("error") or f"status {response.status}")
        return dict(found)

    def revision(self) -> str:
        return str(self.post("maintenance/status", {})["header"]["revision"])

    def alarms(self) -> dict[str, Any]:
        return self.post("maintenance/alarm", {"action": "GET"})

    def space(self) -> EtcdSpace:
        return parse_space(self.post("maintenance/status", {}), self.alarms())

    def take(self, step: Step) -> None:
        match step:
            case Step.COMPACT:
                self._compact()
            case Step.DEFRAGMENT:
                self.post("maintenance/defragment", {}, _STEP_TIMEOUT_S)
            case Step.DISARM:
                for member in full_members(self.alarms()):
                    alarm = {"action": "DEACTIVATE", "memberID": member, "alarm": "NOSPACE"}
                    self.post("maintenance/alarm", alarm)

    def _compact(self) -> None:
        try:
            self.post("kv/compaction", {"revision": self.revision(), "physical": True}, _STEP_TIMEOUT_S)
        except EtcdError as error:
            if _ALREADY_COMPACTED not in str(error):
                raise


@dataclass(slots=True)
class EtcdCleaner:
    client: EtcdClient
    notes: Path
    log: Callable[[str], object] = field(default=lambda line: sys.stderr.write(f"{line}\n"))
    clock: Callable[[], float] = time.monotonic
    _next_check: float = 0.0
    _next_try: float = 0.0
    _noted: EtcdSpace | None = None
    _failure: str = ""
    """The last one, which is logged once."""

    def check(self) -> None:
        """Make space in etcd where there is none; what fails is tried again, as etcd may be starting."""
        if self.clock() < self._next_check:
            return
        self._next_check = self.clock() + _CHECK_INTERVAL_S
        try:
            self._check()
            self._failure = ""
        except (OSError, http.client.HTTPException, ValueError) as error:
            if str(error) != self._failure:
                self._failure = str(error)
                self.log(f"can't make space in etcd: {error}")

    def _check(self) -> None:
        before = self._note()
        steps = before.steps(is_useless=self.clock() < self._next_try)
        if not steps:
            return
        if steps != (Step.DISARM,):
            # Also where a step fails.
            self._next_try = self.clock() + _USELESS_PAUSE_S
        for step in steps:
            self.client.take(step)
        after = self._note()
        if not after.is_nearly_full:
            self._next_try = 0.0
        if steps != (Step.DISARM,):
            self.log(_report(before, after))

    def _note(self) -> EtcdSpace:
        found = self.client.space()
        if found != self._noted:
            note_space(self.notes, found)
            self._noted = found
        return found


def _report(before: EtcdSpace, after: EtcdSpace) -> str:
    why = "etcd was full" if before.is_full else "etcd was nearly full"
    sizes = f"{format_bytes(before.size)} became {format_bytes(after.size)} of at most {format_bytes(after.limit)}"
    return f"{why}: {sizes}" + (", objects must be deleted" if after.is_nearly_full else "")


def make_etcd_cleaner(layout: Layout, port: int) -> EtcdCleaner:
    return EtcdCleaner(EtcdClient(layout.keys, port), layout.etcd_space_file)


def etcd_cleaner_arguments(layout: Layout, python: str, port: int) -> tuple[str, ...]:
    """The command line of the part in the simulated cluster."""
    program = python_module(python, "composeplat.local.etcd_cleaner")
    return (*program, str(layout.folder), str(layout.run), str(port))


def main() -> None:
    folder, run, port = sys.argv[1:]
    cleaner = make_etcd_cleaner(Layout(folder=Path(folder), run=Path(run)), int(port))
    while True:
        cleaner.check()
        time.sleep(_CHECK_INTERVAL_S)


if __name__ == "__main__":
    main()
