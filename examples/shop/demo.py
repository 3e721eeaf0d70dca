"""Run this example on the local cluster, and show that its addresses answer.

Owns the demonstration: what `platform deploy` will do with Pulumi is done here by building the images with BuildKit and
applying what `platform render` plans, in the order of its dependencies.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from composeplat.cluster.api import Api, ApiError, kind_path, object_path
from composeplat.diagnostics import ComposeplatError
from composeplat.load import load_definition
from composeplat.local.base_images import push_busybox
from composeplat.local.choice import local_cluster
from composeplat.local.cluster import LocalCluster
from composeplat.model import COMPLETED, HEALTHY
from composeplat.plan import Desired, ImageBuild, ImageOf, Plan, ServicePlan, make_plan
from composeplat.request import Request
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.steps import Steps
from composeplat.toolchain.tools import BUILDX

SHOP = Path(__file__).parent / "compose.yaml"
NAMESPACE = "demo"
LONGEST_WAIT = 120


def main() -> int:
    steps = Steps(os.environ)
    cluster = local_cluster(os.environ)
    try:
        cluster.start()
        plan = read_plan(cluster)
        with steps.step("pushing the base image busybox"):
            push_busybox(("127.0.0.1", cluster.layout.doors.registry), os.environ)
        digests = {image.service: build(image, cluster, steps) for image in plan.images}
        deploy(plan, digests, Api(cluster.access), steps)
        for url in [url for endpoint in plan.endpoints for url in endpoint.urls]:
            with steps.step(f"waiting for {url}"):
                wait(url, lambda url=url: fetch(url, cluster))  # type: ignore[misc]
            sys.stdout.write(f"{url}\n")
        products = fetch(plan.endpoints[0].urls[1], cluster)
        steps.say(f"the shop sells: {', '.join(json.loads(products)['products'])}")
        steps.say(f"look around with: KUBECONFIG={cluster.layout.kubeconfig} kubectl -n {NAMESPACE} get all")
        steps.say("end it with: platform cluster stop")
    except ComposeplatError as error:
        steps.say(f"error: {error}\n  hint: {error.hint}" if error.hint else f"error: {error}")
        return int(error.exit_code)
    return 0


def read_plan(cluster: LocalCluster) -> Plan:
    registry = f"localhost:{cluster.layout.doors.registry}"
    request = Request(
        files=(str(SHOP),), folder=SHOP.parent, namespace=NAMESPACE, domain="localhost", registry=registry
    )
    loaded = load_definition(request)
    plan = make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report)
    loaded.report.raise_if_errors()
    return plan


def build(image: ImageBuild, cluster: LocalCluster, steps: Steps) -> str:
    """Build and push an image with the cluster's BuildKit, and give its name by digest."""
    environment = {**os.environ, "BUILDX_CONFIG": str(cluster.layout.folder / "buildx")}
    buildx = str(Toolchain(os.environ, steps).need(BUILDX).path)
    known = subprocess.run([buildx, "inspect", "composeplat"], env=environment, capture_output=True, check=False)
    if known.returncode:
        address = f"unix://{cluster.layout.buildkit_socket}"
        run([buildx, "create", "--name", "composeplat", "--driver", "remote", address], environment)
    facts = cluster.layout.folder / "buildx" / f"{image.service}.json"
    words = [buildx, "build", "--builder", "composeplat", "--push", "--tag", image.reference]
    with steps.step(f"building {image.reference}"):
        run([*words, "--metadata-file", str(facts), image.build.context], environment)
    digest = json.loads(facts.read_text(encoding="utf-8"))["containerimage.digest"]
    return f"{image.reference}@{digest}"


