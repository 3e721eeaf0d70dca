"""What an API server would say of rendered objects, said without one.

Owns two judgements: the API server's own schemas, taken strictly (a field nobody knows is a mistake), and the rules
that no schema can show but the server enforces, each a small function below.
Must not know Compose or the planner: it is given plain objects, and knows Kubernetes alone.

A rule that only a running cluster can judge (does a storage class exist, does an image start) is not here.
``HTTPRoute`` is a custom resource and has no schema in the package, so what its definition requires is checked by hand.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from typing import Any

import referencing
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships no types
from kubernetes_validate.utils import schema_contents

VERSION = "1.35.0"

Manifest = Mapping[str, Any]
Problems = Iterator[str]

_LONGEST_LABEL = 63
_LONGEST_NAME = 253
_LONGEST_STATEFUL_SET = 52
_LONGEST_CRON_JOB = 52
_LONGEST_CONTAINER_PORT_NAME = 15
_LARGEST_CONTENT = 1024 * 1024
_LARGEST_ANNOTATIONS = 256 * 1024
_HIGHEST_PORT = 65535
_HIGHEST_ID = 2**31 - 1

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_CONTENT_KEY = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(m|k|[MGTPE]|[KMGTPE]i)?", re.ASCII)
_URL_PATH = re.compile(r"/(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})*", re.ASCII)
_PROTOCOLS = ("TCP", "UDP", "SCTP")


def problems_of(objects: Iterable[Manifest]) -> list[str]:
    """Everything an API server would refuse in objects that are applied together, each as ``Kind/name: what``."""
    every = list(objects)
    # What its schema refuses may lack what the rules look at, and what the rules refuse can't be referred to.
    output = [f"{_title(item)}: {what}" for item in every for what in schema_problems(item) or rule_problems(item)]
    return output or list(_set_problems(every))


def _title(manifest: Manifest) -> str:
    return f"{manifest.get('kind')}/{manifest.get('metadata', {}).get('name')}"


# the schemas ----------------------------------------------------------------------------------------------------------


def schema_problems(manifest: Manifest) -> list[str]:
    """What the API server's schemas refuse, fields they do not know included."""
    if manifest.get("kind") == "HTTPRoute":
        return list(_http_route(manifest))
    group, _, version = str(manifest.get("apiVersion")).rpartition("/")
    name = "-".join(part for part in (str(manifest.get("kind")).lower(), group.partition(".")[0], version) if part)
    try:
        validator = _validator(name)
    except FileNotFoundError:
        return [f"no schema for {manifest.get('apiVersion')} {manifest.get('kind')}"]
    return sorted(f"{error.json_path}: {error.message}" for error in validator.iter_errors(manifest))


@cache
def _validator(name: str) -> Any:
    """Load a kind's schema once: the package itself reads 1.5 MB of definitions for every object."""
    return Draft202012Validator(_schema(name), registry=_registry())


@cache
def _registry() -> Any:
    return referencing.Resource.from_contents(_schema("_definitions")) @ referencing.Registry()


def _schema(name: str) -> Any:
    return schema_contents(f"kubernetes-json-schema/v{VERSION}-local-strict/{name}.json", VERSION)


# the rules of one object ----------------------------------------------------------------------------------------------


def rule_problems(manifest: Manifest) -> list[str]:
    """What no schema shows of one object."""
    rules = _RULES.get(str(manifest.get("kind")))
    if rules is None:
        return [f"no rules for the kind {manifest.get('kind')}"]
    found = list(_metadata(manifest.get("metadata", {})))
    for rule in rules:
        found += rule(manifest)
    return found


def _metadata(metadata: Manifest, *, of_template: bool = False) -> Problems:
    if not of_template:
        if not _is_name(metadata.get("name")):
            yield f"name {metadata.get('name')!r} is no DNS name"
        if not _is_label(metadata.get("namespace")):
            yield f"namespace {metadata.get('namespace')!r} is no DNS label"
    yield from _labels(metadata.get("labels", {}), "label")
    annotations = metadata.get("annotations", {})
    for key, value in annotations.items():
        if not _is_qualified(key.lower()):
            yield f"annotation key {key!r} is no qualified name"
        if not isinstance(value, str):
            yield f"annotation {key!r} is no text"
    size = sum(len(str(text).encode()) for pair in annotations.items() for text in pair)
    if size > _LARGEST_ANNOTATIONS:
        yield f"annotations of {size} bytes"


