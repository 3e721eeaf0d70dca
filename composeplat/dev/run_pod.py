"""One-off pods of ``platform run``: a service's pod with another command, outside its Service and its workload.

Owns the manifest of such a pod, and its command. Pure: objects of the cluster come in, manifests go out.
Must not create a pod: :mod:`~composeplat.dev.run_pods` does. A pod here has no label that a Service selects, and an
owner and a deadline, so that none is left for ever.
"""

from __future__ import annotations

import base64
import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from composeplat.cluster.snapshot import Object, container_of, has_ended, without_no_node
from composeplat.compose.model import User
from composeplat.dev.holder import make_holder
from composeplat.names import LABEL_PREFIX, RUN_LABEL, SERVICE_LABEL, SERVICES_ANNOTATION, shorten
from composeplat.plan.arguments import escape
from composeplat.plan.desired import Manifest
from composeplat.plan.shared_pods import own_init_containers
from composeplat.plan.templates import claims_in, pod_template
from composeplat.system.records import record

#: Marks a one-off pod that stays when its command has ended.
KEPT_ANNOTATION = f"{LABEL_PREFIX}/keep"
#: A pod ends then, even if the command line that started it was killed.
MAX_RUN_S = 24 * 3600
_HOLDER_FOLDER = "/.platform-run"
_HOLDER = "hold"
_MAX_POD_NAME_LENGTH = 56
_LOOPBACK = "127.0.0.1"
_PROBES = ("readinessProbe", "livenessProbe", "startupProbe", "lifecycle", "ports")
_ESCAPED = re.compile(r"\$\$")


@record(kw_only=True)
class RunOptions:
    """What differs from the service."""

    command: tuple[str, ...] = ()
    """Empty keeps the service's."""
    entrypoint: tuple[str, ...] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    working_dir: str = ""
    user: User = User()
    """None of its numbers is the service's; its names are looked up in the image before a pod is made."""
    detached: bool = False
    kept: bool = False

    @property
    def is_as_scheduled(self) -> bool:
        """Whether nothing differs, so that a run of a schedule can be started."""
        return replace(self, detached=False, kept=False) == RunOptions()


def choose_args(container: Object, options: RunOptions, image: tuple[tuple[str, ...], tuple[str, ...]]) -> list[str]:
    """Put the command together as a container runtime does; ``image`` has its entrypoint and its command."""
    own = [_unescaped(arg) for arg in container.get("command") or ()]
    args = [_unescaped(arg) for arg in container.get("args") or ()]
    if options.entrypoint is not None:
        return [*options.entrypoint, *options.command]
    if options.command:
        return [*(own or image[0]), *options.command]
    return [*own, *args] if own else [*image[0], *(args or image[1])]


def needs_image(container: Object, options: RunOptions) -> bool:
    """Return whether the command depends on the image's own."""
    return options.entrypoint is None and not container.get("command")


def _unescaped(arg: str) -> str:
    """Undo :func:`composeplat.plan.desired.escape`."""
    return _ESCAPED.sub("$", arg)


def make_pod(
    workload: Object,
    owner: Object,
    options: RunOptions,
    *,
    name: str,
    args: Iterable[str],
    node: str = "",
    aliases: Iterable[str] = (),
) -> Manifest:
    """Make the pod; without a terminal of its own it only waits, and the command runs in it by ``exec``.

    ``aliases`` are the further names of the services in the workload's pods.
    """
    service = str(owner["metadata"]["name"])
    template = copy.deepcopy(pod_template(workload))
    head = template.get("metadata") or {}
    metadata: Manifest = {
        "name": name,
        "namespace": workload["metadata"]["namespace"],
        "labels": run_labels(head, service),
        "annotations": {**_annotations(head), **({KEPT_ANNOTATION: "true"} if options.kept else {})},
        "ownerReferences": [reference(owner)],
    }
    template["spec"]["containers"] = [container_of(template["spec"], service)]
    first = own_init_containers(template, service)
    template["spec"].update({"initContainers": first} if first else {})
    remove_own_names(template, str(workload["metadata"]["name"]), aliases)
    spec = _pod_spec(template["spec"], workload, options, name, list(args))
    if node:
        _bind(spec, node)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _annotations(head: Object) -> Object:
    """The annotations of a pod that has one service alone."""
    return {key: value for key, value in (head.get("annotations") or {}).items() if key != SERVICES_ANNOTATION}


