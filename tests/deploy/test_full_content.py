"""The configs, secrets and volumes of full mode, by what programs in real pods see."""

from __future__ import annotations

import base64

import pytest

from composeplat.cluster.namespaces import make_namespace
from tests.deploy.conftest import SLEEP, Environment, Ran
from tests.deploy.test_build import pod_of, read, state_text

FULL = f"""\
x-platform: {{full: true}}
x-app: &app {{image: 'busybox:1.37', command: "{SLEEP}", stop_grace_period: 0}}
"""
FILES = f"""{FULL}
services:
  web:
    <<: *app
    user: "1000"
    configs: [site, {{source: binary, target: /etc/some.dat, mode: 0400}}]
    secrets: [{{source: password, gid: "2000", mode: 0440}}, {{source: token, target: api/token}}, theirs]
  built: {{build: ., command: "{SLEEP}", stop_grace_period: 0, secrets: [password]}}
  other: {{<<: *app, configs: [site], secrets: [{{source: token, mode: 0400}}]}}
configs:
  site: {{content: "hello ${{WHO}}\\n"}}
  binary: {{file: ./some.dat}}
secrets:
  password: {{file: ./password.txt, name: db-password}}
  token: {{environment: API_VALUE}}
  theirs: {{external: true, name: shop-theirs, x-key: key.pem}}
"""
SHELL = {"WHO": "you", "API_VALUE": "planted-in-variable"}
DOCKERFILE = "FROM busybox:1.37\nRUN --mount=type=secret,id=none true\nUSER 1000\n"


def sees(environment: Environment, service: str, script: str) -> str:
    return environment.exec(pod_of(environment, service), "sh", "-c", script).strip()


def add(environment: Environment, kind: str, name: str, **more: object) -> None:
    """Create an object that is not of the environment."""
    metadata = {"name": name, "namespace": environment.namespace}
    with environment.api() as api:
        make_namespace(api, environment.namespace)
        api.create({"apiVersion": "v1", "kind": kind, "metadata": metadata, **more})


def test_external_objects_are_required(environment: Environment) -> None:
    """A deploy is refused before anything changes, if an external object or its key is missing."""
    definition = f"{FULL}services: {{web: {{<<: *app, secrets: [a], configs: [b]}}, alone: {{<<: *app}}}}\n"
    definition += "secrets: {a: {external: true, name: shop-a}}\nconfigs: {b: {external: true}}\n"
    add(environment, "ConfigMap", "b", data={"other.txt": "b"})

    ran = environment.deploy(definition).expect(1)

    assert environment.names() == {"ConfigMap/b"}
    assert_lines(
        ran,
        "compose.yaml:4:14: error: secrets.a is external, and Secret 'shop-a' is not in namespace"
        f" '{environment.namespace}' [missing-object]",
        f"create it: kubectl --namespace {environment.namespace} create secret generic shop-a --from-file=a=FILE,"
        " or correct its 'name'",
        "compose.yaml:5:14: error: configs.b reads the key 'b', and ConfigMap 'b' has 'other.txt' [missing-object]",
        "name its key: x-key: other.txt",
    )
    environment.platform("deploy", "alone").expect()


def assert_lines(ran: Ran, *lines: str) -> None:
    missing = [line for line in lines if line not in ran.stderr]
    assert not missing, ran.stderr


def test_configs_and_secrets(environment: Environment) -> None:
    """Programs read them, also those that are not root; a change rolls its users alone; the state is encrypted."""
    add(environment, "Secret", "shop-theirs", data={"key.pem": base64.b64encode(b"their key").decode()})
    environment.write("planted-in-file\n", "password.txt")
    (environment.folder / "some.dat").write_bytes(b"\xff\0\n")
    environment.write(DOCKERFILE, "Dockerfile")
    environment.write(FILES)

    ran = environment.platform("deploy", **SHELL).expect()

    assert read(environment, "web", "/site") == "hello you\n"
    secrets = "cat /run/secrets/password /run/secrets/api/token /run/secrets/theirs"
    assert sees(environment, "web", secrets) == "planted-in-file\nplanted-in-variabletheir key"
    shape = "stat -Lc '%a %u:%g' /run/secrets/password /etc/some.dat /site"
    assert sees(environment, "web", shape).split("\n") == ["440 0:2000", "440 0:2000", "444 0:2000"]
    assert sees(environment, "web", "wc -c </etc/some.dat; touch /site 2>&1 || true").startswith("3\n")
    assert sees(environment, "built", "id -u; cat /run/secrets/password") == "1000\nplanted-in-file"
    assert sees(environment, "other", "stat -Lc %a /run/secrets/token; ls /run/secrets") == "400\ntoken"
    assert "planted" not in state_text(environment) + ran.stderr + ran.stdout

    before = {name: pod_of(environment, name) for name in ("web", "built", "other")}
    environment.write("planted-second\n", "password.txt")
    shown = environment.platform("preview", "--diff", **SHELL).expect()
    assert "secret password" in shown.stdout
    assert "planted" not in shown.stdout + shown.stderr
    environment.platform("deploy", **SHELL).expect()

    assert {name for name, pod in before.items() if pod != pod_of(environment, name)} == {"web", "built"}
    assert sees(environment, "web", "cat /run/secrets/password") == "planted-second"
    assert environment.names() >= {"Secret/db-password", "Secret/token", "ConfigMap/site", "ConfigMap/binary"}
    environment.platform("destroy", "--yes").expect()
    assert environment.names() == {"Secret/shop-theirs"}


