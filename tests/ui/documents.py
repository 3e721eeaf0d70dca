"""Documents for the page, as commands print them with ``--json``: an environment with a problem, and a large one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from composeplat.render.graph_layout import Size, lay_out

NOW = datetime(2026, 11, 25, 9, 30, tzinfo=UTC)
ENVIRONMENT, NAMESPACE = "shop", "shop-dev"
_HEAD = {"environment": ENVIRONMENT, "namespace": NAMESPACE}

COMPOSE = """\
# The shop: a page, an API, its database, and a worker.
name: shop

services:
  web:
    image: registry.example.com/shop/web:1.8.2
    ports: ["80"]
    depends_on: [api]
  api:
    build: ./api
    environment:
      DATABASE_URL: postgres://shop:${DB_PASSWORD}@db/shop
      LOG_LEVEL: ${LOG_LEVEL:-info}
    depends_on:
      db: {condition: service_healthy}
      cache: {condition: service_started}
    healthcheck:
      test: ["CMD", "wget", "-q", "-O-", "http://localhost:8080/health"]
  db:
    image: postgres:17
    volumes: ["data:/var/lib/postgresql/data"]
  cache:
    image: redis:7
  worker:
    image: registry.example.com/shop/worker:1.8.2
    command: ["work", "--queue", "mail"]
    depends_on: [db]
  report:
    image: registry.example.com/shop/report:3
    x-schedule: "0 6 * * *"
  admin:
    image: adminer:4

volumes:
  data: {}
