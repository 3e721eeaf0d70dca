"""How a folder of projects fares: each checked, moved in by `platform init` alone, deployed, and asked for its data.

    python -m tests.real.measure PROJECTS [NAME...] --facts FACTS.toml [--cluster FOLDER]

Nothing is downloaded. ``docs/real-projects.md`` says what a folder of projects has, and what was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from composeplat.compose.data_paths import find_program
from composeplat.compose.load import Loaded, Request, load
from composeplat.compose.model import HOST, Mount, Service
from composeplat.compose.origins import mount_path
from composeplat.diagnostics import dotted
from composeplat.local.cluster import LocalCluster
from composeplat.local.cluster_kind import local_cluster
from composeplat.system.files import is_system_path
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import DEPLOY_TOOLS
from tests.deploy.conftest import PORTS, Environment, an_environment
from tests.real.debian import Layer, root_layer
from tests.real.software import push_images
from tests.real.standins import Facts, make_program, read_facts, server_of
from tests.real.stores import Data, read_data, write_data

_COMPOSE_FILES = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
_IMAGE = re.compile(
    r"^(\s*(?:-\s+)?(?:image:\s*|x-[\w-]*image:\s*&\S+\s+)(?:&\S+\s+)?[\"']?)([^\"'\s#*&][^\"'\s]*)", re.MULTILINE
)
_PINNED = re.compile(r"@sha256:[0-9a-f]{64}")


@dataclass(slots=True)
class Row:
    """What became of a project; the fields are the columns of the table in ``docs/real-projects.md``."""

    name: str
    services: int = 0
    before: dict[str, int] = field(default_factory=dict)
    """Findings without `init`, by effect and code."""
    silent: list[str] = field(default_factory=list)
    """Data and files that would be lost without a message."""
    left: list[str] = field(default_factory=list)
    """Errors that `init` leaves."""
    deployed: bool = False
    reason: str = ""
    kept: dict[str, bool] = field(default_factory=dict)
    """By step, whether all data was there."""
    urls: int = 0
    seconds: float = 0


class Project:
    """A copy of a project whose images are those of the local registry."""

    def __init__(self, source: Path, target: Path, facts: Mapping[str, Any], registry: int) -> None:
        self.name = source.name
        self.registry = f"localhost:{registry}"
        self.rows: Mapping[str, Any] = facts.get("images", {})
        self.project: Mapping[str, Any] = facts.get("projects", {}).get(self.name, {})
        shutil.copytree(source, target, dirs_exist_ok=True)
        # A user's copy is a clone: the whole work tree is the project.
        subprocess.run(["git", "init", "-q", str(target)], check=True)
        self.root, self.folder = target, self._find_folder(target)
        for file in (*target.rglob("*.yml"), *target.rglob("*.yaml")):
            file.write_text(_IMAGE.sub(self._local, file.read_text()))
        self.files = [str(self.folder / file) for file in self.project.get("files", ())]

    def _find_folder(self, root: Path) -> Path:
        names = (name for name in self.project.get("files", ()) or _COMPOSE_FILES)
        found = sorted((p for name in names for p in root.rglob(name)), key=lambda path: len(path.parts))
        return found[0].parent

    def _local(self, match: re.Match[str]) -> str:
        image = _PINNED.sub("", match[2])
        head = re.split(r"[:$@]", image)[0]
        image = image.removeprefix("docker.io/").removeprefix("index.docker.io/")
        official = "library/" if "/" not in head and not image.startswith("$") else ""
        return f"{match[1]}{self.registry}/{official}{image}"

    def load(self) -> Loaded:
        return load(Request(folder=self.folder, files=tuple(self.files)))

    def facts_of(self, service: Service) -> Facts:
        own = self.rows.get(f"{self.name}/{service.name}")
        if own:
            return read_facts({"own": own}, "own")
        return read_facts(self.rows, service.image)

    def push(self, loaded: Loaded, root: Layer, registry: int) -> None:
        """Push a stand-in for each image, and give build contexts a Dockerfile of it."""
        programs = {}
        for service in loaded.project.services.values():
            facts = self.facts_of(service)
            ports = tuple(port.target for port in service.ports if port.protocol == "tcp")
            if service.build is None:
                name = service.image.removeprefix(f"{self.registry}/")
                name = name if ":" in name else f"{name}:latest"
                programs[name] = make_program(service.image, facts, ports)
            else:
                name = f"standin/{self.name}-{service.name}:latest"
                programs[name] = make_program("standin", facts, ports)
                self._write_dockerfile(service, f"{self.registry}/{name}")
        push_images(programs, root, ("127.0.0.1", registry))

    def _write_dockerfile(self, service: Service, image: str) -> None:
        assert service.build is not None
        path = Path(service.build.context, service.build.dockerfile or "Dockerfile")
        if self.root in path.parents and not service.build.dockerfile_inline:
            path.parent.mkdir(parents=True, exist_ok=True)
            stage = f" AS {service.build.target}" if service.build.target else ""
            with path.open("a") as file:
                file.write(f"FROM {image}{stage}\n")

    def data(self, loaded: Loaded) -> list[Data]:
        """List what Docker Compose would keep: the volumes and data folders of each service that it starts."""
        found = []
        for service in loaded.project.services.values():
            facts = self.facts_of(service)
            program = make_program(service.image, facts, ())
            mounted = [m.target.rstrip("/") for m in service.mounts if _holds_data(m, service)]
            paths = {*mounted, *(v for v in program.volumes if not _is_covered(v, service))}
            if paths and not service.is_job:
                found.append(
                    Data(service.name, server_of(service.image, facts) if not service.build else "", sorted(paths))
                )
        return found


def _holds_data(mount: Mount, service: Service) -> bool:
    if mount.kind != HOST:
        return not mount.read_only
    source = Path(mount.source)
    if mount.read_only or is_system_path(source) or source.is_file() or Path(mount.target).suffix:
        return False
    return not source.exists() or not any(source.iterdir()) or bool(find_program(mount.target, service.image))


def _is_covered(volume: str, service: Service) -> bool:
    return any(f"{volume}/".startswith(f"{m.target.rstrip('/')}/") for m in service.mounts)


def measure(project: Project, cluster: LocalCluster, private: Path, root: Layer, *, deploys: bool) -> Row:
    row = Row(project.name)
    began = time.monotonic()
    loaded = project.load()
    row.services = len(loaded.project.services)
    project.push(loaded, root, PORTS["registry"] + 40)
    files = [word for file in project.files for word in ("-f", file)]
    with an_environment(cluster, project.folder, private) as environment:
        environment.namespace = f"m-{re.sub('[^a-z0-9]+', '-', project.name)}"[:40]
        environment.variables["PLATFORM_QUIET"] = "true"
        try:
            data = _check(row, project, loaded, environment, files)
            if deploys:
                _deploy(row, data, environment, files)
                _use(row, data, environment, files)
        except (AssertionError, subprocess.SubprocessError) as error:
            row.reason = row.reason or str(error)[-1500:]
            row.reason += "\n" + environment.platform("status", *files).stdout[-1500:]
            row.reason += environment.platform("logs", "--tail", "5", *files).stdout[-1500:]
        finally:
            if deploys:
                environment.platform("destroy", "--volumes", "--yes", *files)
    row.seconds = round(time.monotonic() - began, 1)
    return row


def _check(row: Row, project: Project, loaded: Loaded, environment: Environment, files: list[str]) -> list[Data]:
    """Check the project before and after `init`, and return its data."""
    before = json.loads(environment.platform("check", "--json", *files).stdout)
    row.before = dict(Counter(f"{finding['effect']}:{finding['code']}" for finding in _findings(before)))
    data = project.data(loaded)
    row.silent = [*_silent_data(data, before, loaded), *_silent_files(before, loaded)]
    environment.platform("init", "--yes", *files).expect()
    if files and (project.folder / "compose.platform.yaml").exists():
        files += ["-f", str(project.folder / "compose.platform.yaml")]
    after = json.loads(environment.platform("check", "--json", *files).stdout)
    row.left = [f"{f['path']} {f['code']}" for f in _findings(after) if f["severity"] == "error"]
    started = {service["service"] for service in after["services"]}
    return [item for item in data if item.service in started]


def _deploy(row: Row, data: list[Data], environment: Environment, files: list[str]) -> None:
    done = environment.platform("deploy", "--timeout", "150", *files)
    row.reason = done.stderr[-2500:] if done.status else ""
    done.expect()
    row.urls = done.stdout.count("https://")
    for item in data:
        write_data(environment, item, "first", files)
    failing = _failing(environment, files)
    assert not failing, f"not running: {failing}"
    row.deployed = True


def _use(row: Row, data: list[Data], environment: Environment, files: list[str]) -> None:
    row.kept["written"] = all(read_data(environment, item, "first", files) for item in data)
    with environment.api() as api:
        for pod in environment.pods():
            api.delete(
                f"/api/v1/namespaces/{environment.namespace}/pods/{pod['metadata']['name']}?gracePeriodSeconds=0"
            )
    time.sleep(1)
    row.kept["killed"] = all(read_data(environment, item, "first", files) for item in data)
    environment.platform("restart", *files).expect()
    row.kept["restarted"] = all(read_data(environment, item, "first", files) for item in data)
    environment.platform("destroy", "--yes", *files).expect()
    environment.platform("deploy", "--timeout", "150", *files).expect()
    row.kept["destroyed"] = all(read_data(environment, item, "first", files) for item in data)


def _failing(environment: Environment, files: list[str]) -> list[str]:
    """List the services that don't run a minute after the deploy; some need a server and restart until it is there."""
    deadline = time.monotonic() + 60
    while True:
        time.sleep(3)
        found = json.loads(environment.platform("status", "--json", *files).stdout)
        failing = [row["service"] for row in found["services"] if row["state"] not in ("ready", "completed")]
        if not failing or time.monotonic() > deadline:
            return failing


