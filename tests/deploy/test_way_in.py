"""The command that a message names for a port that no HTTPS route can carry: it works as it stands, and stays."""

from __future__ import annotations

import shlex
import subprocess

from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import KUBE
from tests.deploy.conftest import SLEEP, Environment

FILE = f"""\
services:
  dns: {{image: 'busybox:1.37', command: "{SLEEP}", stop_grace_period: 0, ports: ['53:53/udp'], scale: '${{N:-0}}'}}
"""


def test_a_way_in_for_udp(environment: Environment) -> None:
    """A Service made so leads to the pods, and the next deploy and destroy leave it alone, as it is not theirs."""
    environment.write(FILE)
    output = environment.platform("deploy", "--no-wait", N="0").expect().stderr
    (hint,) = (line for line in output.splitlines() if "to expose it:" in line)
    arguments = shlex.split(hint.partition(", or kubectl ")[2])
    program = Toolchain(environment.variables).need(KUBE).path
    config = f"--kubeconfig={environment.cluster.layout.kubeconfig}"
    where = [str(program), "kubectl", config, f"--namespace={environment.namespace}"]
    subprocess.run([*where, *arguments], check=True, capture_output=True)

    environment.platform("deploy", "--no-wait", N="1").expect()

    made, own = (environment.get("v1", "Service", name) for name in ("dns-udp", "dns"))
    assert made is not None
    assert own is not None
    assert made["spec"]["type"] == "LoadBalancer"
    assert own["spec"]["selector"] == made["spec"]["selector"]
    assert [(port["port"], port["protocol"]) for port in made["spec"]["ports"]] == [(53, "UDP")]
    environment.platform("destroy", "--yes").expect()
    assert environment.get("v1", "Service", "dns-udp") is not None
