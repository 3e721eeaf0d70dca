"""A cluster with an admission webhook that rewrites images: its changes are no changes of the file."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from composeplat.local.cluster import LocalCluster
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import KUBE
from tests.deploy import webhook
from tests.deploy.conftest import SLEEP, Environment

FILE = f"""\
services:
  web: {{image: 'busybox:1.37', command: "{SLEEP}", stop_grace_period: 0}}
  db: {{image: 'busybox:1.37', command: "{SLEEP}", stop_grace_period: 0, volumes: ['data:/data']}}
  migrate: {{image: 'busybox:1.37', command: 'true', restart: 'no'}}
volumes: {{data: {{}}}}
"""
PORT = "26990"
LABEL = "dev.example.com/rewritten"
NAME = "rewrites-images"
REWRITTEN = f"{webhook.REGISTRY}busybox:1.37"


@pytest.fixture(scope="module")
def rewriting(cluster: LocalCluster) -> Iterator[None]:
    """A webhook in the network of the API server, for namespaces with a label."""
    server = process_of(cluster, "kube-apiserver")
    keys = [str(cluster.layout.keys / name) for name in ("api.crt", "api.key")]
    command = ["nsenter", "--target", server, "--net", sys.executable, str(Path(webhook.__file__)), PORT, *keys]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            kubectl(cluster, "create", "--filename", "-", given=json.dumps(configuration(cluster)))
            yield
            kubectl(cluster, "delete", "mutatingwebhookconfiguration", NAME)
        finally:
            process.kill()


def kubectl(cluster: LocalCluster, *args: str, given: str = "") -> None:
    kube = Toolchain(os.environ).need(KUBE).path
    command = [str(kube), "kubectl", f"--kubeconfig={cluster.layout.kubeconfig}", *args]
    subprocess.run(command, input=given, text=True, stdout=subprocess.DEVNULL, check=True)


def process_of(cluster: LocalCluster, name: str) -> str:
    """The process of a program of the cluster, which has other numbers for it."""
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            args = (folder / "cmdline").read_text().split("\0")
            if name in args[:2] and str(cluster.layout.keys) in " ".join(args):
                return folder.name
    pytest.fail(f"{name} does not run")


def configuration(cluster: LocalCluster) -> dict[str, Any]:
    authority = base64.b64encode((cluster.layout.keys / "ca.crt").read_bytes()).decode()
    rule = {"apiGroups": ["apps", "batch"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [
            {
                "name": f"{NAME}.example.com",
                "clientConfig": {"url": f"https://127.0.0.1:{PORT}/", "caBundle": authority},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "namespaceSelector": {"matchLabels": {LABEL: "true"}},
                "rules": [{**rule, "resources": ["deployments", "statefulsets", "jobs", "cronjobs"]}],
            }
        ],
    }


def images(environment: Environment) -> dict[str, str]:
    kinds = {"web": ("apps/v1", "Deployment"), "db": ("apps/v1", "StatefulSet"), "migrate": ("batch/v1", "Job")}
    found = {name: environment.get(*kind, name) for name, kind in kinds.items()}
    return {name: made["spec"]["template"]["spec"]["containers"][0]["image"] for name, made in found.items() if made}


@pytest.mark.usefixtures("rewriting")
def test_rewritten_images(environment: Environment) -> None:
    """They are changes in no later run; the Job is not run again; a change of the file, or by hand, still counts."""
    with environment.api() as api:
        labels = {LABEL: "true"}
        api.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": environment.namespace, "labels": labels}}
        )
    environment.deploy(FILE).expect()
    assert images(environment) == dict.fromkeys(("web", "db", "migrate"), REWRITTEN)
    job = environment.get("batch/v1", "Job", "migrate")
    assert job is not None

    environment.platform("preview", "--expect-no-changes").expect()
    changed = FILE.replace("web: {", "web: {environment: {A: b}, ")
    ran = environment.deploy(changed).expect()
    assert "migrate" not in ran.stdout
    again = environment.get("batch/v1", "Job", "migrate")
    assert again is not None
    assert again["metadata"]["uid"] == job["metadata"]["uid"]

    environment.deploy(changed.replace("db: {image: 'busybox:1.37'", "db: {image: 'busybox:latest'")).expect()
    assert images(environment)["db"] == f"{webhook.REGISTRY}busybox:latest"

    with environment.api() as api:
        patch = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "example.com/other"}]}}}}
        api.patch(f"/apis/apps/v1/namespaces/{environment.namespace}/deployments/web", patch)
    environment.platform("deploy", "--refresh").expect()
    assert images(environment)["web"] == REWRITTEN
