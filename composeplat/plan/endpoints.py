"""Endpoints: the HTTPS routes of the definition and of public ports.

Owns which ports are public and under which host, and the Ingress or HTTPRoute of each endpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from composeplat.compose.endpoint_model import Endpoint, Route
from composeplat.compose.model import Port, Service
from composeplat.compose.options import Settings
from composeplat.compose.origins import Checker, port_path, route_path
from composeplat.compose.placeholders import LateNumber, has_placeholder, replace_placeholders
from composeplat.diagnostics import PathKey, dotted, join_some
from composeplat.names import (
    LABEL_PREFIX,
    clean,
    endpoint_host,
    is_dns_name,
    is_key,
    is_label_key,
    is_label_value,
    make_label,
    shorten,
    split_gateway,
)
from composeplat.plan.desired import DesiredObject, EndpointPlan, Manifest
from composeplat.plan.expose import is_exposed
from composeplat.plan.identity import Identity
from composeplat.plan.limits import check_annotations
from composeplat.plan.never_public import NEVER_PUBLIC
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from composeplat.plan.services import service_ports
from composeplat.system.records import record

#: Ports that are registered for another protocol than HTTP; ``ports`` makes them public with a warning.
NOT_HTTP = {
    21: "FTP", 22: "SSH", 23: "Telnet", 25: "SMTP", 53: "DNS", 88: "Kerberos", 110: "POP3", 143: "IMAP", 389: "LDAP",
    465: "SMTP", 587: "SMTP", 636: "LDAP", 853: "DNS", 993: "IMAP", 995: "POP3", 1883: "MQTT", 2181: "ZooKeeper",
    2222: "SSH", 3389: "RDP", 4222: "NATS", 5672: "AMQP", 5671: "AMQP", 5900: "VNC", 6667: "IRC", 8883: "MQTT",
    9092: "Kafka", 11211: "memcached", 139: "SMB", 445: "SMB", 514: "syslog", 554: "RTSP", 873: "rsync",
    1935: "RTMP", 5044: "Beats", 5060: "SIP", 5061: "SIP", 5222: "XMPP", 5269: "XMPP", 6650: "Pulsar", 8554: "RTSP",
    9735: "Lightning", 12201: "GELF", 19092: "Kafka", 24224: "Fluentd", 25565: "Minecraft", 25575: "Minecraft's RCON",
    26257: "PostgreSQL", 26379: "Redis Sentinel", 29092: "Kafka", 30303: "Ethereum", 61613: "STOMP",
    61616: "ActiveMQ", 64738: "Mumble",
}  # fmt: skip

#: The usual ports of TLS in a container, which a route does not speak to it: it ends TLS, and forwards plain HTTP.
TLS_PORTS = (443, 8443, 9443)

_MAX_RULES = 16
_MAX_MATCHES = 64
_MAX_MATCHES_OF_ALL = 128
_MAX_LISTED_PORTS = 8


@record(kw_only=True)
class EndpointSpec:
    """An endpoint before it is planned: from a public port, or from the ``endpoints`` key."""

    name: str
    routes: tuple[Route, ...]
    origin: PathKey
    labels: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()


def plan_endpoints(checker: Checker, settings: Settings, identity: Identity) -> tuple[EndpointPlan, ...]:
    services = checker.project.services
    specs = [spec for service in services.values() for spec in _port_endpoints(checker, service, settings)]
    specs += [
        spec for endpoint in checker.project.endpoints for spec in _declared_endpoints(checker, endpoint, settings)
    ]
    taken: dict[str, EndpointSpec] = {}
    for endpoint in specs:
        if endpoint.name in taken:
            other = dotted(checker.origins.written_at(taken[endpoint.name].origin))
            hint = "rename the endpoint, or map the port privately: '80' for '8080:80'"
            checker.add("name-conflict", endpoint.origin, f"would have the same name and address as {other}", hint)
        taken.setdefault(endpoint.name, endpoint)
    return tuple(_plan_endpoint(checker, endpoint, settings, identity) for endpoint in taken.values())


def _port_endpoints(checker: Checker, service: Service, settings: Settings) -> list[EndpointSpec]:
    """Return the endpoints of public ports, named by the service, and by the port if it has several."""
    ports: dict[int, Port] = {}
    for port in _published_ports(service):
        if _may_be_public(checker, service, port):
            ports.setdefault(port.target, port)
    if service.public and not service.ports and not _has_unread_ports(checker, service):
        path = ("services", service.name, "public")
        checker.add(
            "no-effect",
            path,
            "has no effect, as the service names no port",
            "name one under 'ports' or 'expose'",
        )
    if ports and not settings.domain:
        for port in ports.values():
            message = "is public, but gets no address, as no domain is known"
            checker.add(
                "port-without-url", port_path(service.name, port), message, "give --domain or set PLATFORM_DOMAIN"
            )
        return []
    name = clean(service.name)
    return [
        EndpointSpec(
            name=name if len(ports) == 1 else shorten(f"{name}-{target}"),
            routes=(Route(path="/", service=service.name, port=target),),
            origin=port_path(service.name, port),
        )
        for target, port in ports.items()
    ]


def _published_ports(service: Service) -> list[Port]:
    """Return the published ports; ``public: true`` adds other ports, and exposed ports if there are no others."""
    own = [port for port in service.ports if not port.exposed]
    return (own or list(service.ports)) if service.public else [port for port in own if port.published is not None]


def _has_unread_ports(checker: Checker, service: Service) -> bool:
    """Check for ports with errors: an error about a missing port would be a consequence of them."""
    whole = checker.report.has_error_at("services", service.name)
    return whole or checker.is_unread(service.name, "ports", "expose")


def _may_be_public(checker: Checker, service: Service, port: Port) -> bool:
    if isinstance(port.target, LateNumber):
        hint = "give a plain number, or map the port privately: '80' for '8080:80'"
        checker.add("invalid-value", port_path(service.name, port), "is public or not by its number, an output", hint)
        return False
    routable = port.protocol == "tcp"
    listed = routable and port.target in NEVER_PUBLIC
    if is_exposed(service, port.target, port.protocol) and (listed or not routable or port.target in NOT_HTTP):
        return False
    if port.loopback:
        hint = _ROUTE if listed else "for a URL, leave the host address out" if routable else ""
        message = "is bound to loopback: it stays private and gets no URL"
        checker.add("loopback-port", port_path(service.name, port), message, hint)
    elif listed:
        message = "is not made public: it is on the list of ports of databases and debuggers"
        checker.add("sensitive-port", port_path(service.name, port), message, _ROUTE)
    elif not routable:
        message = f"is not public: HTTPS can't carry {port.protocol.upper()}, and the cluster has no other route in"
        checker.add(
            "sensitive-port",
            port_path(service.name, port),
            message,
            f"to expose it: {_ways_to_expose(checker, service, port)}",
        )
    elif port.target in NOT_HTTP:
        protocol = "the protocol of this port" if _is_substituted(checker, service, port) else NOT_HTTP[port.target]
        message = f"gets an HTTPS route, which can't carry {protocol}"
        hint = f"publish no port to keep it private; to expose it: {_ways_to_expose(checker, service, port)}"
        checker.add("non-http-port", port_path(service.name, port), message, hint)
    elif port.target in TLS_PORTS or port.app_protocol == "https":
        message = "gets an HTTPS route, which forwards plain HTTP to the container, and this port probably expects TLS"
        checker.add("non-http-port", port_path(service.name, port), message, _PLAIN)
    return routable and not port.loopback and not listed


_PLAIN = "publish the port on which the container serves plain HTTP instead: the route has a certificate of its own"
_ROUTE = "use 'endpoints' to give it a route"


def _ways_to_expose(checker: Checker, service: Service, port: Port) -> str:
    """Return the key and a kubectl command that expose a port, with others that need the same object.

    By its own label, no deploy deletes the object.
    """
    alike = (o for o in service.ports if (o.published is not None or service.public) and _needs_own_service(o, port))
    texts = ("PORT" if _is_substituted(checker, service, other) else str(other.target) for other in alike)
    numbers = list(dict.fromkeys(islice(texts, _MAX_LISTED_PORTS + 1)))
    if len(numbers) > _MAX_LISTED_PORTS:
        numbers[-1] = "…"
    name, protocol = clean(service.name), port.protocol.upper()
    return (
        f"x-expose in full mode (--full), or kubectl expose service {name} --name={name}-{port.protocol}"
        f" --type=LoadBalancer --protocol={protocol} --port={','.join(numbers)} --labels=by=hand"
    )


def _needs_own_service(port: Port, other: Port) -> bool:
    """Whether no HTTPS route can carry a port, and one Service can expose it with another such port."""
    is_http = port.protocol == "tcp" and (port.target not in NOT_HTTP or port.target in NEVER_PUBLIC)
    return port.protocol == other.protocol and port.exposed == other.exposed and not is_http and not port.loopback


def _declared_endpoints(checker: Checker, endpoint: Endpoint, settings: Settings) -> list[EndpointSpec]:
    origin: PathKey = ("endpoints", endpoint.name) if endpoint.name else ("endpoints",)
    active = [(i, route) for i, route in enumerate(endpoint.routes) if route.service not in checker.project.inactive]
    if not active:
        return []
    if not settings.domain:
        hint = "give --domain or set PLATFORM_DOMAIN"
        checker.add("no-domain", ("endpoints",), "need a domain, and none is known", hint, at_key=True)
    name = make_label(endpoint.name) if endpoint.name else settings.environment
    if not name:
        checker.add("invalid-name", origin, "can't be made a host name", "use letters, digits and '-'", at_key=True)
        return []
    if endpoint.name and name != endpoint.name:
        message = f"becomes '{name}', which is its name in the cluster and in its address"
        checker.add("name-normalized", origin, message, f"name it '{name}'", at_key=True)
    paths: dict[str, Route] = {}
    for index, route in active:
        _check_route(checker, route, route_path(endpoint.name, index), paths)
    routes = tuple(route for _, route in active)
    given = {"labels": tuple(endpoint.labels.items()), "annotations": tuple(endpoint.annotations.items())}
    return [EndpointSpec(name=name, routes=routes, origin=origin, **given)]


def _check_route(checker: Checker, route: Route, origin: PathKey, paths: dict[str, Route]) -> None:
    service = checker.project.services.get(route.service)
    path, name = (checker.origins.shown(*checker.origins.written_at(origin), key) for key in ("path", "service"))
    if service is None:
        names = ", ".join(islice(checker.project.services, 8))
        checker.add(
            "undefined-service",
            origin,
            f"routes to a service that the definition does not have: {name}",
            f"services are: {names}",
        )
    elif (route.port, "tcp") not in service_ports(service) and not _has_unread_ports(checker, service):
        _report_undefined_port(checker, service, origin)
    # A slash at the end of a prefix means nothing to Kubernetes.
    other = paths.setdefault(route.path.rstrip("/"), route)
    is_ambiguous = (other.service, other.port) != (route.service, route.port)
    if other is not route and (other.path == route.path or is_ambiguous):
        message = f"has the same path as another route of this endpoint: {path}"
        checker.add("name-conflict", origin, message, "remove one of them")


def _report_undefined_port(checker: Checker, service: Service, origin: PathKey) -> None:
    route = checker.origins.written_at(origin)
    shown, name = (checker.origins.shown(*route, key) for key in ("port", "service"))
    known = service_ports(service).items()
    ports = dict.fromkeys(
        _shown_port(checker, service, number, port) for (number, protocol), port in known if protocol == "tcp"
    )
    listed = join_some(ports, _MAX_LISTED_PORTS)
    message = f"routes to port {shown}, which service {name} does not have"
    has = f"it has {listed}" if listed else "it names no TCP port"
    checker.add("undefined-port", origin, message, f"{has}; add the port to the service's 'ports' or 'expose'")


def _shown_port(checker: Checker, service: Service, number: int, port: Port) -> str:
    """Return the number of a port, or its text in the file if that has a variable."""
    shown = checker.origins.shown(*port_path(service.name, port))
    return shown if _is_substituted(checker, service, port) else str(number)


def _is_substituted(checker: Checker, service: Service, port: Port) -> bool:
    """Check for a variable in a port: then no message may have its number."""
    return checker.origins.is_substituted(*port_path(service.name, port))


def _plan_endpoint(checker: Checker, spec: EndpointSpec, settings: Settings, identity: Identity) -> EndpointPlan:
    host, shortened = endpoint_host(spec.name, settings.namespace, settings.domain)
    if has_placeholder(settings.namespace):
        # Its length is not known.
        host, shortened = f"{spec.name}-{settings.namespace}.{settings.domain}", False
    if shortened:
        checker.add("hostname-truncated", spec.origin, "has a host name too long for DNS; it is shortened, with a hash")
    if settings.domain and not is_dns_name(replace_placeholders(host, "x")):
        checker.add("invalid-name", spec.origin, "has a host name longer than DNS allows", "use a shorter domain")
    labels, annotations = _split_labels(checker, spec)
    check_annotations(checker, spec.origin, annotations)
    routes = sorted(spec.routes, key=lambda route: (-len(route.path), route.path))
    metadata = identity.metadata(spec.name, spec.name, annotations)
    metadata["labels"] = {**labels, **metadata["labels"]}
    make_object = _http_route if settings.gateway else _ingress
    manifest = make_object(metadata, host, routes, settings)
    if settings.gateway and (len(manifest["spec"]["rules"]) > _MAX_RULES or len(routes) > _MAX_MATCHES_OF_ALL):
        message = (
            "has more routes than an HTTPRoute holds: 16 rules of up to 64 paths to one port, and 128 paths in all"
        )
        checker.add("invalid-value", spec.origin, message, "divide it into several named endpoints")
    needs = tuple(dict.fromkeys(ResourceKey(ResourceKind.SERVICE, clean(route.service)) for route in spec.routes))
    addresses = tuple(
        (f"https://{host}{route.path if route.path != '/' else ''}", route.service, route.port) for route in spec.routes
    )
    desired = DesiredObject(key=ResourceKey(ResourceKind.ENDPOINT, spec.name), manifest=manifest, needs=needs)
    targets = tuple(dict.fromkeys((route.service, route.port) for route in spec.routes))
    return EndpointPlan(
        name=spec.name,
        service=spec.routes[0].service if spec.origin[0] == "services" else "",
        urls=tuple(dict.fromkeys(url for url, _, _ in addresses)),
        objects=(desired,),
        routes=targets,
        urls_by_service={
            service: tuple(dict.fromkeys(url for url, name, _ in addresses if name == service))
            for service, _ in targets
        },
        addresses=addresses,
    )


def _split_labels(checker: Checker, spec: EndpointSpec) -> tuple[dict[str, str], dict[str, str]]:
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    for name, value in spec.labels:
        path = (*spec.origin, "labels", name)
        if name.startswith(("app.kubernetes.io/", f"{LABEL_PREFIX}/")):
            checker.add("no-effect", path, "is a label that names the owner of the object, and can't be set")
        elif not is_label_key(name):
            checker.add("no-effect", path, "has a name that is invalid for a Kubernetes label, and is left out")
        elif is_label_value(replace_placeholders(value, "x")):
            labels[name] = value
        else:
            checker.add(
                "no-effect", path, "has a value that is invalid for a Kubernetes label, and becomes an annotation"
            )
            annotations[name] = value
    for name, value in spec.annotations:
        path = (*spec.origin, "annotations", name)
        if name.startswith(f"{LABEL_PREFIX}/"):
            checker.add("no-effect", path, "is an annotation of this tool, and can't be set")
        elif not is_key(name):
            checker.add("no-effect", path, "has a name that is invalid for a Kubernetes annotation, and is left out")
        else:
            annotations[name] = value
    return labels, annotations


def _ingress(metadata: Manifest, host: str, routes: Iterable[Route], settings: Settings) -> Manifest:
    tls: Manifest = {"hosts": [host]}
    if settings.tls_issuer:
        metadata.setdefault("annotations", {})["cert-manager.io/cluster-issuer"] = settings.tls_issuer
        tls["secretName"] = f"{metadata['name']}-tls"
    elif settings.tls_secret:
        tls["secretName"] = settings.tls_secret
    paths = [
        {
            "path": route.path,
            "pathType": "Prefix",
            "backend": {"service": {"name": clean(route.service), "port": {"number": route.port}}},
        }
        for route in routes
    ]
    spec: Manifest = {"ingressClassName": settings.ingress_class} if settings.ingress_class else {}
    spec.update(rules=[{"host": host, "http": {"paths": paths}}], tls=[tls])
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}


def certificate_names(endpoints: Iterable[EndpointPlan]) -> Iterator[tuple[str, str]]:
    """Yield the names of the Secrets that the Ingresses have their certificates from, with their endpoints."""
    for endpoint in endpoints:
        for tls in (tls for found in endpoint.objects for tls in found.manifest["spec"].get("tls", ())):
            if "secretName" in tls:
                yield tls["secretName"], endpoint.name


def split_batches(paths: list[str], size: int) -> Iterable[list[str]]:
    return (paths[start : start + size] for start in range(0, len(paths), size))


def _http_route(metadata: Manifest, host: str, routes: Iterable[Route], settings: Settings) -> Manifest:
    """Make an HTTPRoute with one rule for each target, as it may have few; gateways match the longest path first."""
    namespace, name, listener = split_gateway(settings.gateway)
    parent: Manifest = {"name": name, **({"namespace": namespace} if namespace else {})}
    # Without it, a listener for plain HTTP serves the route too.
    parent |= {"sectionName": listener} if listener else {}
    paths: dict[tuple[str, int], list[str]] = {}
    for route in routes:
        paths.setdefault((clean(route.service), route.port), []).append(route.path)
    rules = [
        {
            "matches": [{"path": {"type": "PathPrefix", "value": path}} for path in batch],
            "backendRefs": [{"name": service, "port": port}],
        }
        for (service, port), all_paths in paths.items()
        for batch in split_batches(all_paths, _MAX_MATCHES)
    ]
    spec: Manifest = {"parentRefs": [parent], "hostnames": [host], "rules": rules}
    return {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": metadata, "spec": spec}
