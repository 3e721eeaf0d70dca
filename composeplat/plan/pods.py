"""The pod template of every kind of workload, and the Secrets of its variables and of its registry's login.

All variables are in a Secret, since any value may be confidential: Pulumi encrypts it, and kubectl does not print it.
The pods have a fingerprint of it as an annotation, so that a changed value replaces them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import field

from composeplat.compose.model import HealthCheck, Service
from composeplat.compose.network_model import HOST_NETWORK
from composeplat.compose.options import Settings
from composeplat.compose.placeholders import has_late_registry
from composeplat.compose.values import show_cpus, show_size
from composeplat.names import FILL_IMAGE, TOOLS_CONTAINER, clean
from composeplat.plan.arguments import escape, plan_command
from composeplat.plan.container_options import add_pod_options, host_aliases, join_aliases, pull_policy
from composeplat.plan.desired import BuiltImage, Manifest
from composeplat.plan.fingerprint import HASH_ANNOTATION, fingerprint
from composeplat.plan.identity import Identity
from composeplat.plan.images import use_built_images
from composeplat.plan.init_containers import plan_init_containers
from composeplat.plan.lifecycle import grace_period, needs_shell, plan_lifecycle
from composeplat.plan.process_limits import with_limits
from composeplat.plan.providers import provided_sources
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from composeplat.plan.scheduling import add_placement, device_limits
from composeplat.plan.security import container_security, plan_token, pod_security
from composeplat.plan.services import own_name_aliases
from composeplat.plan.storage import TOOLS_VOLUME, Storage, plan_affinity, volume_label
from composeplat.plan.tools import TOOLS_MOUNT
from composeplat.registry.credentials import Login
from composeplat.registry.image_reference import ImageReference
from composeplat.system.records import record

DOCKER_CONFIG_TYPE = "kubernetes.io/dockerconfigjson"


@record(kw_only=True)
class PodInputs:
    """The inputs of a pod template besides its service."""

    identity: Identity
    settings: Settings
    image: BuiltImage | str
    storage: Storage
    shared: tuple[str, ...]
    container_ports: tuple[tuple[int, str], ...]
    has_early_name: bool = False
    """The name of the service leads to pods that are not ready too."""
    read_only_volumes: frozenset[str] = frozenset()
    network_labels: Mapping[str, str] = field(default_factory=dict)
    built: Mapping[tuple[str, ...], BuiltImage] = field(default_factory=dict)
    """The images that services of the definition build, by the identity of their names."""


def environment_name(service: Service) -> str:
    return f"{clean(service.name)}-env"


def plan_environment(service: Service, identity: Identity) -> Manifest:
    data = {name: base64.b64encode(value.encode()).decode("ascii") for name, value in sorted(service.variables.items())}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": identity.service_metadata(environment_name(service), clean(service.name)),
        "type": "Opaque",
        "data": data,
    }


def pull_secret_name(service: Service) -> str:
    return f"{clean(service.name)}-pull"


def pod_logins(spec: Manifest, settings: Settings) -> tuple[Login, ...]:
    """Return the logins for the registries of a pod's images: of containers, also before the service, and of volumes.

    The image of our own tools is public, and the registry of one that is an output may be any.
    """
    own, *others = (container["image"] for container in (*spec["containers"], *spec.get("initContainers", ())))
    others += [volume["image"]["reference"] for volume in spec.get("volumes", ()) if "image" in volume]
    images = [str(image) for image in (own, *(image for image in others if image != FILL_IMAGE))]
    if any(map(has_late_registry, images)):
        return tuple(settings.logins.values())
    registries = dict.fromkeys(ImageReference.parse(image).registry for image in images)
    return tuple(settings.logins[name] for name in registries if name in settings.logins)


def plan_pull_secret(service: Service, identity: Identity, logins: Iterable[Login]) -> Manifest:
    """Plan the Secret with the logins for the registries of a service's pod, in the kubelet's format."""
    entries = {
        login.address: {
            "username": login.user,
            "password": login.password,
            "auth": base64.b64encode(f"{login.user}:{login.password}".encode()).decode("ascii"),
        }
        for login in logins
    }
    config = json.dumps({"auths": entries}, sort_keys=True)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": identity.service_metadata(pull_secret_name(service), clean(service.name)),
        "type": DOCKER_CONFIG_TYPE,
        "data": {".dockerconfigjson": base64.b64encode(config.encode()).decode("ascii")},
    }


def plan_pod(service: Service, inputs: PodInputs) -> Manifest:
    """Plan the ``template`` of a workload."""
    name = clean(service.name)
    labels = inputs.identity.pod_labels(name)
    labels.update(inputs.network_labels)
    labels.update({volume_label(volume): inputs.identity.environment for volume in inputs.shared})
    metadata: Manifest = {"labels": labels}
    annotations: Manifest = {**service.labels, **service.annotations, **_fingerprint(service, inputs)}
    if annotations:
        metadata["annotations"] = dict(sorted(annotations.items()))
    return {"metadata": metadata, "spec": _pod_spec(service, inputs)}


def _pod_spec(service: Service, inputs: PodInputs) -> Manifest:
    spec: Manifest = {"containers": [_container(service, inputs)], "enableServiceLinks": False, **plan_token(service)}
    own = own_name_aliases(service, has_early_name=inputs.has_early_name)
    if aliases := join_aliases([*own, *host_aliases(service)]):
        spec["hostAliases"] = aliases
    init = plan_init_containers(service, inputs.settings, spec["containers"][0], inputs.read_only_volumes)
    has_tools = any(container["name"] == TOOLS_CONTAINER for container in init)
    volumes = [*inputs.storage.volumes, *([{"name": TOOLS_VOLUME, "emptyDir": {}}] if has_tools else [])]
    more = use_built_images({"initContainers": init, "volumes": volumes}, inputs.built, inputs.settings)
    if pod_logins({**spec, **more}, inputs.settings):
        spec["imagePullSecrets"] = [{"name": pull_secret_name(service)}]
    spec.update(more)
    if service.networking.mode == HOST_NETWORK:
        spec.update(hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet")
    if service.is_job:
        # With OnFailure, the pod and its log are deleted after the last try.
        spec["restartPolicy"] = "Never"
    if service.node_selector:
        spec["nodeSelector"] = dict(sorted(service.node_selector.items()))
    if inputs.shared:
        spec["affinity"] = plan_affinity(inputs.shared, inputs.identity)
    add_pod_options(spec, service)
    add_placement(spec, service, inputs.identity)
    spec["securityContext"] = pod_security(service, inputs.settings)
    spec["terminationGracePeriodSeconds"] = grace_period(service)
    return spec


def _container(service: Service, inputs: PodInputs) -> Manifest:
    container: Manifest = {"name": clean(service.name), "image": inputs.image, **_pull_policy(service, inputs)}
    container.update(with_limits(service, plan_command(service.entrypoint, service.command)))
    container.update(_terminal(service))
    if service.working_dir:
        container["workingDir"] = service.working_dir
    if inputs.container_ports:
        container["ports"] = [
            {"containerPort": port, "protocol": protocol.upper()} for port, protocol in inputs.container_ports
        ]
    own = [{"secretRef": {"name": environment_name(service)}}] if service.variables else []
    if sources := [*own, *provided_sources(service)]:
        container["envFrom"] = sources
    resources = _with_devices(_resources(service), service)
    if resources:
        container["resources"] = resources
    container.update(_probes(service.health_check))
    container.update(plan_lifecycle(service))
    mounts = [*inputs.storage.mounts, *([TOOLS_MOUNT] if needs_shell(service) else [])]
    if mounts:
        container["volumeMounts"] = mounts
    security = container_security(service, inputs.settings)
    if security:
        container["securityContext"] = security
    return container


def _pull_policy(service: Service, inputs: PodInputs) -> Manifest:
    is_loaded = isinstance(inputs.image, BuiltImage) and inputs.image.is_loaded
    return {"imagePullPolicy": inputs.settings.load_policy} if is_loaded else pull_policy(service)


def _terminal(service: Service) -> Manifest:
    options = service.container
    return {**({"stdin": True} if options.stdin_open else {}), **({"tty": True} if options.tty else {})}


def _resources(service: Service) -> Manifest:
    fields: Manifest = {}
    resources, storage = service.resources, service.container.storage_limit
    for key, cpu, memory in (
        ("requests", resources.request_cpu, resources.request_memory),
        ("limits", resources.limit_cpu, resources.limit_memory),
    ):
        amounts: Manifest = {}
        if cpu is not None:
            amounts["cpu"] = show_cpus(cpu)
        if memory is not None:
            amounts["memory"] = show_size(memory)
        if storage is not None and key == "limits":
            amounts["ephemeral-storage"] = show_size(storage)
        if amounts:
            fields[key] = amounts
    return fields


def _with_devices(fields: Manifest, service: Service) -> Manifest:
    devices = device_limits(service)
    return {**fields, "limits": {**fields.get("limits", {}), **devices}} if devices else fields


def _probes(check: HealthCheck | None) -> Manifest:
    if check is None:
        return {}
    probe: Manifest = {}
    if check.command:
        probe["exec"] = {"command": [escape(arg) for arg in check.command]}
    else:
        probe["httpGet"] = {"path": check.http_path, "port": check.http_port}
    if check.start_period:
        probe["initialDelaySeconds"] = check.start_period
    probe.update(periodSeconds=check.interval, timeoutSeconds=check.timeout, failureThreshold=check.retries)
    probes: Manifest = {}
    if check.readiness:
        probes["readinessProbe"] = probe
    if check.liveness:
        probes["livenessProbe"] = dict(probe)
    return probes


def _fingerprint(service: Service, inputs: PodInputs) -> Manifest:
    name, identity = clean(service.name), inputs.identity
    secret = ResourceKey(ResourceKind.ENVIRONMENT, name) if service.variables else ResourceKey(ResourceKind.FILES, name)
    owner = f"{identity.namespace}/{identity.environment}/{name}"
    objects = inputs.storage.objects
    if not service.variables and not inputs.storage.files:
        secret = max(objects, key=lambda key: key.kind is not ResourceKind.CONFIG, default=secret)
    found = fingerprint(secret, owner, service.variables, inputs.storage.files, objects)
    return {HASH_ANNOTATION: found} if found else {}
