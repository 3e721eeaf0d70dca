"""Objects as a Kubernetes cluster gives them, a snapshot of some, and a server on loopback that hands them out.

A builder makes what a test is about from its arguments, and fills in the rest as controllers and kubelets do.
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any, Self
from urllib.parse import urlsplit

from composeplat.cluster.access import Access
from composeplat.cluster.snapshot import Object, Snapshot, parse_time
from composeplat.names import SERVICE_LABEL

NAMESPACE = "team"
IMAGE = "registry.example.com/web:2"
MOMENT = "2025-06-01T12:00:00Z"
_REVISION = "deployment.kubernetes.io/revision"


def deployment(
    name: str = "web",
    *,
    replicas: int = 1,
    observed: int = 2,
    revision: int = 2,
    updated: int | None = None,
    total: int | None = None,
    refused: str = "",
) -> Object:
    """A Deployment of generation 2; ``updated`` and ``total`` count its pods, all of them present ones if not said."""
    made = replicas if updated is None else updated
    conditions: list[Object] = [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}]
    if refused:
        conditions.append({"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": refused})
    status = {"observedGeneration": observed, "replicas": made if total is None else total, "conditions": conditions}
    if made:
        status["updatedReplicas"] = made
    metadata = {**_metadata("Deployment", name), "generation": 2, "annotations": {_REVISION: str(revision)}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"replicas": replicas},
        "status": status,
    }


def replica_set(owner: Object, revision: int = 2) -> Object:
    """The ReplicaSet of one revision of a Deployment."""
    metadata = _metadata("ReplicaSet", f"{owner['metadata']['name']}-7d4b9c6f{revision}", owner)
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {**metadata, "annotations": {_REVISION: str(revision)}},
        "spec": {"replicas": 1},
    }


def stateful_set(
    name: str = "db",
    *,
    replicas: int = 1,
    observed: int = 2,
    revision: int = 2,
    updated: int | None = None,
    total: int | None = None,
) -> Object:
    """A StatefulSet of generation 2, which wants the revision that is named."""
    made = replicas if updated is None else updated
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {**_metadata("StatefulSet", name), "generation": 2},
        "spec": {"replicas": replicas},
        "status": {
            "observedGeneration": observed,
            "replicas": made if total is None else total,
            "updatedReplicas": made,
            "updateRevision": f"{name}-6c8d7f{revision}",
        },
    }


def daemon_set(name: str = "agent", *, nodes: int = 1, updated: int | None = None, generation: int = 2) -> Object:
    """A DaemonSet for some nodes; ``updated`` counts those with a pod of its latest template."""
    metadata = _metadata("DaemonSet", name)
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            **metadata,
            "generation": 2,
            "annotations": {"deprecated.daemonset.template.generation": str(generation)},
        },
        "spec": {},
        "status": {
            "observedGeneration": 2,
            "desiredNumberScheduled": nodes,
            "updatedNumberScheduled": nodes if updated is None else updated,
        },
    }


def job(name: str = "migrate", *, condition: str = "", reason: str = "") -> Object:
    """A Job, with the one condition that is named."""
    conditions = [{"type": condition, "status": "True", "reason": reason}] if condition else []
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {**_metadata("Job", name), "generation": 1},
        "spec": {"backoffLimit": 0},
        "status": {"conditions": conditions} if conditions else {},
    }


def cron_job(schedule: str, name: str = "backup", *, suspended: bool = False) -> Object:
    spec = {"schedule": schedule, "suspend": suspended, "jobTemplate": {"spec": {}}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": _metadata("CronJob", name), "spec": spec}


def running() -> Object:
    return {"running": {"startedAt": MOMENT}}


def waiting(reason: str, message: str = "") -> Object:
    return {"waiting": {"reason": reason, **({"message": message} if message else {})}}


def ended(code: int, reason: str = "Error", message: str = "") -> Object:
    output = {"message": message} if message else {}
    return {"terminated": {"exitCode": code, "reason": reason, "finishedAt": MOMENT, **output}}


def pod(
    owner: Object,
    suffix: str = "x7k2p",
    *,
    state: Object | None = None,
    last: Object | None = None,
    restarts: int = 0,
    ready: bool = False,
    revision: int = 2,
    going: bool = False,
    scheduling_failure: str | None = None,
    probe: Object | None = None,
    claims: tuple[str, ...] = (),
    created: str = MOMENT,
) -> Object:
    """A pod of a ReplicaSet, StatefulSet, DaemonSet or Job: without a state, one that no kubelet has taken up yet.

    ``revision`` is for pods of StatefulSets and DaemonSets; a Deployment's have that of their ReplicaSet.
    """
    name = f"{owner['metadata']['name']}-{suffix}"
    container = "web" if owner["kind"] == "ReplicaSet" else str(owner["metadata"]["name"])
    metadata = {**_metadata("Pod", name, owner), "creationTimestamp": created}
    if owner["kind"] == "StatefulSet":
        metadata["labels"] = {"controller-revision-hash": f"{container}-6c8d7f{revision}"}
    if owner["kind"] == "DaemonSet":
        metadata["labels"] = {"pod-template-generation": str(revision)}
    if going:
        metadata["deletionTimestamp"] = MOMENT
    scheduled: Object = {"type": "PodScheduled", "status": "True"}
    if scheduling_failure is not None:
        scheduled = {**scheduled, "status": "False", "reason": "Unschedulable", "message": scheduling_failure}
    status: Object = {"phase": _phase(state, restarts, ends=owner["kind"] == "Job"), "conditions": [scheduled]}
    if state is not None:
        status["conditions"].append({"type": "Ready", "status": str(ready)})
        item = {"name": container, "image": IMAGE, "ready": ready, "restartCount": restarts, "state": state}
        status["containerStatuses"] = [{**item, "lastState": last or {}}]
    spec: Object = {"containers": [{"name": container, "image": IMAGE, **({"readinessProbe": probe} if probe else {})}]}
    volumes: list[Object] = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    if scheduling_failure is None:
        spec["nodeName"] = "node-1"
    # Every pod has a volume that is no claim: that of its token.
    spec["volumes"] = [*volumes, {"name": "kube-api-access-p9v4s", "projected": {}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def lost(made: Object) -> Object:
    """A pod as Kubernetes leaves it when its node stops to report: one condition is taken from it, and no more."""
    kept = [found for found in made["status"]["conditions"] if found["type"] != "Ready"]
    conditions = [*kept, {"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]
    return {**made, "status": {**made["status"], "conditions": conditions}}


def with_sidecar(
    made: Object, service: str, name: str = "a-mesh", *, state: Object | None = None, last: Object | None = None
) -> Object:
    """A pod with a container that others added: in front of the service's, as some do and as the kubelet sorts it."""
    made["metadata"].setdefault("labels", {})[SERVICE_LABEL] = service
    made["spec"]["containers"].insert(0, {"name": name, "image": "mesh:1"})
    status = {"name": name, "image": "mesh:1", "imageID": f"mesh@sha256:{'00' * 32}", "ready": True}
    status |= {"restartCount": 0 if last is None else 5, "state": state or running(), "lastState": last or {}}
    made["status"].setdefault("containerStatuses", []).insert(0, status)
    return made


