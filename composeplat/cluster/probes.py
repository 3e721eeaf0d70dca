"""Ask a pod: the last lines of a container's log, and whether something listens on a port.

Must not judge the answers: :mod:`composeplat.engine.failure_logs` and those who wait for a port do.
"""

from __future__ import annotations

import http.client

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path

_MAX_LOG_LINES = 20
#: For the first bytes of a response.
_ANSWER_TIMEOUT_S = 5.0


def read_last_lines(api: Api, namespace: str, pod: str, container: str, *, previous: bool) -> list[str]:
    """Read the last lines of a container's log; empty without a log."""
    path = f"{kind_path('v1', 'Pod', namespace)}/{pod}/log?container={container}&tailLines={_MAX_LOG_LINES}"
    for query in ([f"{path}&previous=true"] if previous else []) + [path]:
        try:
            lines = api.text(query).splitlines()
        except ApiError:
            continue
        # The kubelet's message for a container that it has removed comes in place of the log.
        if lines and not lines[0].startswith("unable to retrieve container logs"):
            return lines
    return []


def probe_port(api: Api, namespace: str, pod: str, port: int) -> bool | None:
    """Return whether something listens on a pod's port; None if that can't be found out.

    The API server proxies an HTTP request to it: any response, even of another protocol, means that something listens.
    A closed port refuses the connection. Silence is no answer: the program is slow, or a firewall or NetworkPolicy
    keeps the API server from pods, as that of a managed cluster often does.
    """
    try:
        with Api(api.access, timeout_s=_ANSWER_TIMEOUT_S) as asking:
            asking.head(f"{kind_path('v1', 'Pod', namespace)}/{pod}:{port}/proxy/")
    except ApiError as error:
        text = str(error).lower()
        if error.status in (http.client.FORBIDDEN, http.client.UNAUTHORIZED) and "pods/proxy" in text:
            return None
        if isinstance(error.__cause__, TimeoutError):
            return None if _answers(api) else False
        if error.status == 0 or "connection refused" in text:
            return False
        if any(error_text in text for error_text in ("i/o timeout", "timed out")):
            return None
        return not any(error_text in text for error_text in ("no route to host", "no such host"))
    return True


def find_silent(api: Api, namespace: str, pod: str, ports: tuple[int, ...]) -> tuple[int, ...]:
    """Return a pod's ports if none of them answers; nothing if one does, or if that can't be found out."""
    return ports if all(probe_port(api, namespace, pod, port) is False for port in ports) else ()


def _answers(api: Api) -> bool:
    """Return whether the API server itself answers."""
    try:
        api.head("/version")
    except ApiError as error:
        return error.status != 0
    return True
