"""Deploy this example on the local cluster, and show that its addresses answer.

Owns the demonstration: it makes the one base image, runs ``platform deploy``, and asks
the addresses as a browser would.
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
from composeplat.local.base_images import push_busybox
from composeplat.local.cluster import LocalCluster
from composeplat.local.cluster_kind import local_cluster

SHOP = Path(__file__).parent
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
        with progress.step("pushing the base image busybox"):
            push_busybox(("127.0.0.1", cluster.layout.host_ports.registry), os.environ)
    except ComposeplatError as error:
        progress.conclude(f"error: {error}\n  hint: {error.hint}" if error.hint else f"error: {error}")
        return int(error.exit_code)
    words = [str(PLATFORM), "deploy", "--local", "--namespace", NAMESPACE]
    progress.note("platform deploy --local --namespace demo")
    deployed = subprocess.run(words, cwd=SHOP, stdout=subprocess.PIPE, text=True, check=False)
    if deployed.returncode:
        return deployed.returncode
    urls = deployed.stdout.split()
    texts = [wait(url, cluster) for url in urls]
    sys.stdout.write("".join(f"{url}\n" for url in urls))
    progress.note(f"the shop sells: {', '.join(json.loads(texts[1])['products'])}")
    progress.note(f"look around with: KUBECONFIG={cluster.layout.kubeconfig} kubectl -n {NAMESPACE} get all")
    progress.note(f"take it down with: platform destroy --local --namespace {NAMESPACE}; platform cluster stop")
    return 0


def wait(url: str, cluster: LocalCluster) -> str:
    """The text behind an address, once it answers."""
    deadline, reason = time.monotonic() + LONGEST_WAIT, ""
    with progress.step(f"asking {url}"):
        while time.monotonic() < deadline:
            try:
                status, text = fetch(url, cluster)
            except OSError as error:
                reason = str(error)
            else:
                if status == http.client.OK:
                    return text
                reason = f"{status}: {text.strip()}"
            time.sleep(0.2)
    sys.exit(f"{url} did not answer within {LONGEST_WAIT} s: {reason}")


def fetch(url: str, cluster: LocalCluster) -> tuple[int, str]:
    """Ask an address as a browser would: hosts below localhost are this machine, and the authority is the cluster's."""
    host, _, path = url.removeprefix("https://").partition("/")
    context = ssl.create_default_context(cafile=str(cluster.layout.keys / "ca.crt"))
    plain = socket.create_connection(("127.0.0.1", cluster.layout.host_ports.https), timeout=10)
    with context.wrap_socket(plain, server_hostname=host.partition(":")[0]) as secure:
        connection = http.client.HTTPConnection(host)
        connection.sock = secure
        connection.request("GET", f"/{path}")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


if __name__ == "__main__":
    sys.exit(main())
