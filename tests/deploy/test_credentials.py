"""Credentials of three seconds on a real API server: deploys, logs, watches and `up` outlive them."""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.credentials import Credential, static_credentials
from composeplat.dev.dev_workload import dev_workload_name
from composeplat.dev.lease import LEASE_ANNOTATION
from composeplat.local.cluster import LocalCluster
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import KUBE
from tests.conftest import ENDURANCE, has_long_round
from tests.deploy import short_lived
from tests.deploy.conftest import SLEEP, Environment, Ran, until
from tests.deploy.test_up import up_args

ACCOUNT = "short-lived"
#: An API server remembers for so long that it has taken a token.
REMEMBERED = 10
#: An API server remembers a token that it has taken, so that it takes longer to show that one was renewed.
KINDS = ("token", "certificate") if ENDURANCE else ("certificate",)
#: For so long a deploy waits for the service that is slow.
SLOW = 150 if ENDURANCE else 6
#: So often the files change while `up` runs, with five seconds in between.
PAGES = 30 if ENDURANCE else 2
COUNTING = "sh -c 'trap exit TERM; n=0; while :; do n=$$((n+1)); echo line $$n; sleep 0.1; done'"


def file(slow: int) -> str:
    return f"""\
services:
  web:
    image: 'busybox:1.37'
    command: "{COUNTING}"
    stop_grace_period: 0
    volumes: ['./src:/app']
    healthcheck: {{test: '[ $(( $(date +%s) - $(stat -c %Y /proc/1) )) -ge {slow} ]', interval: 1s, retries: 500}}
  after:
    image: 'busybox:1.37'
    command: "{COUNTING}"
    stop_grace_period: 0
    depends_on: {{web: {{condition: service_healthy}}}}
"""


@pytest.fixture(scope="module")
def account(cluster: LocalCluster) -> str:
    """A service account that may do anything; gives its number."""
    metadata = {"name": ACCOUNT, "namespace": "default"}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": ACCOUNT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", **metadata}],
    }  # fmt: skip
    kubectl = [str(Toolchain(os.environ).need(KUBE).path), "kubectl", f"--kubeconfig={cluster.layout.kubeconfig}"]
    items = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}, binding]
    applied = {"apiVersion": "v1", "kind": "List", "items": items}
    subprocess.run(
        [*kubectl, "apply", "-f", "-"], input=json.dumps(applied), text=True, check=True, capture_output=True
    )
    with Api(cluster.access) as api:
        return str(api.get(f"/api/v1/namespaces/default/serviceaccounts/{ACCOUNT}")["metadata"]["uid"])


def use_plugin(
    environment: Environment, folder: Path, account: str, kind: str, stated_life: float = short_lived.LIFE
) -> Path:
    """Let the environment's kubeconfig name the plugin; gives the file that notes each of its runs."""
    layout, notes = environment.cluster.layout, folder / f"{kind}-runs"
    config = json.loads(layout.kubeconfig.read_text())
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": sys.executable,
        "args": ["-IS", short_lived.__file__, str(layout.keys), ACCOUNT, account, kind, str(notes), str(stated_life)],
    }  # fmt: skip
    config["users"] = [{"name": row["name"], "user": {"exec": plugin}} for row in config["users"]]
    named = folder / f"{kind}-kubeconfig"
    named.write_text(json.dumps(config))
    environment.variables["KUBECONFIG"] = str(named)
    return notes


def runs(notes: Path) -> int:
    return len(notes.read_text().splitlines())


def test_tokens_and_certificates_that_end(cluster: LocalCluster, account: str) -> None:
    """The API server takes what the plugin gives for three seconds: the rest of these tests would show nothing else."""
    keys, end = cluster.layout.keys, time.time() + short_lived.LIFE
    certificate, key = short_lived.make_certificate(keys, ACCOUNT, end)
    given = {
        "token": Credential(token=short_lived.make_token(keys, ACCOUNT, account, end)),
        "certificate": Credential(certificate_data=certificate, key_data=key),
    }
    given = {kind: credential for kind, credential in given.items() if kind in KINDS}
    asked = {
        name: Api(replace(cluster.access, credentials=static_credentials(credential)))
        for name, credential in given.items()
    }
    for name, api in asked.items():
        with api:
            assert api.get("/api/v1/namespaces/default")["kind"] == "Namespace", name
    time.sleep(short_lived.LIFE + 1)
    refused = {}
    for name, api in asked.items():
        deadline = time.monotonic() + REMEMBERED
        while name not in refused and time.monotonic() < deadline:
            with api:
                try:
                    api.get("/api/v1/namespaces/default")
                    time.sleep(0.2)
                except ApiError as error:
                    refused[name] = error.status

    assert refused == dict.fromkeys(given, http.client.UNAUTHORIZED)


