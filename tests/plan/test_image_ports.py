"""Which cluster services list the ports of an image, and the result of that."""

from __future__ import annotations

import pytest

from composeplat.plan.desired import BuiltImage
from composeplat.plan.services import add_image_ports
from tests.conftest import Project


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        pytest.param("{image: nginx}", "nginx", id="no ports"),
        pytest.param("{image: nginx, ports: ['8080']}", "", id="ports"),
        pytest.param("{image: nginx, expose: [8080]}", "", id="expose"),
        pytest.param("{build: .}", BuiltImage("web", "r.example.com/demo-web"), id="built"),
        pytest.param(
            "{build: ., image: r.example.com/other}", BuiltImage("web", "r.example.com/other"), id="built-named"
        ),
        pytest.param("{image: r.example.com/demo-api}", "", id="built-by-another"),
    ],
)
def test_whose(service: str, expected: BuiltImage | str, project: Project) -> None:
    """A service that names no ports lists its image's: that which is built, or which the file names."""
    text = f"services:\n  web: {service}\n  api: {{build: .}}\n"
    plan = project({"compose.yaml": text, "Dockerfile": "FROM x\n"}).read(registry="r.example.com").plan
    assert plan is not None

    (found,) = [desired.ports_of for desired in plan.objects if str(desired.key) == "service/web"]
    assert found == expected
    assert [str(desired.key) for desired in plan.objects if desired.ports_of and desired.kind != "Service"] == []


def test_they_are_listed() -> None:
    """The name continues leading to the pods themselves, with the ports under it."""
    assert add_image_ports({"clusterIP": "None", "selector": {}}, ((53, "udp"), (80, "tcp"))) == {
        "clusterIP": "None",
        "selector": {},
        "ports": [
            {"name": "udp-53", "port": 53, "targetPort": 53, "protocol": "UDP"},
            {"name": "tcp-80", "port": 80, "targetPort": 80, "protocol": "TCP"},
        ],
    }


def test_none_are_listed() -> None:
    """An image that exposes nothing leaves the cluster service as it is."""
    assert add_image_ports({"clusterIP": "None"}, ()) == {"clusterIP": "None"}