def _findings(check: Any) -> list[Any]:
    return [*check["findings"], *(finding for service in check["services"] for finding in service["findings"])]


def _silent_data(data: list[Data], check: Any, loaded: Loaded) -> Iterator[str]:
    """Yield data that would be lost without a message: in no volume, and in no finding of its place."""
    for item in data:
        service = loaded.project.services[item.service]
        kept = {mount.target.rstrip("/") for mount in service.mounts if mount.kind != HOST}
        hosts = {m.target.rstrip("/"): index for index, m in enumerate(service.mounts) if m.kind == HOST}
        for path in item.paths:
            place = loaded.origins.written_at(mount_path(service.name, hosts[path])) if path in hosts else ()
            if path not in kept and not any(_is_about(f, dotted(place), path) for f in _findings(check)):
                yield f"data {item.service}:{path}"


def _is_about(finding: Any, place: str, path: str) -> bool:
    is_image_volume = finding["code"] == "image-volume" and f" {path}:" in finding["message"]
    return is_image_volume or bool(place and finding["path"] == place and finding["effect"] in ("lost", "cannot-run"))


def _silent_files(check: Any, loaded: Loaded) -> Iterator[str]:
    """Yield mounts of this machine that are neither copied nor in a finding."""
    places = {finding["path"] for finding in _findings(check)}
    for service in loaded.project.services.values():
        for index, mount in enumerate(service.mounts):
            is_copied = mount.content is not None and service.build is None
            place = dotted(loaded.origins.written_at(mount_path(service.name, index)))
            if mount.kind == HOST and not is_copied and place not in places:
                yield f"file {place}"