def claim(name: str = "data", *, phase: str = "Pending", storage_class: str | None = "standard") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": _metadata("PersistentVolumeClaim", name),
        "spec": {"storageClassName": storage_class} if storage_class else {},
        "status": {"phase": phase},
    }


def event(about: Object, reason: str, message: str = "", *, kind: str = "Warning", **more: Any) -> Object:
    involved = {"kind": about["kind"], "name": about["metadata"]["name"], "uid": about["metadata"]["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{involved['name']}.184b2f", "namespace": NAMESPACE},
        "involvedObject": involved,
        "type": kind,
        "reason": reason,
        "message": message,
        **more,
    }


def snapshot(*held: Object, age: Mapping[str, float] | None = None, moment: str = "") -> Snapshot:
    """What a namespace holds; ``age`` says for how long something was seen, by the word before its ``/``."""
    ages = age or {}
    return Snapshot(
        workloads={
            (manifest["kind"], manifest["metadata"]["name"]): manifest
            for manifest in held
            if manifest["kind"] in {"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"}
        },
        replica_sets=_of_kind(held, "ReplicaSet"),
        pods=_of_kind(held, "Pod"),
        claims=_of_kind(held, "PersistentVolumeClaim"),
        events=_of_kind(held, "Event"),
        age=lambda what: ages.get(what.partition("/")[0], 0.0),
        time=parse_time(moment).timestamp(),
    )


def _of_kind(held: tuple[Object, ...], kind: str) -> list[Object]:
    return [row for row in held if row["kind"] == kind]


