"""The domain and the ingress class of other local clusters: known, or asked for once. The cluster is our own."""

from __future__ import annotations

from typing import Any

from composeplat.local.layout import INGRESS_CLASS
from tests.deploy.conftest import Environment, fetch, until
from tests.deploy.other_clusters import install
from tests.terminal import Terminal

FILE = """\
services:
  web:
    image: busybox:1.37
    command: sh -c "echo hello > /tmp/index.html; exec httpd -f -p 8080 -h /tmp"
    ports: ["80:8080"]
    stop_grace_period: 0s
"""


def endpoint(environment: Environment) -> tuple[str, str]:
    """The host and the class of the only Ingress."""
    (found,) = environment.objects("networking.k8s.io/v1", "Ingress")
    spec: dict[str, Any] = found["spec"]
    return spec["rules"][0]["host"], spec["ingressClassName"]


def test_known(environment: Environment) -> None:
    """Rancher Desktop documents where endpoints are, and the cluster has one class: no setting is needed."""
    install(environment, ("nerdctl",), "rancher-desktop")

    done = environment.deploy(FILE).expect()

    host = f"web-{environment.namespace}.localhost"
    assert done.stdout == f"https://{host}\n"
    assert f"endpoints of Rancher Desktop: domain localhost, ingress class {INGRESS_CLASS}\n" in done.stderr
    assert endpoint(environment) == (host, INGRESS_CLASS)
    assert until(lambda: fetch(environment, f"https://{host}")) == "hello\n"


def test_asked_for_once(environment: Environment) -> None:
    """No domain is documented for minikube: it is asked for on a terminal, checked, and known from then on."""
    install(environment, ("minikube",), "minikube")
    environment.write(FILE)
    refused = environment.platform("deploy", "--strict").expect(3)
    assert "services.web.ports[0] is public, but gets no address, as no domain is known" in refused.stderr

    terminal = Terminal(environment.command_line("preview"), folder=environment.folder, env=environment.variables)
    terminal.until("lead to the ingress controller of minikube")
    terminal.until("Domain of the endpoints (empty for none): ")
    terminal.type("-no domain-")
    terminal.until("It must be a DNS name such as apps.example.com.")
    terminal.type("Apps.Example.Com.")
    terminal.rest()
    assert terminal.status() == 0

    done = environment.platform("deploy").expect()
    host = f"web-{environment.namespace}.apps.example.com"
    assert done.stdout == f"https://{host}\n"
    assert endpoint(environment) == (host, INGRESS_CLASS)
