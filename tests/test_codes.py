"""Every diagnostic code is raised by a small definition, with the exact line that it makes.

A code without a definition here fails :func:`test_every_code_has_a_definition`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from composeplat.codes import CODES
from composeplat.codes.causes import CauseCode
from composeplat.compose.load import NoDefinition
from composeplat.compose.model import MAX_HOST_BYTES
from composeplat.compose.yaml_reader import MAX_NODES
from tests.conftest import Project

WEB = "services: {web: {image: nginx}}"


@dataclass(frozen=True)
class Case:
    """A definition and the one line of its code that it makes."""

    line: str
    files: str | Mapping[str, str | bytes]
    options: Mapping[str, Any] = field(default_factory=dict)


def service(keys: str) -> str:
    return f"services: {{web: {{image: x, {keys}}}}}"


CASES = {
    "unreadable-file": Case(
        "compose.yaml:1:38: error: services.web.env_file names a file that does not exist: 'a.env' [unreadable-file]",
        service("env_file: a.env"),
    ),
    "multiple-compose-files": Case(
        "compose.yaml:1:1: warning: also found 'compose.yml', which is not read [multiple-compose-files]",
        {"compose.yaml": WEB, "compose.yml": WEB},
    ),
    "invalid-utf8": Case(
        "compose.yaml:1:4: error: a byte here is not UTF-8 text [invalid-utf8]", {"compose.yaml": b"a: \xff"}
    ),
    "invalid-character": Case(
        "compose.yaml:1:4: error: a control character (U+0007) is not allowed in the file [invalid-character]",
        "a: \x07",
    ),
    "invalid-yaml": Case(
        "compose.yaml:1:5: error: not YAML: mapping values are not allowed in this context [invalid-yaml]", "a: b: c"
    ),
    "too-deep": Case("compose.yaml:1:101: error: collections are nested deeper than 100 levels [too-deep]", "[" * 200),
    "too-large": Case(
        f"compose.yaml:{MAX_NODES}:3: error: the definition has more than {MAX_NODES} nodes [too-large]",
        "- a\n" * (MAX_NODES + 1),
    ),
    "too-many-aliases": Case(
        "compose.yaml:5:10: error: aliases unfold to far more than the file has (an alias bomb) [too-many-aliases]",
        "a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]\n"
        + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 20)}]\n" for n in range(1, 9)),
    ),
    "recursive-alias": Case(
        "compose.yaml:1:8: error: the anchor 'a' contains an alias to itself [recursive-alias]", "a: &a [*a]"
    ),
    "duplicate-key": Case(
        "compose.yaml:2:1: error: key 'services' is already set on line 1 [duplicate-key]", f"{WEB}\n{WEB}"
    ),
    "non-string-key": Case("compose.yaml:1:1: error: a key must be text, not '1' [non-string-key]", f"1: a\n{WEB}"),
    "invalid-merge-key": Case(
        "compose.yaml:1:28: error: the merge key '<<' needs a mapping or a list of mappings, not the text 'a'"
        " [invalid-merge-key]",
        service("<<: a"),
    ),
    "unknown-tag": Case("compose.yaml:1:4: warning: the tag '!a' has no meaning here [unknown-tag]", f"x: !a b\n{WEB}"),
    "invalid-interpolation": Case(
        "compose.yaml:1:38: error: '${A' can't be substituted: the name in '${…}' must be followed by '}' or one of"
        " :- - :+ + :? ? [invalid-interpolation]",
        service("command: '${A'"),
    ),
    "required-variable": Case(
        "compose.yaml:1:37: error: the variable 'A' must be set: say it [required-variable]",
        service("command: '${A:?say it}'"),
    ),
    "unset-variable": Case(
        "compose.yaml:1:37: warning: the variable 'A' is not set; an empty string is used [unset-variable]",
        service("command: $A"),
    ),
    "invalid-env-file": Case(
        ".env:1:1: error: the line is not NAME=value [invalid-env-file]", {"compose.yaml": WEB, ".env": "a b c"}
    ),
    "invalid-type": Case(
        "compose.yaml:1:35: error: services.web.ports must be a list, not a mapping [invalid-type]",
        service("ports: {}"),
    ),
    "invalid-value": Case(
        "compose.yaml:1:36: error: services.web.public must be true or false, not 'perhaps' [invalid-value]",
        service("public: perhaps"),
    ),
    "missing-key": Case(
        "compose.yaml:1:39: error: services.web.env_file[0] must have a 'path' [missing-key]",
        service("env_file: [{required: true}]"),
    ),
    "conflicting-keys": Case(
        "compose.yaml:1:61: error: services.web.healthcheck.http can't be combined with test [conflicting-keys]",
        service("healthcheck: {test: check, http: {path: /, port: 80}}"),
    ),
    "overridden-key": Case(
        "compose.yaml:1:35: warning: services.web.scale differs from deploy.replicas, which wins [overridden-key]",
        service("scale: 1, deploy: {replicas: 2}"),
    ),
    "no-image": Case(
        "compose.yaml:1:12: error: services.web has neither 'image' nor 'build' [no-image]", "services: {web: {}}"
    ),
    "no-services": Case("compose.yaml:1:11: error: the definition has no services [no-services]", "services: {}"),
    "unsupported-key": Case(
        "compose.yaml:1:28: warning: services.web.runtime is not supported and has no effect [unsupported-key]",
        service("runtime: a"),
    ),
    "no-effect": Case(
        "compose.yaml:1:36: warning: services.web.ports[0] names a host address, which has no effect in a cluster"
        " [no-effect]",
        service("ports: ['10.0.0.1:80:80']"),
    ),
    "redundant-key": Case(
        "compose.yaml:1:28: note: services.web.container_name has no effect here, and needs none: others reach it as"
        " 'web' [redundant-key]",
        service("container_name: web"),
    ),
    "ignored-key": Case(
        "compose.yaml:1:28: note: services.web.uts is ignored [ignored-key]",
        service("uts: host"),
    ),
    "unknown-key": Case(
        "compose.yaml:1:28: note: services.web.comand is not a key that Compose or this tool knows [unknown-key]",
        service("comand: a"),
    ),
    "unused-volume": Case(
        "compose.yaml:2:11: note: volumes.data is mounted by no service, and not created [unused-volume]",
        f"{WEB}\nvolumes: {{data: {{}}}}",
    ),
    "unused-config": Case(
        "compose.yaml:2:11: note: configs.a is used by no service, and not created [unused-config]",
        f"{WEB}\nconfigs: {{a: {{content: a}}}}",
        {"full": True},
    ),
    "unused-secret": Case(
        "compose.yaml:2:11: note: secrets.a is used by no service, and not created [unused-secret]",
        f"{WEB}\nsecrets: {{a: {{file: a}}}}",
        {"full": True},
    ),
    "unreadable-mount": Case(
        "compose.yaml:1:49: warning: services.web.configs[0] has mode 0400 and belongs to root, so that user 5 of the"
        " service can't read it [unreadable-mount]",
        service("user: '5', configs: [{source: a, mode: 0400}]") + "\nconfigs: {a: {content: a}}",
        {"full": True},
    ),
    "not-deployed": Case(
        "compose.yaml:1:48: note: services.web.volumes[0] is a host volume of a service that is built: it is for"
        " development, and not deployed [not-deployed]",
        service("build: ., volumes: ['.:/app']"),
    ),
    "derived-image": Case(
        "compose.yaml:1:37: note: services.web.volumes has host content too large for a Secret: it goes into an"
        " image made from the service's own [derived-image]",
        {"compose.yaml": service("volumes: ['./a:/a']"), "a": b"x" * (MAX_HOST_BYTES + 1)},
    ),
    "name-normalized": Case(
        "compose.yaml:1:12: warning: services.My_Web becomes 'my-web', which is its DNS name [name-normalized]",
        "services: {My_Web: {image: x}}",
    ),
    "invalid-name": Case(
        "compose.yaml:1:12: error: services.1web can't be converted to a Kubernetes name [invalid-name]",
        "services: {1web: {image: x}}",
    ),
    "name-conflict": Case(
        "compose.yaml:1:32: error: services.my_web and services.my-web would both be named 'my-web' [name-conflict]",
        "services: {my-web: {image: x}, my_web: {image: x}}",
    ),
    "undefined-service": Case(
        "compose.yaml:1:41: error: services.web.depends_on[0] names 'db', which is not a service of the definition"
        " [undefined-service]",
        service("depends_on: [db]"),
    ),
    "low-memory-limit": Case(
        "compose.yaml:1:39: warning: services.web.mem_limit is below 6m, with which Docker runs no container"
        " [low-memory-limit]",
        service("mem_limit: 512"),
    ),
    "text-as-test": Case(
        "compose.yaml:1:48: warning: services.web.healthcheck.test is a text, so that a shell runs a program named"
        " 'NONE' [text-as-test]",
        service("healthcheck: {test: NONE}"),
    ),
    "optional-service": Case(
        "compose.yaml:1:41: warning: services.web.depends_on.db names 'db', which is not a service of the definition:"
        " nothing waits for it [optional-service]",
        service("depends_on: {db: {condition: service_started, required: false}}"),
    ),
    "inactive-service": Case(
        "compose.yaml:1:41: error: services.web.depends_on[0] names 'db', whose profile is off: a, b"
        " [inactive-service]",
        service("depends_on: [db]}, db: {image: y, profiles: [a, b]"),
        {"full": True},
    ),
    "invalid-patch": Case(
        "compose.yaml:2:51: error: services.web.x-kubernetes.patch.StatefulSet patches an object that is not there"
        " [invalid-patch]",
        f"x-platform: {{full: true}}\n{service('x-kubernetes: {patch: {StatefulSet: {}}}')}",
    ),
    "exposed-never-public": Case(
        "compose.yaml:2:63: error: services.web.x-expose.ports[0] exposes a port on the list of ports of databases and"
        " debuggers, which are never public [exposed-never-public]",
        f"x-platform: {{full: true}}\n{service('x-expose: {type: NodePort, ports: [5432]}')}",
    ),
    "undefined-network": Case(
        "compose.yaml:2:39: error: services.web.networks[0] names 'front', which 'networks' does not declare"
        " [undefined-network]",
        f"x-platform: {{full: true}}\n{service('networks: [front]')}",
    ),
    "undefined-volume": Case(
        "compose.yaml:1:38: error: services.web.volumes[0] mounts a volume that 'volumes' does not declare: 'data:/d'"
        " [undefined-volume]",
        service("volumes: ['data:/d']"),
    ),
    "undefined-config": Case(
        "compose.yaml:1:38: error: services.web.configs[0] names a config that the top-level 'configs' does not"
        " declare: 'a' [undefined-config]",
        service("configs: [a]"),
        {"full": True},
    ),
    "undefined-secret": Case(
        "compose.yaml:1:38: error: services.web.secrets[0] names a secret that the top-level 'secrets' does not"
        " declare: 'a' [undefined-secret]",
        service("secrets: [a]"),
        {"full": True},
    ),
    "undefined-port": Case(
        "compose.yaml:2:13: error: endpoints[0] routes to port '80', which service 'web' does not have"
        " [undefined-port]",
        f"{WEB}\nendpoints: [{{path: /, service: web, port: 80}}]",
    ),
    "dependency-cycle": Case(
        "compose.yaml:1:41: error: services.web.depends_on[0] closes a cycle: web -> web [dependency-cycle]",
        service("depends_on: [web]"),
    ),
    "extends-cycle": Case(
        "compose.yaml:1:37: error: services.web.extends closes a cycle: web -> web [extends-cycle]",
        service("extends: web"),
        {"full": True},
    ),
    "undefined-model": Case(
        "compose.yaml:1:37: error: services.web.models[0] names a model that the top-level 'models' does not declare:"
        " 'llm' [undefined-model]",
        service("models: [llm]"),
        {"full": True},
    ),
    "provided-service": Case(
        "compose.yaml:1:12: note: services.web is given by the program 'x' of this machine, which a deploy runs"
        " [provided-service]",
        "services: {web: {provider: {type: x}}}",
        {"full": True},
    ),
    "pod-conflict": Case(
        "compose.yaml:1:42: error: services.web.network_mode closes a cycle: web -> web [pod-conflict]",
        service("network_mode: service:web"),
        {"full": True},
    ),
    "include-cycle": Case(
        "compose.yaml:2:11: error: include[0] includes a file that is already being included [include-cycle]",
        f"{WEB}\ninclude: [compose.yaml]",
    ),
    "not-a-job": Case(
        "compose.yaml:2:33: error: services.a.depends_on.b waits for 'b' to complete, but that service is"
        " always restarted [not-a-job]",
        "services:\n  a: {image: x, depends_on: {b: {condition: service_completed_successfully}}}\n"
        "  b: {image: x, restart: always}",
    ),
    "kompose-label": Case(
        "compose.yaml:1:58: warning: services.web.labels.kompose.volume.size has the label 'kompose.volume.size' of"
        " kompose, which has no effect here [kompose-label]",
        service("labels: {kompose.volume.size: 1Gi}"),
    ),
    "swarm-template": Case(
        "compose.yaml:1:45: warning: services.web.environment.A has a template that only Docker Swarm fills in,"
        " {{.Node.ID}}: the text stays as it is [swarm-template]",
        service("environment: {A: '{{.Node.ID}}'}"),
    ),
    "windows-path": Case(
        "compose.yaml:1:38: error: services.web.volumes[0] has a path of Windows: '.\\conf:/etc/x' [windows-path]",
        service("volumes: ['.\\conf:/etc/x']"),
    ),
    "inferred-job": Case(
        "compose.yaml:3:3: note: services.b becomes a Job: 'a' waits for it to complete, and it sets no 'restart'"
        " [inferred-job]",
        "services:\n  a: {image: x, depends_on: {b: {condition: service_completed_successfully}}}\n  b: {image: x}",
    ),
    "unsupported-update-policy": Case(
        "compose.yaml:1:62: error: services.web.labels.dev.platform.com/update must be 'rolling' or 'recreate' on a"
        " Deployment, not 'on-delete' [unsupported-update-policy]",
        service("labels: {dev.platform.com/update: on-delete}"),
    ),
    "request-above-limit": Case(
        "compose.yaml:1:45: error: services.web.mem_reservation is above the limit of the same resource"
        " [request-above-limit]",
        service("mem_reservation: 2g, mem_limit: 1g"),
    ),
    "non-numeric-user": Case(
        "compose.yaml:1:34: warning: services.web.user names a user that only the image knows, and has no effect; the"
        " container runs as the image's user [non-numeric-user]",
        service("user: www"),
    ),
    "needs-cluster-setting": Case(
        "compose.yaml:1:45: warning: services.web.sysctls.net.x starts only where the kubelet allows it:"
        " --allowed-unsafe-sysctls=net.x [needs-cluster-setting]",
        service("sysctls: {net.x: 1}"),
        {"full": True},
    ),
    "on-failure-job": Case(
        "compose.yaml:1:37: warning: services.web.restart makes the service a Job, which runs to completion and is"
        " not restarted after that [on-failure-job]",
        service("restart: on-failure"),
    ),
    "job-with-ports": Case(
        "compose.yaml:1:37: warning: services.web.restart makes the service a Job, which runs to completion and is"
        " not restarted after that, although it has ports [job-with-ports]",
        service("restart: 'no', ports: [80]"),
    ),
    "no-traffic-diversion": Case(
        "compose.yaml:1:52: warning: services.web.deploy.endpoint_mode is 'dnsrr', with which the traffic-diverting"
        " feature does not work [no-traffic-diversion]",
        service("deploy: {endpoint_mode: dnsrr}"),
    ),
    "duplicate-mount": Case(
        "compose.yaml:1:42: error: services.web.volumes[1] mounts at the same path as another volume of this service:"
        " '/a/.' [duplicate-mount]",
        service("volumes: [/a, {type: tmpfs, target: /a/.}]"),
    ),
    "forbidden-path": Case(
        "compose.yaml:1:38: error: services.web.volumes[0] mounts a system path of this machine: '/proc:/p'"
        " [forbidden-path]",
        service("volumes: ['/proc:/p']"),
    ),
    "outside-project": Case(
        "compose.yaml:1:38: error: services.web.volumes[0] mounts a host path that is outside the project: '../a:/a'"
        " [outside-project]",
        service("volumes: ['../a:/a']"),
    ),
    "host-data": Case(
        "compose.yaml:1:48: warning: services.web.volumes[0] mounts a folder that does not exist on this machine: what"
        " is written there is lost with the pod [host-data]",
        service("build: ., volumes: ['./uploads:/app/uploads']"),
    ),
    "not-in-image": Case(
        "compose.yaml:1:52: warning: services.web.volumes[0] is a host volume of a service that is built, outside the"
        " build context: the container does not have it [not-in-image]",
        service("build: ./app, volumes: ['./x.conf:/etc/x.conf:ro']"),
    ),
    "windows-line-ends": Case(
        "compose.yaml:1:38: warning: services.web.volumes[0] mounts a script with line ends of Windows, 'run.sh': no"
        " image has its program '/bin/sh\\r' [windows-line-ends]",
        {"compose.yaml": service("volumes: ['./run.sh:/run.sh']"), "run.sh": b"#!/bin/sh\r\n"},
    ),
    "removed-mount": Case(
        "compose.platform.yaml:1:28: note: services.web.volumes[0] removes a mount that Docker Compose has:"
        " '/proc:/p:ro' [removed-mount]",
        {
            "compose.yaml": service("volumes: ['/proc:/p:ro', {type: volume, target: /q}, /r]"),
            "compose.platform.yaml": "services: {web: {volumes: [!reset /p, !reset /s, /r]}}",
        },
    ),
    "missing-path": Case(
        "compose.yaml:1:38: error: services.web.volumes[0] mounts a host path that does not exist: './a:/a'"
        " [missing-path]",
        service("volumes: ['./a:/a']"),
    ),
    "sensitive-port": Case(
        "compose.yaml:1:36: warning: services.web.ports[0] is not made public: it is on the list of ports of"
        " databases and debuggers [sensitive-port]",
        service("ports: ['5432:5432']"),
    ),
    "no-network-isolation": Case(
        "compose.yaml:1:28: warning: services.web.networks keeps it apart from 'db' in Compose; here every service"
        " reaches every other [no-network-isolation]",
        "services: {web: {image: x, networks: [front]}, db: {image: x, networks: [back]}}",
    ),
    "loopback-port": Case(
        "compose.yaml:1:36: note: services.web.ports[0] is bound to loopback: it stays private and gets no URL"
        " [loopback-port]",
        service("ports: ['127.0.0.1:80:80']"),
    ),
    "non-http-port": Case(
        "compose.yaml:1:36: warning: services.web.ports[0] gets an HTTPS route, which can't carry SSH [non-http-port]",
        service("ports: ['22:22']"),
    ),
    "no-domain": Case(
        "compose.yaml:2:1: error: endpoints need a domain, and none is known [no-domain]",
        f"{service('ports: [80]')}\nendpoints: [{{path: /, service: web, port: 80}}]",
        {"domain": ""},
    ),
    "port-without-url": Case(
        "compose.yaml:1:36: warning: services.web.ports[0] is public, but gets no address, as no domain is known"
        " [port-without-url]",
        service("ports: ['80:80']"),
        {"domain": ""},
    ),
    "hostname-truncated": Case(
        "compose.yaml:1:36: warning: services.web.ports[0] has a host name too long for DNS; it is shortened, with a"
        " hash [hostname-truncated]",
        service("ports: ['80:80']"),
        {"namespace": "a" * 63},
    ),
}


@pytest.mark.parametrize("code", CASES)
def test_code(project: Project, code: str) -> None:
    """The definition makes the line, once."""
    case = CASES[code]

    reading = project(case.files).read(**case.options)

    assert [case.line] == [line for line in (*reading.messages, *reading.notes) if line.endswith(f"[{code}]")]


def test_no_definition(project: Project) -> None:
    """Without a definition there is no place to name: this one is an error by itself."""
    with pytest.raises(NoDefinition, match="no Compose file here or in a folder above"):
        project({}).read()


def test_every_code_has_a_definition() -> None:
    """The table has a row for each code, and none for a code that is gone; tests of commands have the others."""
    elsewhere = {
        "provider-refused",
        "provider-failed",
        "provided-variables",
        "ownership-conflict",
        "import-conflict",
        "missing-object",
        "volume-replacement",
        "deploy-failed",
        "job-retry",
        "no-sync-path",
        "unbuilt-image",
        "pod-security-violation",
        "unknown-user",
        "unshared-base",
        "unread-image",
        "image-volume",
        "unreachable-port",
        "unresolvable-host",
        "own-name-listener",
        "ending-command",
        "docker-only-host",
        "local-url",
        "local-host",
        "unexposed-port",
        "wrong-architecture",
        "no-storage-class",
        "no-ingress-class",
        "no-metrics-server",
        "no-load-balancer",
        "pod-security-level",
        "policy-violation",
        "policy-advice",
        "over-quota",
        "limit-range",
        "default-limit",
    }
    assert set(CODES) == {*CASES, *elsewhere, "no-compose-file"}


def test_rows() -> None:
    """Every code says what it means and what to do, in sentences."""
    for name, code in CODES.items():
        assert name == name.lower()
        assert code.meaning.endswith("."), name
        assert code.fix.endswith("."), name


def test_the_causes_are_documented() -> None:
    """The page about deploying has a row for each cause that a failure can have."""
    page = (Path(__file__).parents[1] / "docs" / "deploying.md").read_text(encoding="utf-8")
    table = page.partition("| Code | When | Place |")[2].partition("\n\n")[0]

    rows = {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")}

    assert rows == set(CauseCode)
