"""Autoscaling in full mode: the autoscaler decides the number of pods, and deploys, sleep and wake keep it."""

from __future__ import annotations

import pytest

from tests.deploy.conftest import SLEEP, Environment, until


def project(autoscale: str, command: str = SLEEP, cpus: str = "0.05", more: str = "") -> str:
    return f"""
x-platform: {{full: true}}
services:
  web:
    image: busybox
    command: {command}
    stop_grace_period: 0
    deploy: {{resources: {{reservations: {{cpus: "{cpus}"}}}}}}
    {autoscale}
    {more}
"""


def replicas(environment: Environment) -> int:
    workload = environment.get("apps/v1", "Deployment", "web")
    assert workload
    return int(workload["spec"]["replicas"])


def running(environment: Environment) -> int:
    return len([pod for pod in environment.pods("web") if pod["status"]["phase"] == "Running"])


def test_deploys_and_sleep_keep_the_number(environment: Environment) -> None:
    """A service with three pods never has one when it gets an autoscaler, which then decides their number."""
    environment.deploy(project("scale: 3")).expect()
    assert replicas(environment) == 3

    environment.deploy(project("x-autoscale: {min: 4, max: 4, cpu: 50%}")).expect()
    assert replicas(environment) in (3, 4)
    until(lambda: running(environment) == 4)

    environment.deploy(project("x-autoscale: {min: 4, max: 4, cpu: 50%}", more="environment: {A: b}")).expect()
    assert replicas(environment) == 4

    environment.platform("sleep").expect()
    assert replicas(environment) == 0
    environment.deploy().expect()
    assert replicas(environment) == 4


@pytest.mark.endurance
def test_load_scales_out(environment: Environment) -> None:
    """Pods that use all of their CPU get company, which deploys and wake keep; then the file's own number counts."""
    busy = project("x-autoscale: {max: 3, cpu: 50%}", "sh -c 'trap exit TERM; while :; do :; done'", "0.02")
    environment.deploy(busy).expect()
    until(lambda: running(environment) == 3, seconds=120)

    environment.deploy(busy.replace("    \n", "    environment: {A: b}\n")).expect()
    assert replicas(environment) == 3
    environment.platform("sleep").expect()
    environment.platform("wake").expect()
    assert replicas(environment) == 3
    assert environment.platform("preview", "--json").expect().json["changes"] == []

    environment.deploy(project("scale: 1")).expect()
    assert replicas(environment) == 1
    assert environment.get("autoscaling/v2", "HorizontalPodAutoscaler", "web") is None