def _labels(labels: Mapping[str, Any], what: str) -> Problems:
    for key, value in labels.items():
        if not _is_qualified(key):
            yield f"{what} key {key!r} is no qualified name"
        if not _is_label_value(value):
            yield f"{what} {key!r} has a value that no label takes: {value!r}"


def _named_as_label(manifest: Manifest) -> Problems:
    """Pods carry the workload's name in a label or as a host name."""
    longest = _LONGEST_STATEFUL_SET if manifest["kind"] == "StatefulSet" else _LONGEST_LABEL
    name = manifest["metadata"]["name"]
    if not _is_label(name) or len(name) > longest:
        yield f"name {name!r} is no DNS label of at most {longest} characters"


def _selector(manifest: Manifest) -> Problems:
    wanted = manifest["spec"].get("selector", {}).get("matchLabels", {})
    labels = manifest["spec"]["template"]["metadata"].get("labels", {})
    if not wanted:
        yield "selects no pods"
    yield from _labels(wanted, "selector")
    missing = sorted(key for key, value in wanted.items() if labels.get(key) != value)
    if missing:
        yield f"selects by {', '.join(missing)}, which its own pods do not carry so"


def _counts(*keys: str) -> Callable[[Manifest], Problems]:
    def rule(manifest: Manifest) -> Problems:
        for key in keys:
            value = manifest["spec"].get(key, 0)
            if value < 0:
                yield f"{key} is {value}"

    return rule


def _always_restarted(manifest: Manifest) -> Problems:
    policy = manifest["spec"]["template"]["spec"].get("restartPolicy", "Always")
    if policy != "Always":
        yield f"restartPolicy {policy!r} where only 'Always' is allowed"


def _job(manifest: Manifest) -> Problems:
    policy = manifest["spec"]["template"]["spec"].get("restartPolicy")
    if policy not in ("Never", "OnFailure"):
        yield f"restartPolicy {policy!r} where a Job takes 'Never' or 'OnFailure'"
    if "selector" in manifest["spec"]:
        yield "a Job's selector is made by the server"


def _claim_templates(manifest: Manifest) -> Problems:
    for template in manifest["spec"].get("volumeClaimTemplates", []):
        if not _is_label(template["metadata"]["name"]):
            yield f"claim template {template['metadata']['name']!r} is no DNS label"
        yield from _labels(template["metadata"].get("labels", {}), "claim template's label")
        yield from _claim(template)


def _service(manifest: Manifest) -> Problems:
    spec = manifest["spec"]
    name = manifest["metadata"]["name"]
    if len(name) > _LONGEST_LABEL or not _LABEL_1035.fullmatch(name):
        yield f"name {name!r} is no DNS label that begins with a letter"
    ports = spec.get("ports", [])
    if not ports and spec.get("clusterIP") != "None":
        yield "has no ports and is not headless"
    yield from _labels(spec.get("selector", {}), "selector")
    yield from _twice((port.get("name") for port in ports), "port name")
    yield from _twice(((port["port"], port.get("protocol", "TCP")) for port in ports), "port")
    for port in ports:
        if (len(ports) > 1 or "name" in port) and not _is_label(port.get("name")):
            yield f"port name {port.get('name')!r} is no DNS label"
        for key in ("port", "targetPort"):
            if not _is_port(port.get(key)):
                yield f"{key} {port.get(key)!r} is out of range"
        if port.get("protocol") not in _PROTOCOLS:
            yield f"protocol {port.get('protocol')!r} is unknown"
        if "appProtocol" in port and not _is_qualified(port["appProtocol"]):
            yield f"appProtocol {port['appProtocol']!r} is no qualified name"


def _claim(manifest: Manifest) -> Problems:
    spec = manifest["spec"]
    if not spec.get("accessModes"):
        yield "a claim has no access mode"
    size = _quantity(spec.get("resources", {}).get("requests", {}).get("storage"))
    if not size:
        yield "a claim asks for no storage"
    if "storageClassName" in spec and not _is_name(spec["storageClassName"]):
        yield f"storage class {spec['storageClassName']!r} is no DNS name"