@contextlib.contextmanager
def running(environment: Environment, name: str, *args: str) -> Iterator[Path]:
    """Run a command meanwhile; gives the file of its output, and sees that it has not ended by itself."""
    output = environment.folder.parent / f"{environment.namespace}-{name}"
    with output.open("wb") as stream:
        process = subprocess.Popen(
            list(args), cwd=environment.folder, env=environment.variables, stdin=subprocess.DEVNULL,
            stdout=stream, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield output
        assert process.poll() is None, output.read_text()
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()


def count_of(output: Path) -> int:
    """How many lines there are, of those that a service counts; none is missing, and none comes twice."""
    numbers = [int(line.rpartition(" ")[2]) for line in output.read_text().splitlines() if " line " in f" {line}"]
    assert numbers == list(range(1, len(numbers) + 1))
    return len(numbers)


@has_long_round
@pytest.mark.parametrize("kind", KINDS)
def test_beyond_the_end(environment: Environment, tmp_path: Path, account: str, kind: str) -> None:
    """A deploy, logs that are followed and a watched status continue through the ends of credentials."""
    notes = use_plugin(environment, tmp_path, account, kind)
    environment.write(file(SLOW))
    environment.write("page", "src/index.html")
    logs = environment.command_line("logs", "--follow", "--no-prefix", "web")
    status = environment.command_line("status", "--watch")
    done: list[Ran] = []
    deploy = threading.Thread(target=lambda: done.append(environment.platform("deploy", "--timeout", "400")))
    deploy.start()
    until(lambda: environment.pods("web") and environment.pods("web")[0]["status"]["phase"] == "Running")
    with running(environment, "logs", *logs) as lines, running(environment, "status", *status) as shown:
        deploy.join()
        before = count_of(lines)
        until(lambda: count_of(lines) > before + 10)
        until(lambda: "after" in shown.read_text().rpartition("SERVICE")[2])
        trouble = [text for text in (lines.read_text(), shown.read_text()) if "credential" in text]

    done[0].expect()
    assert trouble == []
    assert done[0].seconds > SLOW
    assert before > 5 * SLOW
    assert runs(notes) > done[0].seconds / short_lived.LIFE


def test_a_plugin_that_prints_too_much(environment: Environment, tmp_path: Path, account: str) -> None:
    """A credential that ends before its plugin says so is renewed when it is refused; Pulumi is run again."""
    use_plugin(environment, tmp_path, account, "certificate", stated_life=600)
    app = f"image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0"
    slow = "healthcheck: {test: '[ $$(( $$(date +%s) - $$(stat -c %Y /proc/1) )) -ge 3 ]', interval: 1s, retries: 99}"
    after = "depends_on: {slow: {condition: service_healthy}}"
    done = environment.deploy(f"services:\n  slow: {{{app}, {slow}}}\n  after: {{{app}, {after}}}\n")

    done.expect()
    assert "the cluster rejected an expired credential; continuing with a new one" in done.stderr
    assert len(environment.pods()) == 2


@pytest.mark.endurance
def test_up_beyond_the_end(environment: Environment, tmp_path: Path, account: str) -> None:
    """`up` keeps its claim, its files and its ports through many ends of its credential."""
    environment.write("page", "src/index.html")
    environment.deploy(file(0)).expect()
    notes = use_plugin(environment, tmp_path, account, "certificate")
    listing = "while :; do cat /app/index.html; sleep 0.2; done"
    with running(environment, "up", *up_args(environment, "web", "--", "sh", "-c", listing)) as shown:
        until(lambda: "page" in shown.read_text())
        for number in range(PAGES):
            page = f"page {number};"
            environment.write(page, "src/index.html")
            until(functools.partial(is_in, page, shown))
            time.sleep(5)
            assert claimed(environment) < 15

    # A credential is renewed when it is used, and an idle `up` asks the cluster for no more than its claim.
    assert runs(notes) > 5 * PAGES / 15


def is_in(text: str, path: Path) -> bool:
    return text in path.read_text()


def claimed(environment: Environment) -> float:
    """How many seconds ago `up` has renewed its claim."""
    dev_workload = environment.get("apps/v1", "Deployment", dev_workload_name("web")) or {}
    return time.time() - float(json.loads(dev_workload["metadata"]["annotations"][LEASE_ANNOTATION])["seen"])
