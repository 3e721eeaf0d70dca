"""Deploy this example on the local cluster, and show that its addresses answer.

Owns the demonstration: it runs ``platform deploy``, asks the page and the API as a browser would, and orders an apple.
Where Docker Hub can't be reached, it makes the images of Debian packages first, under the same names.
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
from pathlib import Path

from composeplat import progress
from composeplat.cli.progress_output import Screen
from composeplat.diagnostics import ComposeplatError
from composeplat.local.cluster import LocalCluster
from composeplat.local.cluster_kind import local_cluster
from composeplat.registry.image_config import ImageFacts, read_images
from composeplat.toolchain.setup import Toolchain
from tests.real.software import SHOP_IMAGES, push_shop

SHOP = Path(__file__).resolve().parent
NAMESPACE = "demo"
LONGEST_WAIT = 30
PLATFORM = Path(sys.executable).parent / "platform"


def main() -> int:
    with Screen():
        return demonstrate()


def demonstrate() -> int:
    cluster = local_cluster(os.environ)
    try:
        cluster.start()
        provide_images(cluster)
    except ComposeplatError as error:
        progress.conclude(f"error: {error}\n  hint: {error.hint}" if error.hint else f"error: {error}")
        return int(error.exit_code)
    words = [str(PLATFORM), "deploy", "--local", "--namespace", NAMESPACE]
    progress.note("platform deploy --local --namespace demo")
    deployed = subprocess.run(words, cwd=SHOP, stdout=subprocess.PIPE, text=True, check=False)
    if deployed.returncode:
        return deployed.returncode
    page, api = deployed.stdout.split()
    wait(page, cluster)
    ordered = json.loads(wait(f"{api}/orders/apple", cluster, "POST"))["ordered"]
    shop = json.loads(wait(f"{api}/shop", cluster))
    sys.stdout.write(f"{page}\n{api}\n")
    progress.note(f"the page shows {len(shop['products'])} products, out of {' and '.join(shop['servers'])}")
    progress.note(f"ordered an apple: {ordered} in all, which the next make demo counts on from")
    progress.note(f"see all of it as a page: platform ui --local --namespace {NAMESPACE}, in {SHOP}")
    progress.note(f"look around with: KUBECONFIG={cluster.layout.kubeconfig} kubectl -n {NAMESPACE} get all")
    destroy = f"platform destroy --local --namespace {NAMESPACE}"
    progress.note(f"take it down with: cd {SHOP}; {destroy}; platform cluster stop")
    return 0


def provide_images(cluster: LocalCluster) -> None:
    """Make the images that can't be pulled, and push them into the cluster's registry."""
    with progress.step("asking Docker Hub for the images"):
        found = read_images(SHOP_IMAGES, os.environ, timeout=10)
    if all(isinstance(facts, ImageFacts) for facts in found.values()):
        return
    with progress.step("making the images of Debian packages, as Docker Hub can't be reached"):
        push_shop(Toolchain(os.environ).cache.folder, ("127.0.0.1", cluster.layout.host_ports.registry))


def wait(url: str, cluster: LocalCluster, method: str = "GET") -> str:
    """The text behind an address, once it answers."""
    deadline, reason = time.monotonic() + LONGEST_WAIT, ""
    with progress.step(f"asking {url}"):
        while time.monotonic() < deadline:
            try:
                status, text = fetch(url, cluster, method)
            except OSError as error:
                reason = str(error)
            else:
                if status == http.client.OK:
                    return text
                reason = f"{status}: {text.strip()}"
            time.sleep(0.2)
    sys.exit(f"{url} did not answer within {LONGEST_WAIT} s: {reason}")


def fetch(url: str, cluster: LocalCluster, method: str) -> tuple[int, str]:
    """Ask an address as a browser would: hosts below localhost are this machine, and the authority is the cluster's."""
    host, _, path = url.removeprefix("https://").partition("/")
    context = ssl.create_default_context(cafile=str(cluster.layout.keys / "ca.crt"))
    plain = socket.create_connection(("127.0.0.1", cluster.layout.host_ports.https), timeout=10)
    with context.wrap_socket(plain, server_hostname=host.partition(":")[0]) as secure:
        connection = http.client.HTTPConnection(host)
        connection.sock = secure
        connection.request(method, f"/{path}")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


if __name__ == "__main__":
    sys.exit(main())