def _metadata(kind: str, name: str, owner: Object | None = None) -> Object:
    made: Object = {"name": name, "namespace": NAMESPACE, "uid": f"{kind.lower()}-{name}-4f1c"}
    if owner is not None:
        reference = {"kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        made["ownerReferences"] = [{**reference, "controller": True}]
    return made


def _phase(state: Object | None, restarts: int, *, ends: bool) -> str:
    """Return the phase; a pod whose containers are restarted has ended only where its node took it down."""
    if state and "terminated" in state and ends:
        return "Failed" if state["terminated"]["exitCode"] else "Succeeded"
    return "Running" if state and (not state.keys().isdisjoint(("running", "terminated")) or restarts) else "Pending"


# the server -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    body: bytes = b"{}"
    status: int = 200
    hangs_up: bool = False
    """The connection is closed after it without a word."""
    silent: bool = False
    """The connection is closed instead of it."""
    retry_after: str = ""
    location: str = ""
    """Where it sends the client instead."""
    events: Queue[Object | None] | None = None
    """The events of a watch, sent as they come; None ends it."""
    lines: Queue[bytes | None] | None = None
    """The lines of a followed log, sent as they come; None ends it."""
    before: Queue[Object | None] | None = None
    """Nothing is sent until something is in it."""


def given(*items: Object, version: str = "") -> Answer:
    """A list of objects, as the API gives it."""
    return Answer(json.dumps({"kind": "List", "metadata": {"resourceVersion": version}, "items": list(items)}).encode())


def refusal(status: int, message: str) -> Answer:
    return Answer(json.dumps({"kind": "Status", "message": message, "code": status}).encode(), status)


@dataclass(frozen=True, slots=True)
class LogQuery:
    method: str
    path: str
    headers: Mapping[str, str]
    body: str
    connection: int
    """The other end's port: it shows connections apart."""
    who: str
    """The common name of the client's certificate."""


@dataclass(slots=True)
class Server:
    """An API server on loopback, to be used in a ``with`` block; it answers by path, and remembers what it was asked.

    An answer for a path with its query goes before one for the path alone, and that before the one for all others.
    """

    answers: dict[str, Answer] = field(default_factory=dict)
    first: list[Answer] = field(default_factory=list)
    """What it answers before all that, one after the other and whatever it is asked."""
    otherwise: Answer = field(default_factory=Answer)
    tls: ssl.SSLContext | None = None
    admits: Callable[[str], bool] = lambda _: True
    """Says of the header ``Authorization`` whether anyone who asks is let in."""
    date: str = ""
    """What it says the time is, where that is not the machine's."""
    asked: list[LogQuery] = field(default_factory=list)
    watches: dict[str, Answer] = field(default_factory=dict)
    """What it answers to a watch, by path; to others it answers as to a list, which is no event."""
    _server: ThreadingHTTPServer | None = None
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._server = _Quiet(("127.0.0.1", 0), _handler(self))
        if self.tls is not None:
            self._server.socket = self.tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.server_address[1])

    @property
    def access(self) -> Access:
        return Access(host="127.0.0.1", port=self.port, plain=self.tls is None)

    @property
    def paths(self) -> list[str]:
        return [item.path for item in self.asked]

    def answer(self, path: str) -> Answer:
        if self.first:
            return self.first.pop(0)
        if "watch=1" in path and urlsplit(path).path in self.watches:
            return self.watches[urlsplit(path).path]
        return self.answers.get(path) or self.answers.get(urlsplit(path).path) or self.otherwise


@contextmanager
def no_server() -> Iterator[Access]:
    """A port that nobody listens on, and that nobody else can take meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield Access(host="127.0.0.1", port=taken.getsockname()[1], plain=True)


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Say nothing of a client that goes away, or that does not like the certificate."""


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body in one piece: in two, the second waits for the other end's word that it has the first.
        wbufsize = -1

        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length).decode()
            who = _who(self.connection)
            client = self.client_address[1]
            headers = {name: ", ".join(self.headers.get_all(name, [])) for name in self.headers}
            server.asked.append(LogQuery(self.command, self.path, headers, body, client, who))
            is_let_in = server.admits(self.headers.get("Authorization", ""))
            answer = server.answer(self.path) if is_let_in else refusal(401, "Unauthorized")
            if answer.before is not None:
                answer.before.get()
            if answer.events is not None:
                self._send_lines(json.dumps(event).encode() + b"\n" for event in iter(answer.events.get, None))
            elif answer.lines is not None:
                self._send_lines(iter(answer.lines.get, None))
            elif not answer.silent:
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(answer.body)))
                if answer.location:
                    self.send_header("Location", answer.location)
                if answer.retry_after:
                    self.send_header("Retry-After", answer.retry_after)
                self.end_headers()
                self.wfile.write(answer.body)
            self.close_connection = answer.silent or answer.hangs_up

        def _send_lines(self, lines: Iterable[bytes]) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            for line in lines:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

        do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 -- the library's names

        def date_time_string(self, timestamp: float | None = None) -> str:
            return server.date or super().date_time_string(timestamp)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


def _who(connection: object) -> str:
    if not isinstance(connection, ssl.SSLSocket):
        return ""
    subject: Any = (connection.getpeercert() or {}).get("subject", ())
    return str(dict(item[0] for item in subject).get("commonName", ""))


def until(what: Callable[[], object]) -> None:
    """Wait until something is so."""
    limit = time.monotonic() + 30
    while not what():
        assert time.monotonic() < limit
        time.sleep(0.005)
