"""Arguments that are outputs: each object has their values, and only some keys ask for a plain value."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from composeplat.components.late_texts import LateTexts, as_number, as_text
from composeplat.components.plain_arguments import check_late
from composeplat.components.stack import ComposeStack
from composeplat.compose.options import SETTINGS
from composeplat.plan.fingerprint import HASH_ANNOTATION
from tests.components.test_stack import SECRET, Registered, run
from tests.conftest import Folder, Project

TEXT = """\
services:
  web:
    image: ${IMAGE:-nginx:1}
    ports: ["${PORT:-8080}:80"]
    scale: ${PODS:-2}
    command: [serve, "--db", "postgres://${DB}/shop"]
    environment: {DB: "${DB}", GREETING: hello}
    annotations: {zone: "${ZONE:-a}"}
"""


@pytest.fixture
def folder(project: Project, monkeypatch: pytest.MonkeyPatch) -> Folder:
    made = project({"compose.yaml": TEXT})
    for variable in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(made.path))
    return made


def registered(folder: Folder, *, preview: bool = False, **more: Callable[[], Any]) -> Registered:
    """The resources that a stack registers; each argument is made when the program runs, as an output has to be."""
    usual: dict[str, Any] = {"file": folder.path / "compose.yaml", "namespace": "team", "endpoint_domain": "a.example"}

    def program() -> None:
        ComposeStack("shop", **{**usual, "variables": {}, **{name: make() for name, make in more.items()}})

    return run(program, preview=preview)


def output(value: Any) -> pulumi.Output[Any]:
    return pulumi.Output.from_input(value)


def unknown() -> pulumi.Output[Any]:
    """An output of a resource that a preview would create."""

    def done(value: object) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_event_loop().create_future()
        future.set_result(value)
        return future

    return pulumi.Output(set(), done(None), done(value=False))


def variables(**values: Any) -> Callable[[], dict[str, Any]]:
    """The argument with an output for each value."""
    return lambda: {name: output(value) for name, value in values.items()}


def secret_data(found: Registered) -> dict[str, str]:
    data = found.inputs("Secret", "environment/web")["data"]
    if isinstance(data, dict) and "value" in data:
        data = data["value"]
    return {name: base64.b64decode(text).decode() for name, text in data.items()}


def container(found: Registered) -> dict[str, Any]:
    (only,) = found.inputs("Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(only)


def pod_hash(found: Registered) -> str:
    return str(found.inputs("Deployment")["spec"]["template"]["metadata"]["annotations"][HASH_ANNOTATION])


def test_the_same_objects(folder: Folder) -> None:
    """With outputs, the objects are those that plain values give."""
    values = {"DB": "db.example:5432", "IMAGE": "nginx:2", "ZONE": "b"}
    late, plain = registered(folder, variables=variables(**values)), registered(folder, variables=lambda: values)

    assert late.names == plain.names
    assert container(late) == container(plain)
    assert secret_data(late) == secret_data(plain) == {"DB": "db.example:5432", "GREETING": "hello"}
    assert late.inputs("v1:Service") == plain.inputs("v1:Service")
    template = late.inputs("Deployment")["spec"]["template"]
    assert template["metadata"]["annotations"]["zone"] == "b"
    assert "\ue000" not in str(late.everything)


def test_numbers(folder: Folder) -> None:
    """Pulumi's numbers are floating point; a port's number is in its name too."""
    found = registered(folder, variables=variables(PORT=9000.0, PODS=3.0, DB="x"))

    assert found.inputs("Deployment")["spec"]["replicas"] == 3
    ports = found.inputs("v1:Service")["spec"]["ports"]
    assert [(port["name"], port["port"], port["targetPort"]) for port in ports] == [
        ("tcp-80", 80, 80), ("tcp-9000", 9000, 80),
    ]  # fmt: skip


def test_a_number_that_is_none() -> None:
    """The message leaves out the value, which may be confidential."""
    with pytest.raises(pulumi.RunError, match="the value of PODS must be a whole number") as caught:
        as_number("many", "PODS")

    assert "many" not in str(caught.value)
    assert as_number(3.0, "PODS") == 3


def test_a_change_replaces_pods(folder: Folder) -> None:
    """The hash of a service's values is of those of outputs, and the same in each run."""
    first, again, other = (registered(folder, variables=variables(DB=text)) for text in ("one", "one", "two"))

    assert pod_hash(first) == pod_hash(again)
    assert pod_hash(first) != pod_hash(other)