def _content(manifest: Manifest) -> Problems:
    """Keys and size of a ConfigMap or Secret."""
    texts, binaries = manifest.get("data", {}), manifest.get("binaryData", {})
    for key in [*texts, *binaries]:
        if len(key) > _LONGEST_NAME or not _CONTENT_KEY.fullmatch(key) or key == "." or key.startswith(".."):
            yield f"key {key!r} can't stand"
    yield from _twice([*texts, *binaries], "key")
    encoded = {**texts, **binaries} if manifest["kind"] == "Secret" else binaries
    plain = {} if manifest["kind"] == "Secret" else texts
    size = sum(len(value.encode()) for value in plain.values())
    for key, value in encoded.items():
        try:
            size += len(base64.b64decode(value, validate=True))
        except (binascii.Error, ValueError):
            yield f"key {key!r} is not base64"
    if size > _LARGEST_CONTENT:
        yield f"{size} bytes, where {_LARGEST_CONTENT} is the most"


def _ingress(manifest: Manifest) -> Problems:
    spec = manifest["spec"]
    if "ingressClassName" in spec and not _is_name(spec["ingressClassName"]):
        yield f"class {spec['ingressClassName']!r} is no DNS name"
    hosts = [rule["host"] for rule in spec["rules"]] + [host for tls in spec.get("tls", []) for host in tls["hosts"]]
    yield from _hosts(hosts)
    for tls in spec.get("tls", []):
        if "secretName" in tls and not _is_name(tls["secretName"]):
            yield f"secret name {tls['secretName']!r} is no DNS name"
    for path in (path for rule in spec["rules"] for path in rule["http"]["paths"]):
        yield from _url_path(path["path"])
        if path.get("pathType") not in ("Exact", "Prefix", "ImplementationSpecific"):
            yield f"path type {path.get('pathType')!r} is unknown"
        if not _is_port(path["backend"]["service"]["port"].get("number")):
            yield "a backend's port is out of range"


def _http_route(manifest: Manifest) -> Problems:
    """What the resource's definition (Gateway API v1) requires of the fields we write, and no others."""
    if manifest.get("apiVersion") != "gateway.networking.k8s.io/v1":
        yield f"apiVersion {manifest.get('apiVersion')!r} is unknown"
    spec = manifest.get("spec", {})
    yield from _unknown("spec", spec, "parentRefs hostnames rules")
    yield from _between("spec.parentRefs", spec.get("parentRefs", []), 1, 32)
    yield from _between("spec.hostnames", spec.get("hostnames", []), 1, 16)
    yield from _between("spec.rules", spec.get("rules", []), 1, 16)
    for parent in spec.get("parentRefs", []):
        yield from _unknown("spec.parentRefs", parent, "name namespace")
        if not _is_name(parent.get("name")):
            yield f"the Gateway's name {parent.get('name')!r} is no DNS name"
        if "namespace" in parent and not _is_label(parent["namespace"]):
            yield f"the Gateway's namespace {parent['namespace']!r} is no DNS label"
    yield from _hosts(spec.get("hostnames", []))
    for rule in spec.get("rules", []):
        yield from _unknown("spec.rules", rule, "matches backendRefs")
        yield from _between("spec.rules.matches", rule.get("matches", []), 1, 64)
        yield from _between("spec.rules.backendRefs", rule.get("backendRefs", []), 1, 16)
        yield from _route_rule(rule)


def _route_rule(rule: Manifest) -> Problems:
    for match in rule.get("matches", []):
        yield from _unknown("spec.rules.matches", match, "path")
        path = match.get("path", {})
        yield from _unknown("spec.rules.matches.path", path, "type value")
        if path.get("type") not in ("Exact", "PathPrefix"):
            yield f"path type {path.get('type')!r} is unknown"
        yield from _url_path(path.get("value", ""))
        if len(path.get("value", "")) > 1024:
            yield "a path is longer than 1024 characters"
    for backend in rule.get("backendRefs", []):
        yield from _unknown("spec.rules.backendRefs", backend, "name port")
        if not _is_name(backend.get("name")):
            yield f"a backend's name {backend.get('name')!r} is no DNS name"
        if not _is_port(backend.get("port")):
            yield f"a backend's port {backend.get('port')!r} is out of range"


def _unknown(where: str, value: Manifest, known: str) -> Problems:
    for key in value:
        if key not in known.split():
            yield f"{where}.{key} is not known"


def _between(where: str, items: list[Any], least: int, most: int) -> Problems:
    if not least <= len(items) <= most:
        yield f"{where} has {len(items)} items, where {least} to {most} are taken"


def _hosts(hosts: Iterable[str]) -> Problems:
    for host in hosts:
        if not _is_name(host) or "." not in host or max(len(part) for part in host.split(".")) > _LONGEST_LABEL:
            yield f"host {host!r} is no DNS name"


