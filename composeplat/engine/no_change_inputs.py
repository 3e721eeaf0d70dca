"""What a deploy depends on besides the cluster and the state, by name: plan, versions, variables, builds, target.

Owns that each input is in here, and the ports that were read from images. An input that can't be known without a
registry, or takes long to read, is a :class:`~composeplat.engine.build_files.Doubt`.
Must not compare: :mod:`~composeplat.engine.no_change` does. Must not look at the files of builds:
:mod:`~composeplat.engine.build_files` does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from composeplat.compose.variables import asks_registries
from composeplat.engine.build_files import Doubt, digests_of
from composeplat.engine.changed_parts import fixed_facts
from composeplat.engine.stack import Stack
from composeplat.plan.desired import Plan
from composeplat.registry.exposed_ports import ExposedPorts
from composeplat.registry.image_config import Ports
from composeplat.system.folders import cache_folder
from composeplat.toolchain.tools import DOCKER_BUILD_PROVIDER, KUBERNETES_PROVIDER, PULUMI

#: The variable that makes each run a run of Pulumi.
SWITCH = "PLATFORM_SKIP_UNCHANGED"
#: The beginnings of variables that Pulumi, its providers or a builder read.
_PREFIXES = ("PULUMI_", "PLATFORM_", "COMPOSE_", "COMPOSEPLAT_", "OKTETO_", "DOCKER_", "BUILDX_", "BUILDKIT_")
_VARIABLES = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SOURCE_DATE_EPOCH",
)
_PACKAGES = ("composeplat-", "pulumi-", "pulumi_", "grpcio-", "protobuf-")
_OWN_PACKAGES = ("components", "engine")


def gather_inputs(stack: Stack, plan: Plan) -> dict[str, Any]:
    """Return the inputs of a deploy but its changing parts, or raise a :class:`Doubt`."""
    workspace, target, claim = stack.workspace, stack.target, stack.claim
    return {
        "plan": fixed_facts(plan),
        "versions": [_versions(), sys.version],
        "variables": _variables(stack.variables),
        "project": None if claim is None else [claim.project.key, claim.name_from_folder],
        "target": [target.access.address, target.kubeconfig, target.context, target.urls_of(plan)],
        "cluster": workspace.cluster,
        "backend": workspace.backend.url,
        "passphrase": _passphrase(workspace.backend.variables, stack.variables),
        "builder": sorted(workspace.builder.items()),
        "builds": digests_of(plan.images),
        "image ports": _image_ports(stack, plan),
    }


def _versions() -> list[Any]:
    """The versions of the programs and packages; of our own code, which may run from a folder, the times of files."""
    tools = [f"{tool.name} {tool.version}" for tool in (PULUMI, KUBERNETES_PROVIDER, DOCKER_BUILD_PROVIDER)]
    folders = [folder for folder in sys.path if os.path.isdir(folder)]
    names = {name for folder in folders for name in os.listdir(folder) if name.endswith(".dist-info")}
    packages = sorted(name for name in names if name.lower().startswith(_PACKAGES))
    return [tools, packages, list(_own_files(Path(__file__).parents[1]))]


def _own_files(package: Path) -> Iterator[list[Any]]:
    for name in _OWN_PACKAGES:
        for path in sorted((package / name).rglob("*.py")):
            status = path.stat()
            yield [str(path), status.st_size, status.st_mtime_ns]


def _variables(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted(
        (name, value)
        for name, value in environment.items()
        if name != SWITCH and (name.startswith(_PREFIXES) or name.upper() in _VARIABLES)
    )


def _passphrase(backend: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """The content of the file with the passphrase; the passphrase itself is a variable."""
    path = {**environment, **backend}.get("PULUMI_CONFIG_PASSPHRASE_FILE", "")
    try:
        return Path(path).read_text(encoding="utf-8") if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise Doubt("the passphrase can't be read") from error


def _image_ports(stack: Stack, plan: Plan) -> list[Any]:
    """The ports of images as they were read from their registries; they are read again after a time."""
    if not asks_registries(stack.variables):
        return []
    images = {desired.ports_of for desired in plan.objects if isinstance(desired.ports_of, str)} - {""}
    exposed = ExposedPorts(cache_folder(stack.variables) / "ports", stack.variables)
    return [[image, _known_ports(exposed, image)] for image in sorted(images)]


def _known_ports(exposed: ExposedPorts, image: str) -> Ports | None:
    entry = exposed.find_known(image)
    if entry is None:
        raise Doubt(f"the ports of image {image} have to be read from its registry")
    return entry.ports
