"""The helper image, which brings the agent into a pod with any image of the user.

Owns how it is built, and how it gets to the nodes: by a registry, or loaded where another local cluster has none.
It has a static program for each architecture, and the notices of its libraries.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

from composeplat.cluster.api import Api
from composeplat.cluster.archive_loading import ArchiveLoader, have_image, need_load_program
from composeplat.cluster.other_clusters import OtherCluster
from composeplat.diagnostics import ComposeplatError, MissingPiece
from composeplat.engine.backend import DataFolder
from composeplat.engine.builder import BUILDER, builder_variables
from composeplat.engine.layout_loading import load_layout
from composeplat.engine.target import Target
from composeplat.names import LOADED_LABEL
from composeplat.system.records import record
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import AGENT, BUILDX, agent_for

NOTICES = AGENT.module / "NOTICES"
_DOCKERFILE = """\
FROM scratch
ARG TARGETARCH
COPY $TARGETARCH/platform-agent /platform-agent
COPY NOTICES /NOTICES
"""
_LOADED_AS = "docker.io/library/platform-agent"
_MAX_ERROR_LINES = 5
_BUILD_TIMEOUT_S = 300


@record
class HelperImage:
    reference: str
    pull_policy: str = ""
    """Empty for that of the cluster."""


def check_helper_image(target: Target, registry: str, path: str | None) -> OtherCluster | None:
    """Check that the image can get to the nodes, and return the cluster that it is loaded into without a registry."""
    if registry:
        return None
    if target.other is None:
        raise MissingPiece(
            "a development container needs a registry, for the image with the agent",
            "give --registry or set PLATFORM_REGISTRY; or name an image with the agent: --helper-image",
        )
    need_load_program(target.other, path)
    return target.other


@record(kw_only=True)
class HelperBuild:
    """Builds the helper image for the processors of the nodes."""

    toolchain: Toolchain
    target: Target
    data_folder: DataFolder
    registry: str
    architectures: Collection[str]

    def provide(self, api: Api) -> HelperImage:
        """Build the image and bring it to the nodes. One that they have already is neither pushed nor loaded again."""
        other = check_helper_image(self.target, self.registry, self.toolchain.environment.get("PATH"))
        if other is None:
            return HelperImage(self._push())
        if len(self.architectures) > 1:
            raise MissingPiece(
                f"the nodes of {other.title} have several processors, and an image that is loaded is for one",
                "push to a registry: --registry",
            )
        (processor,) = self.architectures
        name = f"{_LOADED_AS}:{self._tag}-{processor}"
        if not have_image(api, name):
            self._load(other, name)
        return HelperImage(name, other.product.pull_policy)

    @property
    def _tag(self) -> str:
        return agent_for(next(iter(self.architectures))).fingerprint

    def _push(self) -> str:
        where = f"pushed to {self.registry}"
        digest = self._build(where, "--push", "--tag", f"{self.registry}/platform-agent:{self._tag}")
        return f"{self.registry}/platform-agent@{digest}"

    def _load(self, other: OtherCluster, name: str) -> None:
        environment = self.toolchain.environment
        with tempfile.TemporaryDirectory() as folder:
            image = Path(folder) / "image"
            digest = self._build(
                "built", "--label", f"{LOADED_LABEL}=true", "--output", f"type=oci,dest={image},tar=false"
            )
            loader = ArchiveLoader(cluster=other, access=self.target.access, environment=environment)
            load_layout(loader, "the helper image", image, digest, name)

    def _build(self, what: str, *args: str) -> str:
        """Build the image, and return its digest."""
        agents = {processor: self.toolchain.need(agent_for(processor)) for processor in self.architectures}
        buildx = self.toolchain.need(BUILDX)
        variables = builder_variables(self.toolchain.environment, self.target, self.data_folder)
        with tempfile.TemporaryDirectory() as folder:
            for processor, program in agents.items():
                context = Path(folder) / processor
                context.mkdir()
                shutil.copy2(program.path, context / "platform-agent")
            shutil.copy2(NOTICES, Path(folder) / "NOTICES")
            (Path(folder) / "Dockerfile").write_text(_DOCKERFILE, encoding="utf-8")
            metadata = Path(folder) / "metadata.json"
            command = [
                str(buildx.path),
                "build",
                "--provenance=false",
                "--progress=plain",
                "--platform",
                ",".join(f"linux/{processor}" for processor in agents),
                "--metadata-file",
                str(metadata),
                *(["--builder", variables[BUILDER]] if variables[BUILDER] else []),
                *args,
                folder,
            ]
            _run(command, {**self.toolchain.environment, **variables}, what)
            return str(json.loads(metadata.read_text(encoding="utf-8"))["containerimage.digest"])


def _run(command: list[str], variables: Mapping[str, str], what: str) -> None:
    try:
        done = subprocess.run(
            command,
            env={**variables, "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_BUILD_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            cwd=os.sep,
        )
    except subprocess.TimeoutExpired as error:
        raise ComposeplatError(f"the helper image can't be {what}: not done after {_BUILD_TIMEOUT_S} s") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()][-_MAX_ERROR_LINES:]
        hint = "check that the registry answers, and that you are logged in to it" if "--push" in command else ""
        raise ComposeplatError(f"the helper image can't be {what}: {' | '.join(lines)}", hint)
