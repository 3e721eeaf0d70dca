"""A deploy of named services, where the file has lost something since the last one."""

from __future__ import annotations

import pytest

from tests.deploy.conftest import SLEEP, Environment

FILE = f"""\
services:
  web: {{image: 'busybox:1.37', command: "{SLEEP}", stop_grace_period: 0, environment: {{A: b}}, expose: [80]}}
  worker: {{image: 'busybox:1.37', command: "{SLEEP}", stop_grace_period: 0}}
"""


def test_what_a_service_has_lost(environment: Environment) -> None:
    """An object that the service needs no more is deleted with it."""
    environment.write(FILE)
    environment.platform("deploy").expect()
    environment.write(FILE.replace(", environment: {A: b}", ""))

    environment.platform("deploy", "web").expect()
    assert environment.get("v1", "Secret", "web-env") is None
    assert "nothing changed" in environment.platform("deploy").expect().stderr


@pytest.mark.endurance
def test_another_service_is_gone(environment: Environment) -> None:
    """A service that the file has no more stays until a deploy of everything."""
    environment.write(FILE)
    environment.platform("deploy").expect()
    environment.write(FILE.partition("  worker:")[0].replace("A: b", "A: c"))

    environment.platform("deploy", "web").expect()
    assert environment.get("apps/v1", "Deployment", "worker") is not None
    environment.platform("deploy").expect()
    assert environment.get("apps/v1", "Deployment", "worker") is None


def test_the_addresses_of_what_is_deployed(environment: Environment) -> None:
    """A deploy of one service prints its addresses, and none of services that are not deployed."""
    web = FILE.replace("expose: [80]", "ports: ['80:80']").replace("  worker: {", "  worker: {ports: ['80:80'], ")
    environment.write(web)
    deployed = environment.platform("deploy", "--domain", "localhost", "--no-wait", "web").expect()

    (address,) = deployed.stdout.splitlines()
    assert address.startswith(f"https://web-{environment.namespace}.localhost")
    assert environment.get("networking.k8s.io/v1", "Ingress", "worker") is None


APPS = f"""\
x-app: &app {{image: 'busybox:1.37', command: "{SLEEP}", stop_grace_period: 0}}
services:
  web: *app
  db: *app
  cache: *app
"""
NEEDS_BOTH = "  app-{}: {{<<: *app, depends_on: [db, cache]}}\n"
NEEDS_NONE = "  app-{}: *app\n"


def test_what_other_services_depended_on(environment: Environment) -> None:
    """Services that the deploy leaves alone keep their dependencies in the state, also those that the file has lost.

    Pulumi refused the state, or took such a dependency for one that is declared twice, if it was given the others.
    """
    environment.deploy(APPS + "".join(NEEDS_BOTH.format(number) for number in range(8))).expect()
    without_db = APPS.replace("web: *app", "web: {<<: *app, command: sleep 90000}").replace("  db: *app\n", "")
    environment.write(without_db + "".join(NEEDS_NONE.format(number) for number in range(8)))

    environment.platform("deploy", "web").expect()
    assert environment.get("apps/v1", "Deployment", "db") is not None
    environment.platform("deploy").expect()
    assert environment.get("apps/v1", "Deployment", "db") is None
    assert "no changes" in environment.platform("preview").expect().stderr
