"""What goes wrong is reported with its cause, at the place in the file, within seconds of the cluster knowing it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import pytest

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.kinds import kind_path
from composeplat.cluster.snapshot import parse_time
from composeplat.local.base_images import fill_image
from composeplat.local.images import File, Image, push
from tests.deploy.conftest import PORTS, SLEEP, Environment, until

REGISTRY = f"localhost:{PORTS['registry']}"
POLICIES = "admissionregistration.k8s.io/v1"
HEAD = f"x-app: &app {{image: 'busybox:1.37', command: \"{SLEEP}\", stop_grace_period: 0}}\nservices:\n"


@pytest.mark.parametrize(
    ("service", "place", "message", "more"),
    [
        pytest.param(
            f"{{<<: *app, image: '{REGISTRY}/nothing:1'}}", r"3:\d+",
            f"image '{REGISTRY}/nothing:1' can't be pulled: there is no such image in its registry",
            "hint: correct the name or the tag, or push the image", id="no-such-image",
        ),
        pytest.param(
            "{<<: *app, image: 'localhost:28599/nothing:1'}", r"3:\d+",
            "image 'localhost:28599/nothing:1' can't be pulled: its registry can't be reached from the cluster",
            "hint: check that the registry runs, and its name", id="no-registry",
            marks=pytest.mark.endurance,
        ),
        pytest.param(
            "{<<: *app, command: /no/such/program}", r"3:\d+",
            "can't be started: .*/no/such/program", "", id="no-such-program",
        ),
        pytest.param(
            "{<<: *app, x-node-selector: {disk: fast}}", r"3:\d+",
            "no node can run it: 0/1 nodes are available", "hint: label a node accordingly, or change the selector",
            id="node-selector",
            marks=pytest.mark.endurance,
        ),
        pytest.param(
            "{<<: *app, resources: {requests: {memory: 1000Gi}}}", r"3:\d+",
            "no node can run it: .*Insufficient memory", "hint: request less, or add capacity to the cluster",
            id="too-much-memory",
            marks=pytest.mark.endurance,
        ),
        pytest.param(
            "{<<: *app, healthcheck: {http: {path: /, port: 81}, interval: 1s, timeout: 1s, retries: 2}}", r"3:\d+",
            "its health check failed [0-9]+ times: .*connection refused", "does the program listen there?",
            id="unhealthy",
        ),
        pytest.param(
            "{<<: *app, restart: 'no', command: \"sh -c 'echo bad; exit 9'\"}", r"3:\d+",
            "failed with exit status 9", "    bad\n", id="failed-job",
        ),
    ],
)  # fmt: skip
def test_causes(environment: Environment, service: str, place: str, message: str, more: str) -> None:
    """A service that can't come up ends the deploy with its cause; what was there before still runs."""
    environment.deploy(f"{HEAD}  app: *app\n").expect()
    before = environment.started_at("app")
    ran = environment.deploy(f"{HEAD}  app: {service}\n").expect(1)

    assert re.search(rf"^compose\.yaml:{place}: error: services\.app: {message}", ran.stderr, re.MULTILINE), ran.stderr
    assert more in ran.stderr
    assert ran.seconds < 45
    # A single look at the status shows the same.
    (row,) = environment.platform("status", "--json").expect().json["services"]
    assert re.match(message, row["problem"]), row
    if "restart" not in service:
        assert before in [p["status"]["containerStatuses"][0]["state"].get("running", {}).get("startedAt")
                          for p in environment.pods("app") if "containerStatuses" in p["status"]]  # fmt: skip
    environment.deploy(f"{HEAD}  app: *app\n").expect()


@pytest.mark.endurance
def test_an_image_that_is_pushed_after_the_failure(environment: Environment) -> None:
    """The next deploy asks for the image again, though nothing of the file has changed and the node still waits."""
    late = f"{environment.namespace}/late:1"
    service = f"<<: *app, image: '{REGISTRY}/{late}'"
    text = f"volumes: {{data: }}\n{HEAD}  app: {{{service}}}\n  kept: {{{service}, volumes: ['data:/data']}}\n"
    environment.deploy(text).expect(1)
    until(lambda: [waits_to_pull(pod) for pod in environment.pods()] == [True, True], seconds=40)

    push_busybox(environment, late)
    deployed = environment.platform("deploy").expect()
    assert "app: its image could not be pulled before, and is asked for again" in deployed.stderr