"""
OVERRIDE = "services:\n  api:\n    develop:\n      watch: [{action: sync, path: ./api, target: /app}]\n"


def moment(**before: float) -> str:
    return (NOW - timedelta(**before)).strftime("%Y-%m-%dT%H:%M:%SZ")


def service_row(name: str, state: str = "ready", **changes: Any) -> dict[str, Any]:
    ready = int(state in ("ready", "started", "in-development"))
    pods = [] if state in ("absent", "asleep", "scheduled") else [f"{name}-7d4b9c5f6-x7k2p"]
    pod = {"state": "Running", "ready": bool(ready), "restarts": 0, "created": moment(hours=5), "node": "node-1"}
    return {
        "service": name,
        "kind": "Deployment",
        "state": state,
        "ready": ready,
        "desired": 1,
        "restarts": 0,
        "image": f"registry.example.com/shop/{name}:1.8.2",
        "created": moment(hours=5),
        "urls": [],
        "problem": "",
        "hint": "",
        "pods": pods,
        "log_lines": [],
        "omitted_volumes": [],
        "place": None,
        "code": "",
        "pod_status": [{"name": pod_name, **pod} for pod_name in pods],
        "developer": "",
        **changes,
    }


def status(rows: Iterable[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"schema": "platform/status/1", **_HEAD, "services": list(_ROWS if rows is None else rows)}


_ROWS = [
    service_row("web", urls=["https://shop.example.com/"], ready=2, desired=2),
    service_row(
        "api", "in-development", developer="ann on laptop", image="registry.example.com/shop/api@sha256:" + "5f" * 32
    ),
    service_row("db", kind="StatefulSet", image="postgres:17", created=moment(days=41)),
    service_row("cache", image="redis:7", created=moment(days=12)),
    service_row(
        "worker",
        "failing",
        restarts=14,
        code="crash-loop",
        created=moment(minutes=42),
        problem="its container exits with status 1 again and again",
        hint="the program fails as it starts: its last lines say why",
        place={"file": "compose.yaml", "line": 25, "column": 5},
        log_lines=["connecting to db:5432", 'fatal: role "worker" does not exist', "exit 1"],
    ),
    service_row(
        "report",
        "scheduled",
        kind="CronJob",
        ready=0,
        desired=0,
        schedule={
            "cron": "0 6 * * *",
            "timezone": "Europe/Berlin",
            "next_runs": [moment(hours=-20)],
            "runs": [
                {
                    "job": "report-29401",
                    "started": moment(hours=4),
                    "ended": moment(hours=3.98),
                    "result": "completed",
                    "exit_status": 0,
                    "manual": False,
                },
                {
                    "job": "report-29400",
                    "started": moment(hours=28),
                    "ended": moment(hours=27.9),
                    "result": "failed",
                    "exit_status": 3,
                    "manual": True,
                },
            ],
        },
    ),
    service_row("admin", "asleep", ready=0, image="adminer:4"),
]


def _details(kind: str, name: str) -> list[str]:
    row = next((row for row in _ROWS if row["service"] == name), None)
    if kind == "service":
        return [row["kind"], row["image"].partition("@")[0]] if row else ["Deployment", f"shop/{name}:1.8.2"]
    return ["https://shop.example.com"] if kind == "endpoint" else ["1Gi"]


def graph(names: list[str], edges: list[tuple[str, str, str]]) -> dict[str, Any]:
    """Lay out nodes, by keys such as ``service/web``, as the command does."""
    details = {key: _details(*key.split("/")) for key in names}
    sizes = {
        key: Size(round(max(map(len, (key, *details[key]))) * 7.4) + 24, 38 + 18 * len(details[key])) for key in names
    }
    layout = lay_out(sizes, [(source, target) for source, target, _ in edges])
    nodes = [
        {
            "key": key,
            "kind": key.partition("/")[0],
            "name": key.partition("/")[2],
            "details": details[key],
            "x": box.x,
            "y": box.y,
            "width": box.size.width,
            "height": box.size.height,
        }
        for key, box in layout.boxes.items()
    ]
    lines = [
        {"source": source, "target": target, "label": label, "points": [list(p) for p in layout.lines[source, target]]}
        for source, target, label in edges
    ]
    return {"width": layout.size.width, "height": layout.size.height, "nodes": nodes, "edges": lines}


_EDGES = [
    ("endpoint/shop", "service/web", "/ to :80"),
    ("service/web", "service/api", "started"),
    ("service/api", "service/db", "healthy"),
    ("service/api", "service/cache", "started"),
    ("service/worker", "service/db", "started"),
    ("service/db", "volume/data", "/var/lib/postgresql/data"),
]
_VARIABLES = [
    {"name": "DB_PASSWORD", "is_secret": True, "source": "secrets.env"},
    {"name": "LOG_LEVEL", "is_secret": False, "source": "default in the file"},
]


def definition() -> dict[str, Any]:
    names = ["endpoint/shop", *(f"service/{row['service']}" for row in _ROWS), "volume/data"]
    lines = {line.strip(" :"): number for number, line in enumerate(COMPOSE.splitlines(), 1)}
    return {
        **_HEAD,
        "cluster": "staging",
        "stamp": "1",
        "graph": graph(names, _EDGES),
        "files": [{"path": "compose.yaml", "text": COMPOSE}, {"path": "compose.override.yaml", "text": OVERRIDE}],
        "services": [
            {
                "service": row["service"],
                "place": {"file": "compose.yaml", "line": lines[row["service"]], "column": 3},
                "variables": _VARIABLES if row["service"] == "api" else [],
            }
            for row in _ROWS
        ],
        "variables": _VARIABLES,
        "diagnostics": [
            {
                "code": "no-healthcheck",
                "severity": "warning",
                "message": "web has no healthcheck: it is ready as it starts",
                "hint": "add a healthcheck",
                "file": "compose.yaml",
                "line": 5,
                "column": 3,
                "path": "services.web",
            },
        ],
    }


def events() -> dict[str, Any]:
    rows = [
        {
            "time": moment(minutes=1),
            "count": 14,
            "type": "Warning",
            "service": "worker",
            "object": "Pod/worker-7d4b9c5f6-x7k2p",
            "reason": "BackOff",
            "message": "Back-off restarting failed container worker",
        },
        {
            "time": moment(minutes=5),
            "count": 1,
            "type": "Normal",
            "service": "web",
            "object": "Pod/web-7d4b9c5f6-x7k2p",
            "reason": "Pulled",
            "message": 'Container image "registry.example.com/shop/web:1.8.2" already present on machine',
        },
    ]
    return {"schema": "platform/events/1", **_HEAD, "events": rows}


def history() -> dict[str, Any]:
    rows = [
        {
            "revision": number,
            "command": "deploy",
            "services": [],
            "result": result,
            "started": moment(hours=5 * (8 - number)),
            "seconds": 21.4,
            "who": "ann@laptop",
            "commit": "3f9a2c1d" * 5,
            "branch": "main",
            "dirty": number == 6,
            "rolled_back_to": None,
            "omitted_changes": 0,
            "can_roll_back": True,
            "changes": [
                {
                    "part": {"type": "service", "name": "web"},
                    "operation": "update",
                    "images": [{"old": "shop/web:1.8.1", "new": "shop/web:1.8.2"}],
                }
            ],
        }
        for number, result in ((7, "failed"), (6, "done"), (5, "done"))
    ]
    return {"schema": "platform/history/1", **_HEAD, "revisions": rows}


def preview() -> dict[str, Any]:
    return {
        "schema": "platform/preview/1",
        **_HEAD,
        "kept_volumes": ["old-data"],
        "notes": ["2 images are built"],
        "unchanged": 17,
        "policy_violations": [],
        "changes": [
            {
                "part": {"type": "service", "name": "web"},
                "operation": "update",
                "kind": "Deployment",
                "name": "web",
                "reasons": ["image"],
                "differences": [
                    {
                        "path": "spec.template.spec.containers[0].image",
                        "old": "registry.example.com/shop/web:1.8.1",
                        "new": "registry.example.com/shop/web:1.8.2",
                        "replaces": False,
                    },
                    {
                        "path": "spec.template.spec.containers[0].resources",
                        "old": None,
                        "new": {"limits": {"memory": "256Mi"}},
                        "replaces": False,
                    },
                ],
            },
            {
                "part": {"type": "service", "name": "web"},
                "operation": "create",
                "kind": "Service",
                "name": "web",
                "reasons": [],
                "differences": [],
            },
            {
                "part": {"type": "service", "name": "worker"},
                "operation": "replace",
                "kind": "Job",
                "name": "worker",
                "reasons": ["command"],
                "differences": [
                    {"path": "spec.template", "old": ["work"], "new": ["work", "--queue", "mail"], "replaces": True}
                ],
            },
            {
                "part": {"type": "volume", "name": "old-data"},
                "operation": "delete",
                "kind": "PersistentVolumeClaim",
                "name": "old-data",
                "reasons": ["removed from the file"],
                "kept": True,
                "differences": [],
            },
        ],
    }


def operation(state: str = "running") -> dict[str, Any]:
    return {
        "operation": "deploy",
        "user": "ann",
        "pid": 4711,
        "started": moment(seconds=12),
        "ended": "" if state == "running" else moment(),
        "state": state,
        "notes": [],
        "steps": [
            {"name": "build", "phase": "done", "seconds": 4.2},
            {"name": "apply", "phase": "started", "seconds": 7.8},
        ],
        "services": {
            "db": {"phase": "unchanged", "message": "", "seconds": 0},
            "web": {"phase": "ready", "message": "2 of 2 pods are ready", "seconds": 6.1},
            "api": {"phase": "waiting", "message": "1 of 2 pods are ready", "seconds": 7.4},
            "worker": {"phase": "pending", "message": "", "seconds": 0},
        },
    }


def log_line(number: int, service: str = "web", content: str = "") -> list[Any]:
    time = (NOW + timedelta(milliseconds=7 * number)).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
    shown = (
        content
        or f'10.42.0.{number % 250} - "GET /products/{number} HTTP/1.1" 200 {512 + number % 4096} in {number % 90} ms'
    )
    return [time, service, f"{service}-7d4b9c5f6-x7k2p", shown, False, ""]


def log_lines(count: int) -> list[list[Any]]:
    names = ("web", "api", "db", "worker")
    return [log_line(number, names[number % len(names)]) for number in range(count)]


def page(**changes: Any) -> dict[str, Any]:
    listed = [{"namespace": NAMESPACE, "environment": ENVIRONMENT, "has_definition": True}]
    return {
        "version": "0.2.0",
        "read_only": False,
        "exported": False,
        "written": "",
        "notes": [],
        "environments": listed,
        **changes,
    }


def exported(**changes: Any) -> dict[str, Any]:
    """Everything that an exported page has."""
    return {
        "page": page(exported=True, read_only=True, written=moment()),
        "definition": definition(),
        "status": status(),
        "events": events(),
        "history": history(),
        "logs": log_lines(300),
        "preview": preview(),
        "operation": operation(),
        **changes,
    }


def large(count: int = 100) -> dict[str, Any]:
    """An environment of many services, each of which needs the one before the last."""
    names = [f"service-{number:03}" for number in range(count)]
    kept = ("ready", "starting", "failing", "ready", "asleep")
    rows = [service_row(name, kept[number % len(kept)]) for number, name in enumerate(names)]
    edges = [(f"service/{names[n]}", f"service/{names[n // 3]}", "healthy") for n in range(1, count)]
    shown = definition() | {"graph": graph([f"service/{name}" for name in names], edges)}
    return exported(definition=shown, status=status(rows))


def replace_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Change every text of a document, also those that are keys of services."""
    if isinstance(value, dict):
        return {key: replace_texts(found, change) for key, found in value.items()}
    if isinstance(value, list):
        return [replace_texts(found, change) for found in value]
    return change(value) if isinstance(value, str) else value