def run(words: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ComposeplatError(f"{Path(words[0]).name} {words[1]} failed: {done.stderr.strip()[-800:]}")


def deploy(plan: Plan, digests: dict[str, str], api: Api, steps: Steps) -> None:
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    wait("the namespace", lambda: api.get(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"))
    for volume in plan.volumes:
        put(volume.objects, digests, api)
    for service in plan.services:
        wait_for_dependencies(service, plan, api, steps)
        put(service.objects, digests, api)
    for endpoint in plan.endpoints:
        put(endpoint.objects, digests, api)


def put(objects: tuple[Desired, ...], digests: dict[str, str], api: Api) -> None:
    for desired in objects:
        manifest = bind(desired.manifest, digests)
        if desired.kind == "Job":
            replace_job(manifest, api)
        else:
            api.apply(manifest)


def replace_job(manifest: dict[str, Any], api: Api) -> None:
    """A Job can't be changed: one that differs is made anew."""
    try:
        api.apply(manifest)
    except ApiError:
        api.delete(object_path(manifest))
        wait("the old job to go", lambda: is_gone(object_path(manifest), api))
        api.apply(manifest)


def is_gone(path: str, api: Api) -> bool:
    try:
        api.get(path)
    except ApiError as error:
        return error.status == http.client.NOT_FOUND
    return False


def wait_for_dependencies(service: ServicePlan, plan: Plan, api: Api, steps: Steps) -> None:
    names = {one.name: one for one in plan.services}
    for edge in plan.edges:
        if edge.service == service.name:
            dependency = names[edge.dependency]
            with steps.step(f"{service.name} waits for {dependency.name} ({edge.condition})"):
                wait(dependency.name, lambda d=dependency, c=edge.condition: meets(d, c, api))  # type: ignore[misc]


def meets(service: ServicePlan, condition: str, api: Api) -> bool:
    if condition == COMPLETED:
        job = api.get(f"{kind_path('batch/v1', 'Job', NAMESPACE)}/{service.cluster_name}")
        failed = [c for c in job.get("status", {}).get("conditions") or [] if c["type"] == "Failed"]
        if failed:
            raise ComposeplatError(f"the job {service.name} failed: {failed[0].get('message', '')}")
        return bool(job.get("status", {}).get("succeeded"))
    pods = api.items(
        f"{kind_path('v1', 'Pod', NAMESPACE)}?labelSelector=app.kubernetes.io/name%3D{service.cluster_name}"
    )
    wanted = "Ready" if condition == HEALTHY else "PodReadyToStartContainers"
    conditions = [c for pod in pods for c in pod.get("status", {}).get("conditions") or []]
    return any(c["type"] == wanted and c["status"] == "True" for c in conditions)


def bind(value: Any, digests: dict[str, str]) -> Any:
    """Put the built images where the plan says they go."""
    match value:
        case ImageOf():
            return digests[value.service]
        case dict():
            return {key: bind(item, digests) for key, item in value.items()}
        case list():
            return [bind(item, digests) for item in value]
        case _:
            return value


def wait(what: str, done: Callable[[], Any]) -> None:
    deadline, reason = time.monotonic() + LONGEST_WAIT, ""
    while time.monotonic() < deadline:
        try:
            if done():
                return
        except (ApiError, OSError) as error:
            reason = f": {error}"
        time.sleep(0.2)
    raise ComposeplatError(f"waited {LONGEST_WAIT} s for {what}{reason}")


def fetch(url: str, cluster: LocalCluster) -> str:
    """Ask an address as a browser would: hosts below localhost are this machine, and the authority is the cluster's."""
    host, _, path = url.removeprefix("https://").partition("/")
    context = ssl.create_default_context(cafile=str(cluster.layout.keys / "ca.crt"))
    plain = socket.create_connection(("127.0.0.1", cluster.layout.doors.https), timeout=10)
    with context.wrap_socket(plain, server_hostname=host) as secure:
        connection = http.client.HTTPConnection(host)
        connection.sock = secure
        connection.request("GET", f"/{path}")
        answer = connection.getresponse()
        text = answer.read().decode()
    if answer.status != http.client.OK:
        raise ApiError(answer.status, f"{url} answered {answer.status}: {text.strip()}")
    return text


if __name__ == "__main__":
    sys.exit(main())
