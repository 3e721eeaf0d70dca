"""Names resolve before pods are ready, and traffic goes to ready pods only."""

from __future__ import annotations

from tests.deploy.conftest import STAY, Environment, until

#: Serves its own host name as soon as it runs.
SERVE = "mkdir /www; hostname > /www/index.html; httpd -p 7000 -h /www"
OFTEN = "interval: 1s, timeout: 5s, retries: 100"


def member(peers: str, more: str = "") -> str:
    """A member of a cluster: it is ready once it has met the others."""
    meet = f"for p in {peers}; do until wget -qO- http://$$p:7000/; do sleep 0.2; done; done; touch /met"
    return (
        f"{{image: 'busybox:1.37', stop_grace_period: 0, command: [sh, -c, '{SERVE}; {meet}; {STAY}'],"
        f" healthcheck: {{test: 'test -f /met', {OFTEN}}}{more}}}"
    )


#: Three replicas that know their own name alone: each waits until it has found all of them.
RING = "until [ `nslookup ring | grep -c Address` -ge 4 ]; do sleep 0.2; done; touch /met"
MEETING = f"""
services:
  web:
    image: busybox:1.37
    stop_grace_period: 0
    command: [sh, -c, '{SERVE}; {STAY}']
    expose: [7000]
    healthcheck: {{test: 'wget -qO- http://web:7000/', {OFTEN}}}
  one: {member("two three")}
  two: {member("one three", ", expose: [7000], deploy: {endpoint_mode: dnsrr}")}
  three: {member("one two", ", expose: [7000]")}
  ring:
    image: busybox:1.37
    stop_grace_period: 0
    command: [sh, -c, '{RING}; {STAY}']
    healthcheck: {{test: 'test -f /met', {OFTEN}}}
    scale: 3
"""
HALF = f"""
  half:
    image: busybox:1.37
    stop_grace_period: 0
    scale: 2
    command: [sh, -c, '{SERVE}; {STAY}']
    expose: [7000]
    healthcheck: {{test: 'test -f /ready', {OFTEN}}}
"""


def test_pods_find_themselves_and_each_other_before_they_are_ready(environment: Environment) -> None:
    """A health check by the service's own name passes, members that wait for each other's names meet.

    Names of pods that were not ready did not resolve, or led to nobody: none of these ever became ready.
    Traffic still goes to ready pods only.
    """
    environment.deploy(MEETING, "--timeout", "60").expect()
    environment.deploy(MEETING + HALF, "--no-wait").expect()
    first, second = until(
        lambda: (
            (pods := [p["metadata"]["name"] for p in environment.pods("half") if p["status"].get("podIP")])
            and len(pods) == 2
            and pods
        )
    )
    (web,) = environment.pods("web")
    until(lambda: "7000" in environment.exec(first, "netstat", "-tln"))
    environment.exec(second, "touch", "/ready")
    until(
        lambda: (
            [
                [row["targetRef"]["name"], row["conditions"]["ready"]]
                for found in environment.objects("discovery.k8s.io/v1", "EndpointSlice")
                if found["metadata"]["labels"]["kubernetes.io/service-name"] == "half"
                for row in found["endpoints"]
                if row["conditions"]["ready"]
            ]
            == [[second, True]]
        )
    )

    asked = "for n in 1 2 3 4 5 6 7 8; do wget -qO- http://half:7000/; done"
    answers = until(lambda: environment.exec(web["metadata"]["name"], "sh", "-c", f"{asked} || true").split())
    assert set(answers) == {second}
