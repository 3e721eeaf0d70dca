"""The networks of full mode, by connections between real pods: some are made, some are not."""

from __future__ import annotations

from tests.deploy.conftest import Environment, until
from tests.deploy.test_run import run

SERVER = "httpd -f -p 8000 -h /srv"
PROJECT = f"""
x-platform: {{full: true}}
x-app: &app
  image: busybox
  stop_grace_period: 0
  command: sh -c 'mkdir /srv; echo page > /srv/index.html; exec {SERVER}'
  expose: [8000]
services:
  web: {{<<: *app, networks: [front], container_name: shop-web, hostname: front-1, links: ["api:backend"]}}
  api:
    <<: *app
    networks:
      front: {{aliases: [service-api]}}
      back:
  db: {{<<: *app, networks: [back]}}
  alone: {{<<: *app, network_mode: none}}
networks:
  front:
  back: {{internal: true}}
"""
#: Its own wget is linked statically, and can't resolve names.
FETCH = """\
address=$(nslookup -type=a $1 | sed -n 's/^Address: //p')
printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 ${address:-$1} 8000 2>/dev/null | tail -n 1"""


def fetch(environment: Environment, service: str, name: str) -> bool:
    """Whether a service's pod gets the page of another."""
    (pod,) = environment.pods(service)
    host = name if name[0].isdigit() else f"{name}.{environment.namespace}.svc.cluster.local"
    return environment.exec(pod["metadata"]["name"], "sh", "-c", FETCH, "sh", host).strip() == "page"


def test_services_without_a_shared_network_do_not_connect(environment: Environment) -> None:
    """Pods connect within their networks, by each of their names, and to no one else; nor does anyone to them."""
    environment.deploy(PROJECT).expect()

    until(lambda: fetch(environment, "web", "api"))
    assert fetch(environment, "web", "service-api")
    assert fetch(environment, "web", "backend")
    assert fetch(environment, "api", "shop-web")
    assert fetch(environment, "api", "front-1")
    assert fetch(environment, "api", "db")
    assert fetch(environment, "db", "api")
    assert not fetch(environment, "web", "db")
    assert not fetch(environment, "db", "web")
    assert not fetch(environment, "web", "alone")
    assert not fetch(environment, "alone", "web")
    assert fetch(environment, "alone", "127.0.0.1")
    host = f"api.{environment.namespace}.svc.cluster.local"
    reached = {
        service: run(environment, "-T", "--rm", service, "sh", "-c", FETCH, "sh", host)[1]
        for service in ("web", "alone")
    }
    assert {service: b"page" in text for service, text in reached.items()} == {"web": True, "alone": False}


def test_networks_can_change(environment: Environment) -> None:
    """Services that get a network in common connect; without full mode nothing is kept apart, and no policy stays."""
    apart = PROJECT.replace("[front], container_name: shop-web, hostname: front-1", "[back]")

    environment.deploy(apart).expect()
    until(lambda: fetch(environment, "web", "db"))
    environment.deploy(apart.replace("full: true", "full: false")).expect()

    assert environment.objects("networking.k8s.io/v1", "NetworkPolicy") == []
    until(lambda: fetch(environment, "alone", "web"))