@contextmanager
def _cluster(folder: str) -> Iterator[LocalCluster]:
    ports = {name: port + 40 for name, port in PORTS.items()}
    Toolchain(os.environ).need_all(DEPLOY_TOOLS)
    with tempfile.TemporaryDirectory() as own:
        made = local_cluster({**os.environ, "COMPOSEPLAT_CLUSTER": folder or own}, ports=ports)
        made.start()
        try:
            yield made
        finally:
            if not folder:
                made.delete()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.real.measure")
    parser.add_argument("projects", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--facts", type=Path, required=True)
    parser.add_argument("--cluster", default="", help="a folder for a cluster that stays, for several runs")
    parser.add_argument("--check", action="store_true", help="check before and after `init`, without a deploy")
    given = parser.parse_args()
    facts = tomllib.loads(given.facts.read_text())
    folders = sorted(path for path in given.projects.iterdir() if path.is_dir())
    root = root_layer(Toolchain(os.environ).cache.folder)
    with _cluster(given.cluster) as cluster:
        for source in folders:
            if given.names and source.name not in given.names:
                continue
            with tempfile.TemporaryDirectory() as private:
                project = Project(source, Path(private, source.name), facts, PORTS["registry"] + 40)
                row = measure(project, cluster, Path(private), root, deploys=not given.check)
            print(json.dumps({name: getattr(row, name) for name in Row.__slots__}), flush=True)


if __name__ == "__main__":
    main()