@pytest.mark.endurance
def test_what_becomes_external_is_kept(environment: Environment) -> None:
    """A claim that was the environment's own outlives it; two volumes of one name are one."""
    definition = f"{FULL}services: {{web: {{<<: *app, volumes: ['d:/d', 'e:/e'], MORE}}}}\n"
    volumes = "volumes: {d: {name: shop-d}, e: {name: shop-d}}\n"
    environment.write("content", "s.txt")
    own = f"{definition.replace('MORE', 'secrets: [s]')}{volumes}secrets: {{s: {{file: ./s.txt}}}}\n"
    environment.deploy(own).expect()
    assert sees(environment, "web", "echo kept >/d/a; cat /e/a") == "kept"

    external = definition.replace("MORE", "secrets: [s], runtime: gvisor") + volumes.replace(
        "name", "external: true, name"
    )
    refused = environment.deploy(f"{external}secrets: {{s: {{external: true}}}}\n").expect(1)
    assert_lines(
        refused,
        "secrets.s is external, and Secret 's' is of this environment, whose deploy would delete it [missing-object]",
        "services.web.runtime needs RuntimeClass 'gvisor', which the cluster lacks [missing-object]",
    )
    environment.write(definition.replace("MORE", "") + volumes.replace("name", "external: true, name"))
    environment.platform("destroy", "--volumes", "--yes").expect()
    assert environment.names() == {"PersistentVolumeClaim/shop-d"}
    deployed = environment.platform("deploy").expect()

    assert "volume d is external now: it is of this environment no more" in deployed.stderr
    assert sees(environment, "web", "cat /d/a /e/a") == "kept\nkept"
    environment.platform("destroy", "--volumes", "--yes").expect()
    found = environment.get("v1", "PersistentVolumeClaim", "shop-d")
    assert found is not None
    assert not found["metadata"].get("labels")


@pytest.mark.endurance
def test_an_external_volume_stays(environment: Environment) -> None:
    """The claim of someone else is required, used, and neither changed nor deleted; a `name` is the claim's."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    definition = f"{FULL}services: {{web: {{<<: *app, volumes: ['theirs:/theirs', 'ours:/ours'], secrets: [gone]}}}}\n"
    definition += "secrets: {gone: {external: true, name: shop-gone}}\n"
    environment.write(
        f"{definition}volumes: {{theirs: {{external: true, name: shop.data}}, ours: {{name: shop-ours}}}}\n"
    )
    refused = environment.platform("deploy").expect(1)
    assert_lines(refused, "volumes.theirs is external, and PersistentVolumeClaim 'shop.data' is not in namespace")
    add(environment, "PersistentVolumeClaim", "shop.data", spec=claim)
    add(environment, "Secret", "shop-gone", data={"gone": ""})

    environment.platform("deploy").expect()

    assert sees(environment, "web", "echo kept >/theirs/a; echo kept >/ours/a; cat /theirs/a") == "kept"
    assert "PersistentVolumeClaim/shop-ours" in environment.names()
    with environment.api() as api:
        api.delete(f"/api/v1/namespaces/{environment.namespace}/secrets/shop-gone")
    failed = environment.platform("restart").expect(1)
    assert 'web: failed: can\'t be started: secret "shop-gone" not found' in failed.stderr
    environment.platform("destroy", "--volumes", "--yes").expect()
    found = environment.get("v1", "PersistentVolumeClaim", "shop.data")
    assert found is not None
    assert "labels" not in found["metadata"]
    assert environment.names() == {"PersistentVolumeClaim/shop.data"}