def remove_own_names(template: Object, workload: str, aliases: Iterable[str] = ()) -> None:
    """Remove the names of a pod's own services as its own address: in a one-off pod they are the names of others."""
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    own = {*str(annotations.get(SERVICES_ANNOTATION, workload)).split(","), *aliases}
    entries = [
        {**alias, "hostnames": [name for name in alias.get("hostnames") or () if name not in own]}
        if alias["ip"] == _LOOPBACK
        else alias
        for alias in template["spec"].pop("hostAliases", ())
    ]
    if kept := [alias for alias in entries if alias["hostnames"]]:
        template["spec"]["hostAliases"] = kept


def run_labels(head: Object, service: str) -> dict[str, str]:
    """Return the labels of a pod beside its service: none that a Service or a controller selects."""
    labels = {
        key: str(value)
        for key, value in (head.get("labels") or {}).items()
        if key != SERVICE_LABEL and "job-name" not in key and "-uid" not in key
    }
    return {**labels, RUN_LABEL: service}


def _pod_spec(spec: Object, workload: Object, options: RunOptions, name: str, args: list[str]) -> Object:
    container = spec["containers"][0]
    for key in _PROBES:
        container.pop(key, None)
    spec = without_no_node(spec)
    spec.update(restartPolicy="Never", activeDeadlineSeconds=MAX_RUN_S)
    spec.setdefault("volumes", []).extend(
        {"name": claim["metadata"]["name"], "emptyDir": {}}
        for claim in workload["spec"].get("volumeClaimTemplates") or ()
    )
    _change(container, options)
    container.pop("args", None)
    if options.detached:
        container["command"] = [escape(arg) for arg in args]
        return dict(spec)
    spec["terminationGracePeriodSeconds"] = 1
    spec["volumes"].append({"name": _HOLDER, "configMap": {"name": name, "defaultMode": 0o755}})
    container["volumeMounts"] = [
        *(container.get("volumeMounts") or ()),
        {"name": _HOLDER, "mountPath": _HOLDER_FOLDER, "readOnly": True},
    ]
    container["command"] = [f"{_HOLDER_FOLDER}/{_HOLDER}"]
    return dict(spec)


def _change(container: Object, options: RunOptions) -> None:
    if options.environment:
        values = [{"name": name, "value": escape(value)} for name, value in options.environment.items()]
        kept = [entry for entry in container.get("env") or () if entry["name"] not in options.environment]
        container["env"] = [*kept, *values]
    if options.working_dir:
        container["workingDir"] = options.working_dir
    for key, number in (("runAsUser", options.user.uid), ("runAsGroup", options.user.gid)):
        if number is not None:
            container.setdefault("securityContext", {})[key] = number


def _bind(spec: Object, node: str) -> None:
    """Keep the pod on a node: a volume of one node is used there."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = spec.setdefault("affinity", {})
    affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}


def reference(owner: Object) -> Object:
    head = owner["metadata"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": head["name"], "uid": head["uid"]}


def make_holder_object(pod: Object, architecture: str) -> Manifest:
    """Make the ConfigMap with the program that holds the pod open; it goes with the pod."""
    metadata = {
        "name": pod["metadata"]["name"],
        "namespace": pod["metadata"]["namespace"],
        "labels": {RUN_LABEL: pod["metadata"]["labels"][RUN_LABEL]},
        "ownerReferences": [reference({**pod, "apiVersion": "v1", "kind": "Pod"})],
    }
    content = base64.b64encode(make_holder(architecture)).decode("ascii")
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": {_HOLDER: content}}


def pod_name(service: str, suffix: str) -> str:
    return f"{shorten(service, _MAX_POD_NAME_LENGTH - len(suffix) - 5)}-run-{suffix}"


def claims_of(workload: Object) -> set[str]:
    """The claims that a workload's pods mount."""
    return claims_in(pod_template(workload)["spec"])


def node_of_claims(pods: Iterable[Object], single: set[str]) -> str:
    """Find the node of pods that use one of these claims, which only one node can; empty if none does."""
    for pod in pods:
        if not has_ended(pod) and pod["spec"].get("nodeName") and claims_in(pod["spec"]) & single:
            return str(pod["spec"]["nodeName"])
    return ""