def push_busybox(environment: Environment, name: str) -> None:
    busybox = fill_image(File(), environment.variables).files["bin/busybox"]
    links = {f"bin/{link}": File(link="busybox") for link in ("sh", "sleep")}
    push(Image(files={"bin/busybox": busybox, **links}), name, ("localhost", PORTS["registry"]))


def waits_to_pull(pod: dict[str, Any]) -> bool:
    kinds = ("initContainerStatuses", "containerStatuses")
    states = [status["state"] for kind in kinds for status in pod["status"].get(kind, [])]
    return any(state.get("waiting", {}).get("reason") == "ImagePullBackOff" for state in states)


@pytest.mark.parametrize(
    "before",
    [pytest.param("", id="at-once"), pytest.param("sleep 0.8; ", id="in-a-moment", marks=pytest.mark.endurance)],
)
def test_a_crash_loop(environment: Environment, before: str) -> None:
    """A service that crashes soon ends the deploy with its last message, though it was ready as long as it ran."""
    ran = environment.deploy(
        f"{HEAD}  app: {{<<: *app, command: \"sh -c '{before}echo no database; exit 4'\"}}\n"
    ).expect(1)

    expected = r"^compose\.yaml:3:\d+: error: services\.app: crashes with exit status 4 \([2-9] times\)"
    assert re.search(expected, ran.stderr, re.MULTILINE), ran.stderr
    assert "    no database\n" in ran.stderr
    assert ran.seconds < 45
    environment.deploy(f"{HEAD}  app: *app\n").expect()


def test_a_program_that_ends_until_its_database_answers(environment: Environment) -> None:
    """A service that crashes while another is not ready yet is restarted, as its author relied on; it fails nothing."""
    environment.deploy(
        f"{HEAD}  app: {{<<: *app, command: \"sh -c 'nc db 5432 </dev/null || exit 1; exec sleep 1000'\"}}\n"
        "  db:\n    <<: *app\n    ports: ['5432']\n"
        "    command: sh -c 'sleep 4; exec nc -ll -p 5432 -e cat'\n"
        "    healthcheck: {test: nc localhost 5432 </dev/null, interval: 1s, retries: 20}\n"
    ).expect()

    (pod,) = environment.pods("app")
    assert pod["status"]["containerStatuses"][0]["restartCount"] >= 1


def test_a_script_with_line_ends_of_windows(environment: Environment) -> None:
    """It is warned of before the deploy, and the failure names the fix; with line ends of Linux it runs."""
    text = f"{HEAD}  app: {{<<: *app, entrypoint: /run.sh, volumes: ['./run.sh:/run.sh']}}\n"
    script = environment.folder / "run.sh"
    script.write_bytes(b'#!/bin/sh\r\nexec "$@"\r\n')
    script.chmod(0o755)

    failed = environment.deploy(text).expect(1)
    assert "mounts a script with line ends of Windows, 'run.sh': no image has its program '/bin/sh\\r'" in failed.stderr
    assert "hint: /run.sh is there, but not the program in its first line" in failed.stderr

    script.write_bytes(b'#!/bin/sh\nexec "$@"\n')
    assert "windows-line-ends" not in environment.deploy(text).expect().stderr


