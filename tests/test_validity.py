"""Definitions at the edge of what an API server takes: it takes what is rendered, and the rest has been refused."""

from __future__ import annotations

import pytest
import yaml

from composeplat.render.manifests import render_yaml
from tests.conftest import Project
from tests.kubernetes_schema import problems_of

LONG = "w" * 63

TAKEN = {
    "a long name with several public ports": f"""
        services: {{{LONG}: {{image: x, environment: {{A: b}}, ports: ["8080:80", "81:81"]}}}}
    """,
    "a long name that keeps data below a long path": f"""
        services: {{{"w" * 52}: {{image: x, volumes: [/{"d" * 200}, /{"D" * 200}]}}}}
    """,
    "a long name of a job": f"""
        services: {{{LONG}: {{image: x, restart: "no", volumes: [/scratch]}}}}
    """,
    "a long volume that is shared": f"""
        services: {{a: {{image: x, volumes: ["{LONG}:/d"]}}, b: {{image: x, volumes: ["{LONG}:/d"]}}}}
        volumes: {{{LONG}: }}
    """,
    "paths that differ by what a name can't hold": """
        services: {a: {image: x, volumes: [/A, /a, /a-b, /a/b, {type: tmpfs, target: /T}, {type: tmpfs, target: /t}]}}
    """,
    "names that look like those of other objects": """
        services: {a: {image: x, environment: {A: b}}, a-env: {image: x, environment: {A: b}}}
    """,
    "a port named as it would be without a name": """
        services: {a: {image: x, ports: [{target: 80, name: tcp-80}]}}
    """,
    "the least that can be asked for": """
        services: {a: {image: x, cpus: 0.0001, mem_limit: 1, scale: 0, stop_grace_period: 0}}
    """,
    "an annotation with capitals before the slash": """
        services: {a: {image: x, labels: {Team.Example/rule: x}}}
    """,
    "an empty command of a health check": """
        services: {a: {image: x, healthcheck: {test: [CMD, ""], retries: 0, interval: 1ms, timeout: 1ms}}}
    """,
}


@pytest.mark.parametrize("definition", TAKEN.values(), ids=TAKEN.keys())
def test_rendered_objects_are_valid(definition: str, project: Project) -> None:
    """Names are cut, distinguished and cleaned so that every object can stand."""
    reading = project(definition).read()

    assert reading.plan is not None, reading.messages
    assert problems_of(yaml.safe_load_all(render_yaml(reading.plan))) == []


REFUSED = {
    "two ports of one name, told apart by protocol": (
        "services: {a: {image: x, ports: [{target: 53, name: dns}, {target: 53, name: dns, protocol: udp}]}}",
        ["compose.yaml:1:59: error: services.a.ports[1] has the name of another port [name-conflict]"],
    ),
    "a port named as another one is without a name": (
        "services: {a: {image: x, ports: [{target: 80, name: tcp-81}, 81]}}",
        ["compose.yaml:1:34: error: services.a.ports[0] has the name of another port [name-conflict]"],
    ),
    "a port named as its published one is": (
        "services: {a: {image: x, ports: [{target: 80, published: 8080, name: tcp-8080}]}}",
        ["compose.yaml:1:34: error: services.a.ports[0] has the name of another port [name-conflict]"],
    ),
    "a node's label with capitals before the slash": (
        "services: {a: {image: x, x-node-selector: {A/b: c}}}",
        [
            (
                "compose.yaml:1:49: error: services.a.x-node-selector.A/b must be a node's label: a name and a value of"
                " letters, digits, '-', '_' and '.' [invalid-value]"
            )
        ],
    ),
    "a path with an escape that is none, and one that hides a slash": (
        """
        services: {a: {image: x, expose: [80]}}
        endpoints: [{path: /%zz, service: a, port: 80}, {path: /a%2fb, service: a, port: 80}]
        """,
        [
            (
                f"compose.yaml:3:{column}: error: endpoints[{index}].path must be a path of an address, without '//',"
                f" '/./', '/../', '%2F', '?' or spaces, not '{path}' [invalid-value]"
            )
            for index, (column, path) in enumerate([(28, "/%zz"), (64, "/a%2fb")])
        ],
    ),
}


@pytest.mark.parametrize(("definition", "messages"), REFUSED.values(), ids=REFUSED.keys())
def test_invalid_objects_are_refused(definition: str, messages: list[str], project: Project) -> None:
    """What can't be cut or cleaned is an error at its place."""
    reading = project(definition).read()

    assert messages == reading.messages


def test_names_of_ports_that_are_invalid_for_kubernetes_are_left_out(project: Project) -> None:
    """A name or protocol of the application that can't stand is warned of, and the port has its usual name."""
    reading = project("services: {a: {image: x, ports: [{target: 80, name: My Port, app_protocol: a b}]}}").read()

    place = "compose.yaml:1:34: warning: services.a.ports[0] has"
    assert reading.messages == [
        f"{place} a name that is invalid for Kubernetes, and is left out [no-effect]",
        f"{place} an app_protocol that is invalid for Kubernetes, and is left out [no-effect]",
    ]
    port = {"name": "tcp-80", "port": 80, "targetPort": 80, "protocol": "TCP"}
    assert [port] == reading.object("Service", "a")["spec"]["ports"]