def test_nothing_is_expanded(folder: Folder) -> None:
    """Kubernetes expands $(X) in arguments: a value can't ask for a variable of the container."""
    found = registered(folder, variables=variables(DB="$(GREETING)"))

    assert container(found)["args"] == ["serve", "--db", "postgres://$$(GREETING)/shop"]
    assert secret_data(found)["DB"] == "$(GREETING)"


def test_secretness(folder: Folder) -> None:
    """A secret stays one wherever it goes, whatever its variable is called."""
    found = registered(folder, variables=lambda: {"DB": pulumi.Output.secret("hidden"), "ZONE": output("b")})

    args = container(found)["args"][2]
    assert SECRET.items() <= args.items()
    assert args["value"] == "postgres://hidden/shop"
    template = found.inputs("Deployment")["spec"]["template"]
    assert template["metadata"]["annotations"]["zone"] == "b"
    assert isinstance(template["metadata"]["annotations"][HASH_ANNOTATION], str)


def test_unknown_values(folder: Folder, caplog: pytest.LogCaptureFixture) -> None:
    """A preview shows unknown values as unknown, all else as it will be, and says which arguments it waits for."""
    caplog.set_level("INFO")
    found = registered(folder, preview=True, variables=lambda: {"DB": unknown(), "PODS": unknown()})

    args = container(found)["args"]
    assert args[:2] == ["serve", "--db"]
    assert args[2] == pulumi.runtime.rpc.UNKNOWN
    assert found.inputs("Deployment")["spec"]["replicas"] == pulumi.runtime.rpc.UNKNOWN
    assert found.names == registered(folder, variables=variables(DB="x")).names
    assert "DB, PODS are not known before the update" in caplog.text


def test_namespace_and_domain(folder: Folder) -> None:
    found = registered(folder, namespace=lambda: output("team-7"), endpoint_domain=lambda: output("apps.example"))

    assert {manifest["metadata"]["namespace"] for (kind, _), manifest in found.everything.items()
            if kind.startswith("kubernetes:")} == {"team-7"}  # fmt: skip
    (rule,) = found.inputs("Ingress")["spec"]["rules"]
    assert rule["host"] == "web-team-7.apps.example"
    assert found.hooks == []


@pytest.mark.parametrize(
    ("argument", "value", "problem"),
    [
        ("namespace", None, "is empty, and must be a name of at most 63 lowercase letters"),
        ("namespace", "My Team", "must be a name of at most 63 lowercase letters"),
        ("endpoint_domain", "", "is empty, and must be a DNS name such as apps.example.com"),
        ("endpoint_domain", "https://a.example", "must be a DNS name such as apps.example.com"),
    ],
)
def test_a_setting_that_is_wrong(argument: str, value: object, problem: str) -> None:
    """A setting that is an output is checked like a plain one: without a namespace, objects would be in the default."""
    (setting,) = [row for row in SETTINGS.values() if row.argument == argument]
    with pytest.raises(pulumi.RunError) as raised:
        check_late(setting, as_text(value))

    assert str(raised.value).startswith(f"the value of {argument} {problem}")


def test_a_setting_that_nothing_has(folder: Folder) -> None:
    """A file without public ports needs no domain, so an output may have none."""
    folder.write({"compose.yaml": "services: {web: {image: nginx}}"})

    assert registered(folder, endpoint_domain=lambda: output(None)).inputs("Deployment")


def test_the_form_of_a_setting(folder: Folder) -> None:
    """The case of a domain and its last dot change nothing, as for a plain one."""
    found = registered(folder, endpoint_domain=lambda: output("Apps.Example."))

    assert found.inputs("Ingress")["spec"]["rules"][0]["host"] == "web-team.apps.example"


def test_waiting_needs_a_plain_namespace(folder: Folder) -> None:
    with pytest.raises(pulumi.RunError, match="'waits=True' needs a 'namespace' that is a plain value"):
        registered(folder, namespace=lambda: output("team"), waits=lambda: True)


def test_images(folder: Folder) -> None:
    """An image that the program builds takes the place of that of the file, and of its build."""
    folder.write({"compose.yaml": "services: {web: {build: .}, db: {image: postgres}}", "Dockerfile": "FROM x"})
    found = registered(folder, images=lambda: {"web": output("r.example/web@sha256:0123")})

    assert found.inputs("Deployment", "web")["spec"]["template"]["spec"]["containers"][0]["image"] == (
        "r.example/web@sha256:0123"
    )
    assert not found.of_package("docker-build")


