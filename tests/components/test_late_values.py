"""An output in each place of a definition: its objects are those of a plain value, or it is refused with its place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_docker
import pulumi_docker_build
import pytest

from composeplat.components.definition import parse_pushed
from composeplat.components.late_texts import check_value
from composeplat.components.stack import ComposeStack
from composeplat.compose.placeholders import make_placeholder, show_placeholders
from composeplat.compose.values import BadValue
from composeplat.diagnostics import printable
from tests.components.test_late_texts import folder, unknown
from tests.components.test_stack import DIGEST, SECRET, Registered, run
from tests.conftest import Folder

__all__ = ["folder"]
IS_OUTPUT = "V is an output, which the plan can't wait for here: give a plain value"


def registered(
    folder: Folder, service: str, value: Callable[[], Any], *, rest: str = "", preview: bool = False
) -> Registered:
    """The resources of a definition with one service, in which ``${V}`` has a value."""
    folder.write({"compose.yaml": f"services:\n  web:\n    image: x\n    {service}\n{rest}"})

    def program() -> None:
        file = folder.path / "compose.yaml"
        arguments: dict[str, Any] = {"namespace": "team", "endpoint_domain": "a.example", "waits": False}
        ComposeStack("shop", file=file, variables={"V": value()}, full=True, **arguments)

    return run(program, preview=preview)


def revealed(value: Any) -> Any:
    """A value with its secrets as they are."""
    match value:
        case dict() if SECRET.items() <= value.items():
            return revealed(value["value"])
        case dict():
            return {key: revealed(item) for key, item in value.items()}
        case list():
            return [revealed(item) for item in value]
        case _:
            return value


def without_hashes(found: dict[tuple[str, str], Any]) -> str:
    """All inputs but the hashes of values: that of an output is of its placeholder's name too."""
    shown = json.dumps(sorted([[*key, revealed(value)] for key, value in found.items()]), sort_keys=True)
    return re.sub(r'("dev.platform.com/config-hash": )"[0-9a-f]+"', r'\1""', shown)


def public_text(value: Any) -> str:
    """A value as text, without its secrets."""

    def public(value: Any) -> Any:
        if isinstance(value, list):
            return [public(item) for item in value]
        if not isinstance(value, dict):
            return value
        return "" if SECRET.items() <= value.items() else {key: public(item) for key, item in value.items()}

    return json.dumps(public(list(value.values())))


PLACES = [
    ("entrypoint: ['${V}', x]", "run"),
    ("working_dir: ${V}", "/srv"),
    ("annotations: {note: '${V}'}", "hello world"),
    ("labels: {note: '${V}'}", "hello world"),
    ("healthcheck: {test: [CMD, check, '${V}']}", "hidden"),
    ("sysctls: {net.ipv4.tcp_syncookies: '${V}'}", "1"),
    ("expose: ['${V}']", "9000"),
    ("scale: ${V}", "3"),
    ("environment: {A: '${V}', B: 'x${V}y${V}'}", 'it\'s $${X} \\ "q"\nü'),
    ("volumes: [{type: volume, source: d, target: /d}]", "shop-data"),
    ("post_start: [{command: [echo, '${V}'], working_dir: '/${V}'}, {command: [run]}]", "it's; $(rm) `x`"),
    ("pre_stop: [{command: [echo, '${V}']}]", "it's"),
]
EXTERNAL = "volumes: {d: {external: true, name: '${V}'}}\n"


@pytest.mark.parametrize(("service", "text"), PLACES, ids=lambda value: value.partition(":")[0])
def test_the_same_objects(folder: Folder, service: str, text: str) -> None:
    """The objects are those of a plain value, and no place shows a value that is secret."""
    rest = EXTERNAL if "source: d" in service else ""
    late = registered(folder, service, lambda: pulumi.Output.secret(text), rest=rest).everything
    plain = registered(folder, service, lambda: text, rest=rest).everything

    assert without_hashes(late) == without_hashes(plain)
    assert "\\ue00" not in json.dumps(list(late.values()))
    if len(text) > 3:
        assert text not in public_text(late)


REFUSED = [
    ("user: ${V}", "4:11"),
    ("hostname: ${V}", "4:15"),
    ("group_add: ['${V}']", "4:17"),
    ("devices: ['${V}']", "4:15"),
    ("annotations: ['${V}']", "4:19"),
    ("environment: ['${V}=x']", "4:19"),
    ("networks: {default: {aliases: ['${V}']}}", "4:36"),
    ("ports: [{target: 80, host_ip: '${V}'}]", "4:35"),
    ("ports: [{target: 80, name: '${V}'}]", "4:32"),
    ("ports: ['${V}:8080:80']", "4:13"),
    ("build: '${V}'", "4:12"),
    ("configs: [{source: '${V}'}]", "4:15"),
    ("cap_add: ['${V}']", "4:15"),
    ("stop_signal: ${V}", "4:18"),
    ("volumes: ['${V}:/data']", "4:15"),
    ("tmpfs: ['${V}']", "4:13"),
    ("platform: ${V}", "4:15"),
]


