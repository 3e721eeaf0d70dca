"""Parse a service."""

from __future__ import annotations

from composeplat.compose.full_keys import SERVICE
from composeplat.compose.keys import SECTIONS
from composeplat.compose.model import Dependency, DependencyCondition, Service
from composeplat.compose.nodes import Mapping, Scalar, Sequence
from composeplat.compose.parse.annotations import parse_annotations
from composeplat.compose.parse.build import parse_build
from composeplat.compose.parse.container_options import parse_container_options
from composeplat.compose.parse.deploy import parse_deploy
from composeplat.compose.parse.environment import parse_env_files, parse_environment
from composeplat.compose.parse.extensions import parse_extensions
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.parse.file_objects import parse_file_mounts
from composeplat.compose.parse.healthcheck import parse_healthcheck
from composeplat.compose.parse.label_files import parse_label_files
from composeplat.compose.parse.memory_mounts import parse_memory_mounts
from composeplat.compose.parse.models import parse_model_uses
from composeplat.compose.parse.mounts import parse_mounts
from composeplat.compose.parse.networks import parse_network_names, parse_networking
from composeplat.compose.parse.ports import parse_ports
from composeplat.compose.parse.process import parse_command, parse_service_user
from composeplat.compose.parse.shared_pods import parse_shared_pod
from composeplat.compose.parse.watch import parse_watch
from composeplat.compose.values import (
    BadValue,
    parse_image,
    parse_seconds,
    parse_working_dir,
)
from composeplat.diagnostics import dotted
from composeplat.names import UPDATE_LABEL, is_dns_name, is_label_key, is_label_value


def _hint_for_image(whole: Field) -> str:
    keys = whole.node if isinstance(whole.node, Mapping) else ()
    if "extends" in keys:
        return "full mode (--full) honors 'extends', which may have it; without full mode, set one of them"
    if "provider" in keys:
        return "full mode (--full) runs its provider, with --allow-providers"
    unknown = (key.text for key, _ in keys if key.text not in SECTIONS[SERVICE])
    return next(filter(None, (whole.ctx.report.near(name, ("image", "build")) for name in unknown)), "set one of them")


def _open(name: str, whole: Field) -> Section | None:
    """Open a service; one with the name of a key may be a key of the service before it."""
    if name in SECTIONS[SERVICE] and not isinstance(whole.node, Mapping):
        whole.report_type("a mapping", f"'{name}' is a key of a service: indent it further than the service's name")
        return None
    return whole.section(SERVICE)


def parse_service(name: str, whole: Field) -> Service | None:
    section = _open(name, whole)
    if section is None:
        return None
    build = parse_build(section)
    image = section.given("image") if build else section.get("image")
    is_inherited = whole.ctx.report.has_error(*whole.path, "extends")
    if image is None and section.get("build") is None and not is_inherited:
        key = whole.ctx.origins.key_at(*whole.path)
        message = f"{dotted(whole.path)} has neither 'image' nor 'build'"
        whole.ctx.report.add("no-image", key, whole.path, message, _hint_for_image(whole))
    deploy, container = parse_deploy(section), parse_container_options(section)
    own_labels = parse_annotations(section, "labels")
    labels = {**deploy.labels, **own_labels}
    return Service(
        name=name,
        image=_image(image) if image else "",
        build=build,
        entrypoint=parse_command(section, "entrypoint"),
        command=parse_command(section, "command"),
        working_dir=section.value("working_dir", parse_working_dir, ""),
        environment={**parse_environment(section), **container.hook_environment},
        env_files=parse_env_files(section),
        ports=parse_ports(section),
        public=section.boolean("public", default=False),
        mounts=parse_memory_mounts(section, parse_mounts(section), of_node="ipc" in container.host_namespaces),
        depends_on=parse_depends_on(section),
        health_check=parse_healthcheck(section),
        restart=deploy.restart,
        max_attempts=deploy.max_attempts,
        replicas=deploy.replicas,
        resources=deploy.resources,
        endpoint_mode=deploy.endpoint_mode,
        update_policy=labels.get(UPDATE_LABEL, ""),
        labels=labels,
        annotations=parse_annotations(section, "annotations"),
        node_selector=_node_selector(section),
        cap_add=_capabilities(section, "cap_add"),
        cap_drop=_capabilities(section, "cap_drop"),
        user=parse_service_user(section),
        stop_grace_period=_grace_period(section),
        networks=parse_network_names(section),
        service_account=section.value("x-service-account", _account_name, ""),
        container=container,
        networking=parse_networking(section),
        label_files=parse_label_files(section, own_labels),
        file_mounts=parse_file_mounts(section),
        scheduling=deploy.scheduling,
        extensions=parse_extensions(section),
        pod=parse_shared_pod(section),
        watch=parse_watch(section),
        models=parse_model_uses(section),
    )


def _image(found: Field) -> str:
    ends_in_colon = isinstance(found.node, Scalar) and found.node.text.endswith(":")
    unset_means = "the tag is empty" if ends_in_colon else "the value is empty"
    return found.value(parse_image, unset_means=unset_means) or ""


def parse_depends_on(section: Section) -> tuple[Dependency, ...]:
    found = section.get("depends_on")
    if found is None:
        return ()
    if isinstance(found.node, Sequence):
        listed: dict[str, Field] = {}
        for item in found.items():
            text = item.text()
            if text is not None:
                listed.setdefault(text, item)
        return tuple(_named(item, Dependency(service=text)) for text, item in listed.items())
    dependencies: list[Dependency] = []
    for name, place in found.members("a list or a mapping", suggests_list=True):
        dependency = _dependency(name, place)
        key = found.node.key(name) if isinstance(found.node, Mapping) else None
        if dependency is not None:
            dependencies.append(dependency)
        if key is not None and key.is_substituted:
            place.ctx.origins.put_alias((*found.path, name), key, place.path)
    return tuple(dependencies)


def _named(place: Field, dependency: Dependency) -> Dependency:
    place.ctx.origins.put_alias(("services", place.path[1], "depends_on", dependency.service), place.node, place.path)
    return dependency


def _dependency(name: str, place: Field) -> Dependency | None:
    if place.is_null:
        return Dependency(service=name)
    section = place.section("services.*.depends_on.*")
    if section is None:
        return None
    written = section.get("condition")
    condition = written.choice(*DependencyCondition) if written else None
    return Dependency(
        service=name,
        condition=DependencyCondition(condition or DependencyCondition.STARTED),
        required=section.boolean("required", default=True),
        restart=section.boolean("restart", default=False),
    )


def _node_selector(section: Section) -> dict[str, str]:
    found = section.get("x-node-selector")
    kept: dict[str, str] = {}
    for name, place, value in found.pairs() if found else ():
        if not is_label_key(name) or not is_label_value(value or ""):
            place.report(
                "invalid-value", "must be a node's label: a name and a value of letters, digits, '-', '_' and '.'"
            )
        else:
            kept[name] = value or ""
    return kept


def _capabilities(section: Section, key: str) -> tuple[str, ...]:
    """Kubernetes names capabilities without the prefix ``CAP_``."""
    return tuple(dict.fromkeys(text.upper().removeprefix("CAP_") for text in section.texts(key)))


def _account_name(text: str) -> str:
    if not is_dns_name(text):
        raise BadValue("must be the name of a ServiceAccount")
    return text


def _grace_period(section: Section) -> int:
    return section.value("stop_grace_period", parse_seconds, 10)