def test_an_image_of_no_service(folder: Folder) -> None:
    with pytest.raises(pulumi.RunError, match="'images' names a service that the definition does not have: 'wbe'"):
        registered(folder, images=lambda: {"wbe": "x"})


def test_registry(folder: Folder) -> None:
    folder.write({"compose.yaml": "services: {web: {build: .}}", "Dockerfile": "FROM x"})
    logins = [{"address": "r.example", "username": "me", "password": "p"}]
    found = registered(
        folder,
        registry=lambda: output("r.example/team"),
        registries=lambda: [{key: output(text) if key != "address" else text for key, text in logins[0].items()}],
    )

    image = found.inputs("Image")
    assert image["tags"] == ["r.example/team/shop-web"]
    assert image["registries"][0]["username"] == "me"
    assert image["registries"][0]["password"]["value"] == "p"


def test_pull_secret(folder: Folder) -> None:
    """The login of a pull secret is JSON in Base64, with the password in it twice."""
    folder.write({"compose.yaml": "services: {web: {image: r.example/app}}"})
    login = {"address": "r.example", "username": "me"}
    found = registered(
        folder, pull_secret=lambda: True, registries=lambda: [{**login, "password": output('with "quotes"')}]
    )

    data = found.inputs("Secret", "pull/web")["data"]
    data = data.get("value", data)
    entry = json.loads(base64.b64decode(data[".dockerconfigjson"]))["auths"]["r.example"]
    assert (entry["username"], entry["password"]) == ("me", 'with "quotes"')
    assert base64.b64decode(entry["auth"]).decode() == 'me:with "quotes"'


def test_the_address_of_a_login(folder: Folder) -> None:
    login = {"address": "r.example", "username": "me", "password": "p"}
    with pytest.raises(pulumi.RunError, match="the 'address' of an entry of 'registries' must be a plain value"):
        registered(folder, registries=lambda: [{key: output(text) for key, text in login.items()}])


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("services:\n  web:\n    image: x\n    stop_grace_period: ${V}", "compose.yaml:4:24"),
        ("services:\n  web:\n    image: x\n    mem_limit: ${V}", "compose.yaml:4:16"),
        ("services:\n  web:\n    image: x\n    restart: ${V}", "compose.yaml:4:14"),
        ("services:\n  web:\n    image: x\n    healthcheck: {test: x, disable: '${V}'}", "compose.yaml:4:37"),
        ("services:\n  web:\n    image: x\n    ports: ['1-${V}:2']", "compose.yaml:4:13"),
        (
            "services: {web: {image: x, volumes: ['d:/d']}}\nvolumes: {d: {name: 'x${V}'}}\nx-platform: {full: true}",
            "compose.yaml:2:21",
        ),
    ],
)
def test_what_can_not_wait(folder: Folder, text: str, place: str) -> None:
    """The plan needs a plain value for durations, sizes, modes and names: the error has the place and the variable."""
    folder.write({"compose.yaml": text})

    def program() -> None:
        file = folder.path / "compose.yaml"
        ComposeStack("shop", file=file, namespace="team", endpoint_domain="a.example", variables={"V": output("1")})

    with pytest.raises(pulumi.RunError) as caught:
        run(program)

    assert place in str(caught.value)
    assert "V is an output, which the plan can't wait for here: give a plain value" in str(caught.value)
    assert "\ue000" not in str(caught.value)


def test_content_of_the_project_asks_for_nothing(folder: Folder) -> None:
    """A file with the form of a placeholder stays as it is: nobody can guess the random part of one."""
    forged = f"\ue000{os.urandom(8).hex()}-DB\ue001"
    folder.write({"compose.yaml": f"services: {{web: {{image: x, environment: {{A: '{forged}', B: '${{DB}}'}}}}}}"})

    assert secret_data(registered(folder, variables=variables(DB="hidden"))) == {"A": forged, "B": "hidden"}


def test_texts_of_values() -> None:
    assert [as_text(value) for value in (True, 5432.0, 1.5, None, "x", 7)] == ["true", "5432", "1.5", "", "x", "7"]
    assert LateTexts().add("X", "plain") == "plain"
