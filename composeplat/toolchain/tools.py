"""The table of programs, with their pins: what each is, how it is built, which version it is.

Adding a program is a row here and a Go module: of other people's programs in ``modules/``, which pins their versions;
of our own beside the room that runs it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from composeplat.system.machine import architecture
from composeplat.system.records import record

_PACKAGE = Path(str(files("composeplat")))
MODULES = _PACKAGE / "toolchain" / "modules"
CHECKSUMS = _PACKAGE / "toolchain" / "checksums.txt"


@record(kw_only=True)
class Tool:
    name: str
    """The program's file name."""
    version: str
    module: Path
    """The folder of the Go module that it is built from."""
    package: str
    stamp: str = ""
    """The Go variable that holds the program's version: without it, it calls itself something else."""
    extra_stamps: tuple[tuple[str, str], ...] = ()
    cgo: bool = False
    goos: str = ""
    goarch: str = ""
    """Built for another system than this one; empty means this one."""
    version_args: tuple[str, ...] = ()
    """Arguments that make the program print its version; none means PATH is not looked at."""
    download: str = ""
    """The URL of its release, with ``{version}``, ``{system}`` and ``{machine}``; empty means it is built."""
    only_linux: bool = False
    """There are releases for Linux only."""
    checksums: Path = CHECKSUMS
    """The checksums that are pinned for releases."""
    build_minutes: float = 1
    """How long a first build takes on two cores."""

    @property
    def flags(self) -> str:
        stamps = ((self.stamp, self.stamped),) if self.stamp else ()
        return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in (*stamps, *self.extra_stamps))])

    @property
    def stamped(self) -> str:
        return f"v{self.version}" if self.stamp.startswith(("github.com/pulumi/pulumi/", "k8s.io/")) else self.version

    @property
    def fingerprint(self) -> str:
        """A hash of all that decides what is built: cached programs of other pins are left alone."""
        system = f" {self.goos}/{self.goarch}" if self.goos else ""
        digest = hashlib.sha256(f"{self.package} {self.flags} {self.cgo}{system}".encode())
        for path in sorted(path for path in self.module.rglob("*") if path.is_file()):
            if not path.name.endswith("_test.go"):
                digest.update(str(path.relative_to(self.module)).encode() + path.read_bytes())
        return digest.hexdigest()[:12]


PULUMI = Tool(
    name="pulumi",
    version="3.259.0",
    module=MODULES / "pulumi",
    package="github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
    stamp="github.com/pulumi/pulumi/sdk/v3/go/common/version.Version",
    cgo=True,
    version_args=("version",),
    download="https://get.pulumi.com/releases/sdk/pulumi-v{version}-{system}-{short}.tar.gz",
    build_minutes=5,
)
KUBERNETES_PROVIDER = Tool(
    name="pulumi-resource-kubernetes",
    version="4.25.0",
    module=MODULES / "pulumi-kubernetes",
    package=".",
    stamp="github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version.Version",
    cgo=True,
    download="https://get.pulumi.com/releases/plugins/pulumi-resource-kubernetes-v{version}-{system}-{machine}.tar.gz",
    build_minutes=10,
)
DOCKER_BUILD_PROVIDER = Tool(
    name="pulumi-resource-docker-build",
    version="0.0.22",
    module=MODULES / "pulumi-docker-build",
    package="github.com/pulumi/pulumi-docker-build/provider/cmd/pulumi-resource-docker-build",
    stamp="github.com/pulumi/pulumi-docker-build/provider.Version",
    cgo=True,
    download="https://get.pulumi.com/releases/plugins/pulumi-resource-docker-build-v{version}-{system}-{machine}.tar.gz",
    build_minutes=3,
)
BUILDKITD = Tool(
    name="buildkitd",
    version="0.31.1",
    module=MODULES / "buildkit",
    package="github.com/moby/buildkit/cmd/buildkitd",
    stamp="github.com/moby/buildkit/version.Version",
    version_args=("--version",),
    only_linux=True,
    download="https://github.com/moby/buildkit/releases/download/v{version}/buildkit-v{version}.{system}-{machine}.tar.gz",
    build_minutes=3,
)
BUILDX = Tool(
    name="buildx",
    version="0.35.0",
    module=MODULES / "buildkit",
    package="github.com/docker/buildx/cmd/buildx",
    stamp="github.com/docker/buildx/version.Version",
    version_args=("version",),
    download="https://github.com/docker/buildx/releases/download/v{version}/buildx-v{version}.{system}-{machine}",
    build_minutes=2,
)
KUBE = Tool(
    name="kube",
    version="1.35.4",
    module=MODULES / "kubernetes",
    package=".",
    stamp="k8s.io/component-base/version.gitVersion",
    extra_stamps=(
        ("k8s.io/component-base/version.gitMajor", "1"),
        ("k8s.io/component-base/version.gitMinor", "35"),
    ),
    build_minutes=6,
)
COREDNS = Tool(
    name="coredns",
    version="1.14.1",
    module=MODULES / "coredns",
    package="github.com/coredns/coredns",
    version_args=("-version",),
    build_minutes=4,
)
KWOK = Tool(
    name="kwok", version="0.8.0", module=MODULES / "kwok", package="sigs.k8s.io/kwok/cmd/kwok", build_minutes=1.5
)