@pytest.mark.parametrize(("service", "place"), REFUSED, ids=lambda value: value.partition(":")[0])
def test_what_is_refused(folder: Folder, service: str, place: str) -> None:
    """Keys, modes, paths and names can't wait: no placeholder is lost, changed or shown."""
    with pytest.raises(pulumi.RunError) as caught:
        registered(folder, service, lambda: pulumi.Output.secret("hidden"))

    message = str(caught.value)
    assert IS_OUTPUT in message
    assert f"compose.yaml:{place}" in message
    assert "hidden" not in message
    assert "\ue000" not in message


def test_a_placeholder_in_a_message(folder: Folder) -> None:
    """Where a message has the value itself, it shows the variable."""
    build = "build: {context: ., ssh: ['project=${V}'], secrets: [{source: s, uid: '1'}]}"
    folder.write({"Dockerfile": "FROM x"})
    with pytest.raises(pulumi.RunError) as caught:
        registered(folder, build, lambda: pulumi.Output.from_input("k"), rest="secrets: {s: {environment: '${V}'}}\n")

    message = str(caught.value)
    assert "reads a variable that is not set: '${V}' (after substitution) " in message
    assert "ue000" not in message


@pytest.mark.parametrize("length", range(1, len(make_placeholder("V"))))
def test_a_placeholder_that_a_message_cuts(length: int) -> None:
    """A text that is too long for a message may end within a placeholder, of which nothing is shown."""
    cut = make_placeholder("V")[:length]

    assert show_placeholders(f"'/x/{cut}…' and '{make_placeholder('W')}'") == "'/x/…' and '${W}'"
    assert show_placeholders(f"'/x/{printable(cut)}…'") == "'/x/…'"


def test_a_public_port(folder: Folder) -> None:
    """Databases are never public: a number that only the update knows could be that of one."""
    with pytest.raises(
        pulumi.RunError, match=r"compose.yaml:4:13: error: .* is public or not by its number, an output"
    ):
        registered(folder, "ports: ['8080:${V}']", lambda: pulumi.Output.from_input("5432"))

    private = registered(folder, "ports: ['${V}']", lambda: pulumi.Output.from_input("5432"))
    assert not [name for kind, name in private.names if "Ingress" in kind]
    assert private.inputs("v1:Service")["spec"]["ports"][0]["port"] == 5432