def allow_pods(environment: Environment, count: int) -> None:
    """Set the quota of the namespace, which may not be there yet."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": str(count)}}}
    with environment.api() as api:
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": environment.namespace}})
        api.apply({**quota, "metadata": {"name": "small", "namespace": environment.namespace}})


def test_quota(environment: Environment) -> None:
    """A quota that forbids the pods is named, with what is asked and used."""
    allow_pods(environment, 0)
    ran = environment.deploy(f"{HEAD}  app: *app\n").expect(1)

    assert "services.app: exceeds the quota 'small': requests pods=1, pods=0 of pods=0 used" in ran.stderr
    assert ran.seconds < 20


@pytest.mark.endurance
def test_a_quota_that_was_raised(environment: Environment) -> None:
    """The unchanged file is deployed, although the controller would try again only after a long pause."""
    text = f"{HEAD}  app: *app\n"

    def refused_for_s() -> float:
        events = environment.objects("v1", "Event")
        refused = [event for event in events if event["reason"] == "FailedCreate"]
        first = min(parse_time(event["firstTimestamp"]) for event in refused)
        return (max(parse_time(event["lastTimestamp"]) for event in refused) - first).total_seconds()

    allow_pods(environment, 0)
    environment.deploy(text).expect(1)
    # Its pauses are twice as long each time: the next one is of 20 s.
    until(lambda: refused_for_s() > 18, seconds=60)
    allow_pods(environment, 2)

    environment.deploy(text).expect()


@pytest.mark.endurance
def test_a_quota_with_room_for_one_update_at_a_time(environment: Environment) -> None:
    """Of two services that are updated, one waits until the other has freed the room; with room for none, both fail."""
    allow_pods(environment, 3)

    def definition(value: int, more: str = "") -> str:
        changed = f"{{<<: *app, environment: {{A: '{value}'}}}}"
        return f"{HEAD}  one: {changed}\n  two: {changed}\n{more}"

    environment.deploy(definition(1)).expect()
    environment.deploy(definition(2)).expect()

    environment.deploy(definition(2, "  three: *app\n")).expect()
    ran = environment.deploy(definition(3, "  three: *app\n")).expect(1)
    assert "services.one: exceeds the quota 'small': requests pods=1, pods=3 of pods=3 used" in ran.stderr
    assert "services.two: exceeds the quota" in ran.stderr
    assert ran.seconds < 30


def test_a_limit_range_and_a_pod_security_level(environment: Environment) -> None:
    """Pods that the namespace refuses fail their service at the key that is responsible, with what to change."""
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    bounds = {"type": "Container", "max": {"memory": "128Mi"}}
    namespace = {"apiVersion": "v1", "kind": "Namespace"}
    name = {"name": environment.namespace}
    with environment.api() as api:
        api.apply({**namespace, "metadata": name})
        metadata = {"name": "small", "namespace": environment.namespace}
        api.apply({"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": [bounds]}, "metadata": metadata})
    text = f"{HEAD}  app:\n    <<: *app\n    mem_limit: 1g\n"
    place = f"{text[: text.index('1g')].count(chr(10)) + 1}:16"
    ran = environment.deploy(text).expect(1)
    assert f"compose.yaml:{place}: error: services.app: its pods are refused" in ran.stderr
    assert "hint: keep the memory within the namespace's LimitRange\n" in ran.stderr

    with environment.api() as api:
        api.apply({**namespace, "metadata": {**name, "labels": level}})
    ran = environment.deploy(text.replace("1g", "64m")).expect(1)
    assert "hint: deploy with --pod-security restricted\n" in ran.stderr


def test_no_storage(environment: Environment) -> None:
    """A volume of a storage class that is not there is reported as that, not as a pod that waits."""
    text = f"{HEAD}  app: {{<<: *app, volumes: ['data:/data']}}\nvolumes: {{data: {{driver_opts: {{class: nope}}}}}}\n"
    ran = environment.deploy(text).expect(1)

    assert "services.app: volume 'data' is not provisioned" in ran.stderr
    assert '"nope" not found' in ran.stderr


def test_wrong_port(environment: Environment) -> None:
    """An endpoint for a port without a listener is reported."""
    text = HEAD + "  app: {<<: *app, ports: ['8123']}\nendpoints: [{path: /, service: app, port: 8123}]\n"
    ran = environment.deploy(text).expect(1)

    assert "services.app: nothing listens on port 8123, where endpoint 'env' leads" in ran.stderr
    assert "compose.yaml:3:" in ran.stderr


def test_one_of_two_ports(environment: Environment) -> None:
    """A port that nothing listens on is a note if another port of the service answers."""
    routes = "{path: /, service: app, port: 8080}, {path: /more, service: app, port: 8123}"
    text = HEAD + f"  app: {{<<: *app, command: httpd -f -p 8080, ports: ['8080', '8123']}}\nendpoints: [{routes}]\n"
    ran = environment.deploy(text).expect(0)

    assert "app: nothing listens on port 8123, where endpoint 'env' leads" in ran.stderr


def is_refused(api: Api) -> bool:
    """Whether a policy refuses a ConfigMap named ``bad``."""
    trial = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bad", "namespace": "default"}}
    try:
        api.create(trial, dry_run=True)
    except ApiError as error:
        return "the name bad is bad" in str(error)
    return False


@contextlib.contextmanager
def refusing(environment: Environment, resource: str, version: str, group: str = "") -> Iterator[None]:
    """Let an admission policy refuse to create objects of a kind that are named ``bad``."""
    name = f"no-{environment.namespace}"
    policies = kind_path(POLICIES, "ValidatingAdmissionPolicy")
    kinds = ((group, version, resource), ("", "v1", "configmaps"))
    rules = [
        {"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE"], "resources": [resource]}
        for group, version, resource in kinds
    ]
    policy = {
        "apiVersion": POLICIES, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": "!object.metadata.name.endsWith('bad')", "message": "the name bad is bad"}],
        },
    }  # fmt: skip
    # The namespace of the environment may not be there yet.
    among = {"operator": "In", "values": [environment.namespace, "default"]}
    selector = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", **among}]}
    binding = {
        "apiVersion": POLICIES, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
        "spec": {
            "policyName": name, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": selector},
        },
    }  # fmt: skip
    with environment.api() as api:
        api.apply(policy)
        api.apply(binding)
        try:
            # The API server takes a new policy up after a moment.
            until(lambda: is_refused(api))
            yield
        finally:
            api.delete(f"{policies}/{name}")
            api.delete(f"{policies.removesuffix('ies')}ybindings/{name}")
            until(lambda: not is_refused(api))


def test_refused_by_a_policy(environment: Environment) -> None:
    """What an admission policy refuses is reported in its own words; the other services are deployed, and listed."""
    with refusing(environment, "deployments", "v1", "apps"):
        ran = environment.deploy(f"{HEAD}  bad: *app\n  good: *app\n", "--json").expect(1)

    assert "services.bad: Deployment 'bad' could not be created" in ran.stderr
    assert "the name bad is bad" in ran.stderr
    assert environment.pods("good") != []
    assert [change["name"] for change in ran.json["changes"] if change["kind"] == "Deployment"] == ["good"]


@pytest.mark.endurance
def test_a_refused_object_of_several_services(environment: Environment) -> None:
    """Each service that needs a refused object has failed at once, also in pods from before; the others run."""
    full = f"x-platform: {{full: true}}\n{HEAD}"
    old = f"{full}  web: *app\n  good: *app\n"
    environment.deploy(old).expect()
    new = (
        f"{full}  web: {{<<: *app, configs: [bad]}}\n  api: {{<<: *app, configs: [bad]}}\n"
        "  last: {<<: *app, depends_on: [api]}\n  good: {<<: *app, environment: {A: b}}\n"
        "configs: {bad: {content: c}}\n"
    )
    with refusing(environment, "configmaps", "v1"):
        ran = environment.deploy(new).expect(1)

    found = sorted(line.partition(": error: ")[2] for line in ran.stderr.splitlines() if ": error: " in line)
    assert [line.partition(": ")[0] for line in found] == ["services.api", "services.last", "services.web"]
    for line in (found[0], found[2]):
        assert "could not be created: " in line
        assert "the name bad is bad" in line
    assert "waits for api, which failed" in found[1]
    assert ran.seconds < 60
    environment.deploy(new).expect()


def test_no_cluster(environment: Environment) -> None:
    """Without a kubeconfig, and with a cluster that does not answer, the fix is named; exit status 4."""
    environment.write(f"{HEAD}  app: *app\n")
    none = environment.platform("deploy", KUBECONFIG="/nowhere")
    config = environment.folder / "config"
    config.write_text(
        "{current-context: a, contexts: [{name: a, context: {cluster: a}}],"
        " clusters: [{name: a, cluster: {server: 'https://127.0.0.1:9'}}]}"
    )
    silent = environment.platform("deploy", KUBECONFIG=str(config))

    none.expect(4)
    assert "error: no cluster is configured: '/nowhere' names none" in none.stderr
    assert "hint: give --local for a cluster on this machine" in none.stderr
    silent.expect(4)
    assert "error: the API server at https://127.0.0.1:9 can't be reached: connection refused" in silent.stderr