REGISTRY = Tool(
    name="registry",
    version="3.0.0",
    module=MODULES / "registry",
    package="github.com/distribution/distribution/v3/cmd/registry",
    stamp="github.com/distribution/distribution/v3/version.version",
    build_minutes=2,
)
CONTAINERD = Tool(
    name="containerd",
    version="2.2.6",
    module=MODULES / "containerd",
    package="github.com/containerd/containerd/v2/cmd/containerd",
    stamp="github.com/containerd/containerd/v2/version.Version",
    only_linux=True,
    download="https://github.com/containerd/containerd/releases/download/v{version}/containerd-static-{version}-{system}-{machine}.tar.gz",
    build_minutes=2,
)
CONTAINERD_SHIM = replace(
    CONTAINERD,
    name="containerd-shim-runc-v2",
    package="github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
    build_minutes=0.2,
)
CTR = replace(CONTAINERD, name="ctr", package="github.com/containerd/containerd/v2/cmd/ctr", build_minutes=0.2)
FRONTDOOR = Tool(
    name="frontdoor", version="0.1.0", module=_PACKAGE / "local" / "frontdoor", package=".", build_minutes=0.2
)
MIRROR = Tool(name="mirror", version="0.1.0", module=_PACKAGE / "local" / "mirror", package=".", build_minutes=0.5)
LINK = Tool(
    name="platform-link", version="0.1.0", module=_PACKAGE / "dev" / "link", package="./platform-link", build_minutes=2
)
AGENT = Tool(
    name="platform-agent",
    version="0.1.0",
    module=_PACKAGE / "dev" / "link",
    package="./agent",
    goos="linux",
    goarch=architecture(),
    build_minutes=0.7,
)


def agent_for(processor: str) -> Tool:
    """The agent that runs in containers on nodes with such a processor."""
    return replace(AGENT, goarch=processor)


DEPLOY_TOOLS = (PULUMI, KUBERNETES_PROVIDER, DOCKER_BUILD_PROVIDER, BUILDKITD, BUILDX)
DEVELOPMENT_TOOLS = (LINK, AGENT)
CLUSTER_TOOLS = (KUBE, CONTAINERD, CONTAINERD_SHIM, CTR, COREDNS, REGISTRY, FRONTDOOR, MIRROR)
SIMULATION_TOOLS = (KUBE, KWOK)
TOOLS = tuple(dict.fromkeys((*DEPLOY_TOOLS, *DEVELOPMENT_TOOLS, *CLUSTER_TOOLS, *SIMULATION_TOOLS)))


def programs_of_release(tool: Tool, tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """Return the programs of a table that come in the same release as this one: without others it is alone."""
    release = (tool.download, tool.version)
    found = tuple(other for other in tools if tool.download and (other.download, other.version) == release)
    return found if tool in found else (tool,)