def _url_path(path: str) -> Problems:
    steps = path.split("/")
    if not _URL_PATH.fullmatch(path) or "//" in path or "." in steps or ".." in steps or "%2f" in path.lower():
        yield f"path {path!r} can't stand"


# the rules of pods ----------------------------------------------------------------------------------------------------


def _template(manifest: Manifest) -> Problems:
    template = manifest["spec"]["template"]
    yield from _metadata(template["metadata"], of_template=True)
    pod = template["spec"]
    claims = [claim["metadata"]["name"] for claim in manifest["spec"].get("volumeClaimTemplates", [])]
    volumes = [volume["name"] for volume in pod.get("volumes", [])]
    yield from _twice(volumes, "volume")
    for volume in pod.get("volumes", []):
        yield from _volume(volume)
    containers = [*pod.get("initContainers", []), *pod["containers"]]
    yield from _twice((container["name"] for container in containers), "container")
    for container in containers:
        yield from _container(container, {*volumes, *claims})
    mounted = {mount["name"] for container in containers for mount in container.get("volumeMounts", [])}
    for name in sorted({*volumes, *claims} - mounted):
        yield f"volume {name!r} is mounted nowhere"
    yield from _placement(pod)
    if pod.get("terminationGracePeriodSeconds", 0) < 0:
        yield "terminationGracePeriodSeconds is below 0"


def _placement(pod: Manifest) -> Problems:
    yield from _labels(pod.get("nodeSelector", {}), "node selector")
    affinity = pod.get("affinity", {}).get("podAffinity", {})
    for term in affinity.get("requiredDuringSchedulingIgnoredDuringExecution", []):
        if not _is_qualified(term.get("topologyKey", "")):
            yield f"topology key {term.get('topologyKey')!r} is no qualified name"
        yield from _labels(term["labelSelector"]["matchLabels"], "affinity's selector")


def _volume(volume: Manifest) -> Problems:
    name = volume["name"]
    if not _is_label(name):
        yield f"volume {name!r} is no DNS label"
    if len(volume) != 2:
        yield f"volume {name!r} must have one source"
    items = (volume.get("configMap") or volume.get("secret") or {}).get("items", [])
    yield from _twice((item["path"] for item in items), f"path in volume {name!r}:")
    for item in items:
        if not _is_inner_path(item["path"]):
            yield f"volume {name!r} has a path that leads out: {item['path']!r}"
        if not 0 <= item.get("mode", 0) <= 0o777:
            yield f"volume {name!r} has a file mode out of range: {item['mode']}"


def _container(container: Manifest, volumes: set[str]) -> Problems:
    name, image = container["name"], container.get("image")
    if not _is_label(name):
        yield f"container {name!r} is no DNS label"
    if not image or image != image.strip():
        yield f"container {name!r} has the image {image!r}"
    ports = container.get("ports", [])
    yield from _twice(((port["containerPort"], port.get("protocol", "TCP")) for port in ports), "container port")
    for port in ports:
        if not _is_port(port["containerPort"]) or port.get("protocol", "TCP") not in _PROTOCOLS:
            yield f"container port {port} can't stand"
        if len(port.get("name", "")) > _LONGEST_CONTAINER_PORT_NAME:
            yield f"container port name {port['name']!r} is longer than {_LONGEST_CONTAINER_PORT_NAME}"
    yield from _mounts(container.get("volumeMounts", []), volumes)
    yield from _resources(container.get("resources", {}))
    yield from _identity(container.get("securityContext", {}))
    for kind in ("readinessProbe", "livenessProbe", "startupProbe"):
        if kind in container:
            yield from _probe(kind, container[kind])


def _mounts(mounts: list[Manifest], volumes: set[str]) -> Problems:
    yield from _twice((mount["mountPath"] for mount in mounts), "mount path")
    for mount in mounts:
        if not mount["mountPath"].startswith("/") or ":" in mount["mountPath"]:
            yield f"mount path {mount['mountPath']!r} can't stand"
        if mount["name"] not in volumes:
            yield f"mounts {mount['name']!r}, which is no volume of the pod"
        if "subPath" in mount and not _is_inner_path(mount["subPath"]):
            yield f"sub path {mount['subPath']!r} leads out of the volume"


def _resources(resources: Manifest) -> Problems:
    amounts = {kind: resources.get(kind, {}) for kind in ("requests", "limits")}
    for kind, named in amounts.items():
        for name, amount in named.items():
            if _quantity(amount) is None:
                yield f"{kind}.{name} is no quantity: {amount!r}"
    for name, amount in amounts["requests"].items():
        request, limit = _quantity(amount), _quantity(amounts["limits"].get(name))
        if request is not None and limit is not None and request > limit:
            yield f"requests {amount} of {name}, above its limit {amounts['limits'][name]}"


