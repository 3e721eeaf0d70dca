"""The image for CI: built by our own builder on a Debian without Python's packages, and run in a pod, not as root."""

from __future__ import annotations

import base64
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from composeplat.cluster.kinds import kind_path
from composeplat.local.builder_cache import BUILDER_NAME, buildx_instance
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import BUILDX, DEPLOY_TOOLS, DEVELOPMENT_TOOLS
from tests.conftest import ROOT
from tests.debian_root import needs_debian, root_archive
from tests.deploy.conftest import PORTS, Environment, until
from tests.deploy.release import RUNTIME, build, run

REGISTRY = f"localhost:{PORTS['registry']}"
SITE = "name: site\nservices: {web: {image: 'busybox:1.37', command: httpd -f -p 8080, ports: ['80:8080']}}\n"
COMMANDS = """
set -e
echo "user $(id -u)"
cp /given/compose.yaml .
platform setup --check
platform check
platform render
platform preview
"""
pytestmark = [pytest.mark.build, pytest.mark.endurance, needs_debian]


class Builder:
    """The builder of the local cluster, by buildx."""

    def __init__(self, environment: Environment, folder: Path) -> None:
        self._folder = folder
        (folder / "buildx" / "instances").mkdir(parents=True)
        instance = buildx_instance(environment.cluster.layout.buildkit_socket)
        (folder / "buildx" / "instances" / BUILDER_NAME).write_text(instance)

    def build(self, context: Path, dockerfile: Path, name: str, *args: str) -> str:
        """Build and push an image; gives its reference."""
        reference = f"{REGISTRY}/{name}"
        buildx = Toolchain(os.environ).need(BUILDX).path
        command = ["build", "--builder", BUILDER_NAME, "--provenance=false", "--push", "--progress=plain"]
        variables = {**os.environ, "BUILDX_CONFIG": str(self._folder / "buildx"), "DOCKER_CONFIG": str(self._folder)}
        run(buildx, *command, "-t", reference, "-f", dockerfile, *args, context, variables=variables)
        return reference


def make_contexts(folder: Path) -> dict[str, Path]:
    """The contexts of the build: the wheel, what pip would download, and the programs of this machine's cache."""
    contexts = {name: folder / name for name in ("context", "wheels", "programs")}
    build(ROOT, contexts["context"], "wheel")
    shutil.copyfile(RUNTIME, contexts["context"] / "requirements.txt")
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--require-hashes")
    run(*pip, "-r", RUNTIME, "-d", contexts["wheels"])
    for found in Toolchain(os.environ).need_all((*DEPLOY_TOOLS, *DEVELOPMENT_TOOLS)).values():
        target = contexts["programs"] / "tools" / found.path.parent.name
        target.mkdir(parents=True)
        shutil.copy2(found.path, target / found.path.name)
    return contexts


def kubeconfig(environment: Environment) -> str:
    """The kubeconfig of the cluster for its pods, with its certificate in it."""
    config = yaml.safe_load(environment.cluster.layout.kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    cluster["server"] = "https://kubernetes.default.svc"
    authority = Path(cluster.pop("certificate-authority")).read_bytes()
    cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    return json.dumps(config)


def pod(image: str, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "job", "namespace": namespace},
        "spec": {
            "restartPolicy": "Never",
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "job", "image": image, "command": ["sh", "-c", COMMANDS],
                "env": [{"name": "KUBECONFIG", "value": "/given/kubeconfig"}, {"name": "CI", "value": "true"},
                        {"name": "PLATFORM_DOMAIN", "value": "localhost"},
                        {"name": "PLATFORM_NAMESPACE", "value": "preview-of-ci"}],
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                "volumeMounts": [{"name": "given", "mountPath": "/given"}],
            }],
            "volumes": [{"name": "given", "secret": {"secretName": "given"}}],
        },
    }  # fmt: skip


def test_image(environment: Environment, tmp_path: Path) -> None:
    """A job in a pod of the image checks, renders and previews, with the programs that are in it."""
    builder, contexts = Builder(environment, tmp_path), make_contexts(tmp_path)
    (tmp_path / "base").mkdir()
    shutil.copyfile(
        root_archive("bookworm", ("python3", "python3-venv", "ca-certificates")), tmp_path / "base/root.tar"
    )
    (tmp_path / "base" / "Dockerfile").write_text("FROM scratch\nADD root.tar /\n")
    base = builder.build(tmp_path / "base", tmp_path / "base" / "Dockerfile", "debian:bookworm")
    given = [f"--build-context={name}={contexts[name]}" for name in ("wheels", "programs")]
    more = ["--build-arg", f"BASE={base}", "--build-arg", "PIP_ARGS=--no-index --find-links /wheels"]
    image = builder.build(contexts["context"], ROOT / "ci" / "image" / "Dockerfile", "ci:1", *given, *more)

    output = run_pod(environment, image)

    user, rest = output.split("\n", 1)
    assert user == "user 1000"
    # Go is needed to build programs alone.
    assert [line.split()[0] for line in rest.splitlines() if " missing" in line] == ["go"]
    assert "kind: Deployment" in rest
    assert "create Deployment web" in rest


def run_pod(environment: Environment, image: str) -> str:
    """Run the commands in a pod of the image; gives what they printed."""
    given = {"kubeconfig": kubeconfig(environment), "compose.yaml": SITE}
    name, meta = environment.namespace, {"namespace": environment.namespace}
    with environment.api() as api:
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "given", **meta}, "stringData": given}
        api.create(secret)
        until(lambda: api.items(f"/api/v1/namespaces/{name}/serviceaccounts"))
        api.create(pod(image, name))
        until(lambda: phase(environment) in ("Succeeded", "Failed"), seconds=240)
        output = api.text(f"{kind_path('v1', 'Pod', name)}/job/log")
    assert phase(environment) == "Succeeded", output
    return output


def phase(environment: Environment) -> str:
    found = environment.get("v1", "Pod", "job")
    return str(found["status"]["phase"]) if found else ""
