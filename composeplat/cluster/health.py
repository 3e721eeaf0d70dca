"""Monitor whether a cluster answers, beside work that would wait for its answer without end.

Owns how often it is asked, and when its silence is reported and when it is too long.
Must not know what is waited for.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from typing import Self

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError
from composeplat.system.threads import await_end, start_thread

_PING_INTERVAL_S = 2.0
_WARN_AFTER_S = 5.0
_MAX_SILENCE_S = 60.0


class HealthMonitor:
    """Monitors whether a cluster answers, beside work that would wait for its answer without end.

    Use it in a ``with`` block, and call :meth:`check` now and then.
    """

    def __init__(self, access: Access, namespace: str, note: Callable[[str], None]) -> None:
        self.access = access
        # Reading an object needs the server's storage too; it need not exist.
        self._path = f"/api/v1/namespaces/{namespace}"
        self._note = note
        self._asked: float | None = None
        """When the first ping was sent that has no answer yet."""
        self._has_warned = False
        self._failure: Exception | None = None
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        self._ended.clear()
        self._asked, self._has_warned = None, False
        self._thread = start_thread("health-monitor", self._run, self._fail)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        await_end([self._thread])

    def _fail(self, error: Exception) -> None:
        self._failure = error

    @property
    def silence(self) -> float:
        """For how many seconds the cluster has not answered."""
        asked = self._asked
        return 0.0 if asked is None else time.monotonic() - asked

    def mark_silent(self) -> None:
        """Count the cluster as silent until its next answer: another request got none."""
        self._asked = self._asked or time.monotonic()

    @property
    def is_silent(self) -> bool:
        """Whether a request would have to wait for its answer."""
        return self.silence > _WARN_AFTER_S

    def bear(self, error: ApiError) -> None:
        """Let a wait continue whose request got no answer: :meth:`check` ends it. What the server refuses is raised."""
        if not _is_unanswered(error):
            raise error
        self.mark_silent()

    def check(self) -> None:
        """Report a cluster that does not answer, and raise if it has been silent for too long."""
        if self._failure is not None:
            raise self._failure
        silence = self.silence
        if silence > _MAX_SILENCE_S:
            raise ApiError(
                0,
                f"the API server at {self.access.address} has not answered for {_MAX_SILENCE_S:.0f} s",
                "repair the cluster, then run this again: finished work is recorded",
            )
        if silence > _WARN_AFTER_S and not self._has_warned:
            self._has_warned = True
            most = f"{_MAX_SILENCE_S:.0f} s at most"
            self._note(f"the API server at {self.access.address} does not answer; waiting for it, {most}")
        elif self._has_warned and not silence:
            self._has_warned = False
            self._note("the API server answers again")

    def require_answers(self) -> None:
        """Raise if the cluster does not answer, before work that can be left out and would wait for it."""
        if self.is_silent:
            raise ApiError(0, f"the API server at {self.access.address} does not answer")

    def _run(self) -> None:
        with Api(self.access) as api:
            while not self._ended.wait(_PING_INTERVAL_S):
                self.mark_silent()
                if _answers(api, self._path):
                    self._asked = None


def _answers(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except ApiError as error:
        return not _is_unanswered(error)
    return True


def _is_unanswered(error: ApiError) -> bool:
    """Whether the server could not be asked, or can't answer."""
    return not error.status or error.status >= http.client.INTERNAL_SERVER_ERROR