def _identity(context: Manifest) -> Problems:
    for key in ("runAsUser", "runAsGroup"):
        if not 0 <= context.get(key, 0) <= _HIGHEST_ID:
            yield f"{key} {context[key]} is out of range"


def _probe(kind: str, probe: Manifest) -> Problems:
    handlers = [key for key in ("exec", "httpGet", "tcpSocket", "grpc") if key in probe]
    if len(handlers) != 1:
        yield f"{kind} must have one handler, not {len(handlers)}"
    if "exec" in probe and not probe["exec"].get("command"):
        yield f"{kind} runs no command"
    if "httpGet" in probe and not (probe["httpGet"].get("path") and _is_port(probe["httpGet"].get("port"))):
        yield f"{kind} asks for no path and port"
    for key, least in (
        ("periodSeconds", 1),
        ("timeoutSeconds", 1),
        ("failureThreshold", 1),
        ("initialDelaySeconds", 0),
    ):
        if probe.get(key, least) < least:
            yield f"{kind}.{key} is {probe[key]}"
    if kind != "readinessProbe" and probe.get("successThreshold", 1) != 1:
        yield f"{kind}.successThreshold must be 1"


# the rules of objects together ----------------------------------------------------------------------------------------


def _set_problems(objects: list[Manifest]) -> Problems:
    """What names something that is not among the objects, or is there twice."""
    by_name = {(manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in objects}
    yield from _twice(map(_title, objects), "object")
    yield from _twice((str(hosts) for manifest in objects for hosts in _addresses(manifest)), "address")
    for manifest in objects:
        for problem in _references(manifest, by_name):
            yield f"{_title(manifest)}: {problem}"


def _addresses(manifest: Manifest) -> Iterator[str]:
    spec = manifest.get("spec", {})
    if manifest["kind"] == "Ingress":
        yield from (f"{rule['host']}{path['path']}" for rule in spec["rules"] for path in rule["http"]["paths"])
    elif manifest["kind"] == "HTTPRoute":
        matches = [match["path"]["value"] for rule in spec["rules"] for match in rule["matches"]]
        yield from (f"{host}{path}" for host in spec["hostnames"] for path in matches)


Named = Mapping[tuple[str, str], Manifest]


def _references(manifest: Manifest, by_name: Named) -> Problems:
    spec = manifest.get("spec", {})
    if manifest["kind"] == "StatefulSet" and ("Service", spec["serviceName"]) not in by_name:
        yield f"serviceName {spec['serviceName']!r} is no Service"
    for name, port in _backends(manifest):
        service = by_name.get(("Service", name))
        if service is None:
            yield f"leads to {name!r}, which is no Service"
        elif port not in [row["port"] for row in service["spec"].get("ports", [])]:
            yield f"leads to port {port}, which Service {name!r} does not have"
    if manifest["kind"] == "Service":
        templates = [template for found_object in by_name.values() if (template := _template_of(found_object))]
        chosen = [t for t in templates if spec["selector"].items() <= t["metadata"]["labels"].items()]
        if len(chosen) != 1:
            yield f"selects the pods of {len(chosen)} workloads"
    if template := _template_of(manifest):
        yield from _pod_references(template["spec"], by_name)


def _template_of(manifest: Manifest) -> Manifest | None:
    """The pod template of a workload; a CronJob's is that of its Jobs."""
    spec = manifest.get("spec", {})
    found: Manifest | None = spec.get("jobTemplate", {}).get("spec", spec).get("template")
    return found


def _backends(manifest: Manifest) -> Iterator[tuple[str, int]]:
    spec = manifest.get("spec", {})
    if manifest["kind"] == "Ingress":
        for path in (path for rule in spec["rules"] for path in rule["http"]["paths"]):
            yield path["backend"]["service"]["name"], path["backend"]["service"]["port"]["number"]
    elif manifest["kind"] == "HTTPRoute":
        for backend in (backend for rule in spec["rules"] for backend in rule["backendRefs"]):
            yield backend["name"], backend["port"]


def _pod_references(pod: Manifest, by_name: Named) -> Problems:
    for container in pod["containers"]:
        for source in container.get("envFrom", []):
            name = source["secretRef"]["name"]
            # A deploy alone makes the Secret of a provider.
            if ("Secret", name) not in by_name and not name.endswith("-provided"):
                yield f"takes its environment from {source['secretRef']['name']!r}, which is no Secret"
    for volume in pod.get("volumes", []):
        claim = volume.get("persistentVolumeClaim", {}).get("claimName")
        if claim and ("PersistentVolumeClaim", claim) not in by_name:
            yield f"mounts the claim {claim!r}, which is not there"
        for source, name, kind in (("configMap", "name", "ConfigMap"), ("secret", "secretName", "Secret")):
            mounted = volume.get(source, {})
            found = by_name.get((kind, mounted.get(name)), {})
            if not found and volume["name"].startswith(("platform-config-", "platform-secret-")):
                continue  # an external object
            held = {**found.get("data", {}), **found.get("binaryData", {})}
            for item in mounted.get("items", []):
                if item["key"] not in held:
                    yield f"mounts the key {item['key']!r}, which no {kind} holds"


# grammars -------------------------------------------------------------------------------------------------------------


def _is_label(text: Any) -> bool:
    return isinstance(text, str) and len(text) <= _LONGEST_LABEL and _LABEL.fullmatch(text) is not None


def _is_name(text: Any) -> bool:
    return (
        isinstance(text, str)
        and len(text) <= _LONGEST_NAME
        and all(_LABEL.fullmatch(part) is not None for part in text.split("."))
    )


def _is_qualified(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    if slash and not _is_name(prefix):
        return False
    return len(name) <= _LONGEST_LABEL and _QUALIFIED.fullmatch(name) is not None


def _is_label_value(text: Any) -> bool:
    if not isinstance(text, str) or len(text) > _LONGEST_LABEL:
        return False
    return not text or _QUALIFIED.fullmatch(text) is not None


def _is_port(number: Any) -> bool:
    return isinstance(number, int) and 1 <= number <= _HIGHEST_PORT


def _is_inner_path(path: str) -> bool:
    return bool(path) and not path.startswith("/") and ".." not in path.split("/")


_FACTORS = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    "k": Decimal(1000),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("MGTPE", start=2)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}


def _quantity(text: Any) -> Decimal | None:
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    return Decimal(match[1]) * _FACTORS[match[2] or ""] if match else None


def _twice(values: Iterable[Any], what: str) -> Problems:
    for value, count in Counter(values).items():
        if count > 1:
            yield f"{what} {value!r} is there {count} times"


def _network_policy(manifest: Manifest) -> Problems:
    spec = manifest["spec"]
    types = spec.get("policyTypes", [])
    if not types:
        yield "has no policyTypes"
    for kind, field in (("Ingress", "ingress"), ("Egress", "egress")):
        if field in spec and kind not in types:
            yield f"has {field} without the type {kind}"


def _autoscaler(manifest: Manifest) -> Problems:
    spec = manifest["spec"]
    if not 1 <= spec.get("minReplicas", 1) <= spec["maxReplicas"]:
        yield "has no range of replicas"
    if not spec.get("metrics"):
        yield "has no metrics"


def _cron_job(manifest: Manifest) -> Problems:
    """The rules of its Jobs hold for their template; their names have eleven characters more."""
    spec = manifest["spec"]
    if len(manifest["metadata"]["name"]) > _LONGEST_CRON_JOB:
        yield f"name of more than {_LONGEST_CRON_JOB} characters"
    job = {"kind": "Job", "metadata": manifest["metadata"], "spec": spec["jobTemplate"]["spec"]}
    for rule in _RULES["Job"]:
        yield from rule(job)


Rule = Callable[[Manifest], Iterable[str]]

_RULES: Mapping[str, tuple[Rule, ...]] = {
    "Deployment": (_named_as_label, _counts("replicas"), _selector, _always_restarted, _template),
    "StatefulSet": (_named_as_label, _counts("replicas"), _selector, _always_restarted, _claim_templates, _template),
    "DaemonSet": (_named_as_label, _selector, _always_restarted, _template),
    "Job": (_named_as_label, _counts("backoffLimit", "completions", "parallelism"), _job, _template),
    "CronJob": (_cron_job,),
    "Service": (_service,),
    "PersistentVolumeClaim": (_claim,),
    "ConfigMap": (_content,),
    "Secret": (_content,),
    "Ingress": (_ingress,),
    "HTTPRoute": (),
    "NetworkPolicy": (_network_policy,),
    "HorizontalPodAutoscaler": (_autoscaler,),
}
