"""The helper image, which brings the agent into a pod with any image of the user.

Owns how it is built and pushed. It has a static program for each architecture, and the notices of its libraries.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

from composeplat.diagnostics import ComposeplatError, MissingPiece
from composeplat.engine.backend import DataFolder
from composeplat.engine.builder import BUILDER, builder_variables
from composeplat.engine.target import Target
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import AGENT, BUILDX, agent_for

NOTICES = AGENT.module / "NOTICES"
_DOCKERFILE = """\
FROM scratch
ARG TARGETARCH
COPY $TARGETARCH/platform-agent /platform-agent
COPY NOTICES /NOTICES
"""
_MAX_ERROR_LINES = 5
_BUILD_TIMEOUT_S = 300


def build_helper_image(
    toolchain: Toolchain, target: Target, data_folder: DataFolder, registry: str, architectures: Collection[str]
) -> str:
    """Build and push the helper image, and return its reference by digest. An unchanged image is not pushed again."""
    if not registry:
        raise MissingPiece(
            "a development container needs a registry, for the image with the agent",
            "give --registry or set PLATFORM_REGISTRY; or name an image with the agent: --helper-image",
        )
    agents = {architecture: toolchain.need(agent_for(architecture)) for architecture in architectures}
    buildx = toolchain.need(BUILDX)
    variables = builder_variables(toolchain.environment, target, data_folder)
    tag = next(iter(agents.values())).tool.fingerprint
    with tempfile.TemporaryDirectory() as folder:
        for architecture, program in agents.items():
            context = Path(folder) / architecture
            context.mkdir()
            shutil.copy2(program.path, context / "platform-agent")
        shutil.copy2(NOTICES, Path(folder) / "NOTICES")
        (Path(folder) / "Dockerfile").write_text(_DOCKERFILE, encoding="utf-8")
        metadata = Path(folder) / "metadata.json"
        command = [
            str(buildx.path),
            "build",
            "--push",
            "--provenance=false",
            "--progress=plain",
            "--platform",
            ",".join(f"linux/{architecture}" for architecture in agents),
            "--metadata-file",
            str(metadata),
            *(["--builder", variables[BUILDER]] if variables[BUILDER] else []),
            "--tag",
            f"{registry}/platform-agent:{tag}",
            folder,
        ]
        _run(command, {**toolchain.environment, **variables}, registry)
        digest = json.loads(metadata.read_text(encoding="utf-8"))["containerimage.digest"]
    return f"{registry}/platform-agent@{digest}"


def _run(command: list[str], variables: Mapping[str, str], registry: str) -> None:
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
        raise ComposeplatError(
            f"pushing the helper image to {registry} takes longer than {_BUILD_TIMEOUT_S} s"
        ) from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()][-_MAX_ERROR_LINES:]
        raise ComposeplatError(
            f"the helper image can't be pushed to {registry}: {' | '.join(lines)}",
            "check that the registry answers, and that you are logged in to it",
        )