def test_a_secret_looking_name(folder: Folder) -> None:
    """As with plain values, the name of a variable makes its value confidential."""
    folder.write({"compose.yaml": "services: {web: {image: x, command: ['${DB_PASSWORD}', '${DB_HOST}']}}"})

    def program() -> None:
        values = {name: pulumi.Output.from_input("open sesame") for name in ("DB_PASSWORD", "DB_HOST")}
        ComposeStack("shop", file=folder.path / "compose.yaml", namespace="team", variables=values, waits=False)

    (container,) = run(program).inputs("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["args"] == [{**SECRET, "value": "open sesame"}, "open sesame"]


@pytest.mark.parametrize(("value", "kind"), [({"a": "hidden"}, "dict"), (["hidden"], "list"), (b"hidden", "bytes")])
def test_values_of_other_types(value: object, kind: str) -> None:
    """A value that is no text, number or boolean is an error, which doesn't show it."""
    with pytest.raises(pulumi.RunError) as caught:
        check_value("V", value)

    assert str(caught.value) == f"the value of V must be a text, a number or a boolean, not a {kind}"
    assert [check_value("V", value) for value in ("x", 1, 1.5, True, None)] == ["x", 1, 1.5, True, None]


RICH = """\
services:
  web:
    image: ${V}
    scale: ${V}
    ports: ["${V}:80"]
    command: [run, "${V}"]
    environment: {A: "${V}", B: plain}
    annotations: {note: "${V}"}
    configs: [settings]
    secrets: [key]
  db:
    build: {context: ., args: {A: "${V}", B: plain}, labels: {l: "${V}"}}
configs: {settings: {content: "x${V}"}}
secrets: {key: {environment: V}}
"""


def unknown_in(value: Any, path: str = "") -> list[str]:
    """The paths of unknown values."""
    value = revealed(value)
    if isinstance(value, dict):
        return [found for key, item in sorted(value.items()) for found in unknown_in(item, f"{path}.{key}")]
    if isinstance(value, list):
        return [found for index, item in enumerate(value) for found in unknown_in(item, f"{path}.{index}")]
    return [path[1:]] if value == pulumi.runtime.rpc.UNKNOWN else []


def test_a_preview_of_each_kind(folder: Folder) -> None:
    """Exactly the fields that have the value are unknown; secrets are unknown together."""
    folder.write({"compose.yaml": RICH, "Dockerfile": "FROM x"})

    def program() -> None:
        late: dict[str, Any] = {"variables": {"V": unknown()}, "namespace": unknown(), "endpoint_domain": unknown()}
        arguments: Any = {"registry": "r.example", "waits": False, "full": True}
        ComposeStack("shop", file=folder.path / "compose.yaml", **late, **arguments)

    found = {
        f"{kind.rpartition(':')[2]}/{name.rpartition('/')[2]}": paths
        for (kind, name), inputs in run(program, preview=True).everything.items()
        if (paths := [path for path in unknown_in(inputs) if path != "metadata.namespace"])
    }

    pod = "spec.template.spec.containers.0"
    note, config_hash = "spec.template.metadata.annotations.note", "dev.platform.com/config-hash"
    assert found == {
        "ConfigMap/settings": ["data.settings"],
        "Secret/key": ["data"],
        "Secret/web": ["data"],
        "Image/db": ["buildArgs", "labels.l"],
        "Deployment/web": [
            "spec.replicas", f"spec.template.metadata.annotations.{config_hash}", note, f"{pod}.args.1", f"{pod}.image",
        ],
        "Service/web": ["spec.ports.1.name", "spec.ports.1.port"],
        "Ingress/web": ["spec.rules.0.host", "spec.tls.0.hosts.0"],
    }  # fmt: skip


def images_of(folder: Folder, image: Callable[[], Any]) -> Any:
    folder.write({"compose.yaml": "services: {web: {build: .}}", "Dockerfile": "FROM x"})
    found: dict[str, Any] = {}

    def program() -> None:
        file = folder.path / "compose.yaml"
        stack = ComposeStack("shop", file=file, namespace="team", variables={}, waits=False, images={"web": image()})
        stack.services["web"].digest.apply(lambda digest: found.update(digest=digest))

    (container,) = run(program).inputs("Deployment")["spec"]["template"]["spec"]["containers"]
    return {"image": container["image"], **found}


def test_an_image_of_docker_build(folder: Folder) -> None:
    def image() -> pulumi.Output[str]:
        return pulumi_docker_build.Image("web", tags=["r.example/web"], push=True, context={"location": "."}).ref

    assert images_of(folder, image) == {"image": DIGEST, "digest": DIGEST.partition("@")[2]}


def test_an_image_of_docker(folder: Folder) -> None:
    """The provider can't be had here: its SDK is the real one, and the digest that of a mock."""

    def image() -> pulumi.Output[str]:
        return pulumi_docker.Image("web", image_name="r.example/web", build={"context": "."}).repo_digest

    assert images_of(folder, image) == {"image": DIGEST, "digest": DIGEST.partition("@")[2]}


@pytest.mark.parametrize("value", ["", "a b", "a\n", None])
def test_an_image_that_is_not_pushed(value: object) -> None:
    """Without a push, ``repo_digest`` is empty."""
    with pytest.raises(BadValue, match="must be the reference of an image; without a push, an image has no digest"):
        parse_pushed(value)


def test_an_image_that_is_none(folder: Folder) -> None:
    with pytest.raises(pulumi.RunError, match=r"images\['web'\] must be an image such as .*, not 'A b'"):
        images_of(folder, lambda: "A b")


def test_a_workload_depends_on_no_value_of_its_environment(folder: Folder) -> None:
    """A resource that is replaced replaces the Secret that has its value, but no workload: its pods would be gone."""

    def value() -> pulumi.Output[str]:
        made = pulumi.CustomResource("test:index:Made", "made", {})
        return made.urn.apply(lambda _: "v")

    found = registered(folder, "environment: {A: '${V}', B: b}", value)

    (made,) = found.request("Secret", "environment/web").propertyDependencies["data"].urns
    assert made.endswith("::made")
    deployment = found.request("Deployment")
    assert [name for name, place in deployment.propertyDependencies.items() if place.urns] == []
    assert "shop-environment/web" in {urn.rpartition("::")[2] for urn in deployment.dependencies}
