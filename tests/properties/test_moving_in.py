"""What ``platform init`` makes of definitions that need several of its entries: a file that can be read, in one run."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.in_process import run_here

NAME = "compose.platform.yaml"
_PORTS = (80, 3000, 5432, 8080, 9092)
_SERVICES = ("web", "my_app", "Api", "data.store", "kafka", "member-1", "member-2", "2fast")
_IMAGES = ("nginx", "postgres:16", "redis", "confluentinc/cp-kafka", "hashicorp/consul", "minio/minio", "traefik:v2")
_MOUNTS = (
    "/etc/letsencrypt:/etc/letsencrypt",
    "/etc/localtime:/etc/localtime:ro",
    "/opt/app/data:/data",
    "/srv/1e3:/values",
    "/var/run/docker.sock:/var/run/docker.sock",
    "./2024:/years",
    "./conf:/etc/conf:ro",
    "./data:/var/lib/postgresql/data",
    "./missing:/var/lib/x",
    "./on:/on",
    "named:/named",
)
_COMMANDS = (
    "agent --join {other} --listen http://localhost:{port}",
    "./wait {other}:{port}; echo done",
    ["sh", "-c", "curl http://{other}:{port}"],
    "--advertise {other}:26257 --rpc-addr={own}:26257",
    ["migrate", "postgres://u:p@{other}:5432/x"],
)
_VARIABLES = {
    "ALLOWED_HOSTS": "localhost,127.0.0.1",
    "API_URL": "http://{other}:{port}/api",
    "CORS_ORIGINS": "http://localhost:{port},http://{other}:{port}",
    "DB_HOST": "{other}",
    "HOST": "host.docker.internal",
    "KAFKA_LISTENERS": "PLAINTEXT://{own}:9092",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://{own}:9092",
    "NEXTAUTH_URL": "http://localhost:{port}",
    "NO": "http://localhost:{port}",
    "PEER": "http://c-{other}:{port}",
    "SEEDS": "{own}:7000,{other}:7000",
    "VIRTUAL_HOST": "{own}.example.com",
}
_LABELS = (
    ["traefik.enable=true", "traefik.http.routers.a.rule=Host(`a.example.com`) && PathPrefix(`/x`)"],
    {"caddy": "b.example.com", "caddy.reverse_proxy": "{{upstreams 80}}"},
)
_DEPLOYS = ({"replicas": 2}, {"mode": "global"}, {"restart_policy": {"condition": "on-failure"}})
_HOSTS = (["host.docker.internal:host-gateway"], {"here.test": "host-gateway"})

randoms = st.randoms(use_true_random=False)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp())
    for name in ("2024", "conf", "data", "on", "part"):
        (made / name).mkdir()
    (made / "conf" / "app.conf").write_text("proxy_pass http://my_app:80;\n")
    (made / "data" / "file").write_text("x")
    (made / "Dockerfile").write_text("FROM scratch\n")
    (made / "part" / "Dockerfile").write_text("FROM team/base\n")
    yield made
    shutil.rmtree(made)


def definition_of(random: Random) -> dict[str, Any]:
    names = random.sample(_SERVICES, random.randint(1, 5))
    return {
        "services": {name: service_of(random, name, names) for name in names},
        "volumes": {"named": {}},
        **random.choice(({}, {"x-platform": {"full": True}})),
    }


def service_of(random: Random, name: str, names: list[str]) -> dict[str, Any]:
    other, port = random.choice(names), random.choice(_PORTS)
    fill = {"own": name, "other": other, "port": port}

    def filled(value: Any) -> Any:
        return [filled(item) for item in value] if isinstance(value, list) else value.format(**fill)

    variables = random.sample(sorted(_VARIABLES), random.randint(0, 4))
    mounts = random.sample(_MOUNTS, random.randint(0, 3))
    keys: dict[str, Any] = {
        "command": filled(random.choice(_COMMANDS)),
        "container_name": f"c-{name}",
        "deploy": random.choice(_DEPLOYS),
        "environment": {variable: filled(_VARIABLES[variable]) for variable in variables},
        "extra_hosts": random.choice(_HOSTS),
        "labels": random.choice(_LABELS),
        "ports": [f"{port}:{port}"],
        "profiles": ["dev"],
        "restart": random.choice(("always", "no", "on-failure")),
        "volumes": mounts,
        "volumes_from": [other] if other != name else None,
    }
    chosen = random.sample(sorted(keys), random.randint(1, 6))
    source = {"image": random.choice(_IMAGES)} if random.random() < 0.8 else random.choice(_BUILDS)
    return {**source, **{key: keys[key] for key in chosen if keys[key]}}


_BUILDS: tuple[dict[str, Any], ...] = (
    {"build": ".", "image": "team/base"},
    {"build": {"context": "part", "args": {"URL": "http://localhost:3000"}}},
)


@given(random=randoms)
def test_one_run_writes_all_entries(folder: Path, random: Random) -> None:
    """A second run writes nothing, and no error is of the file that was written."""
    (folder / NAME).unlink(missing_ok=True)
    (folder / "compose.yaml").write_text(json.dumps(definition_of(random)))
    first = run_here("init", "--offline", "--yes", folder=folder)
    if "[no-services]" in first.stderr:
        return
    first.assert_success()
    written = text_of(folder / NAME)
    run_here("init", "--offline", "--yes", folder=folder).assert_success()
    assert written == text_of(folder / NAME)

    check = json.loads(run_here("check", "--offline", "--json", folder=folder).stdout)
    findings = [*check["findings"], *(finding for service in check["services"] for finding in service["findings"])]
    errors = [found for found in findings if found["severity"] == "error" and found["file"] == NAME]
    assert errors == []


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""
