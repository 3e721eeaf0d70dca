"""Parse the whole definition: services, volumes, endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from composeplat.compose.endpoint_model import Endpoint, Route
from composeplat.compose.file_model import FileKind
from composeplat.compose.keys import SECTIONS
from composeplat.compose.model import NEVER, DependencyCondition, Project, Service, Volume
from composeplat.compose.nodes import Mapping, Node, Scalar, Sequence
from composeplat.compose.origins import route_path
from composeplat.compose.parse.annotations import parse_annotations
from composeplat.compose.parse.external import parse_external
from composeplat.compose.parse.fields import Context, Field, Section, open_section
from composeplat.compose.parse.file_objects import parse_file_objects
from composeplat.compose.parse.jobs import parse_jobs
from composeplat.compose.parse.models import parse_models
from composeplat.compose.parse.networks import parse_networks, with_further_names
from composeplat.compose.parse.patches import parse_patches
from composeplat.compose.parse.providers import is_provided, parse_providers, with_provided
from composeplat.compose.parse.service import parse_service
from composeplat.compose.parse.volume_names import with_joined_volumes
from composeplat.compose.port_values import parse_port_number
from composeplat.compose.rollout_model import Mode
from composeplat.compose.values import BadValue, parse_volume_size
from composeplat.diagnostics import Span, dotted, join_some, quoted
from composeplat.names import is_dns_name

_MAX_ROUTE_CHARS = 1024
_MAX_STRAY = 8
_ACCESS_MODES = ("ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod")


def parse_project(node: Node, ctx: Context) -> Project:
    ctx.origins.put((), node)
    whole = Field(ctx, node, ())
    if not isinstance(node, Mapping):
        message = "the definition must be a mapping with a key 'services'"
        ctx.report.add("invalid-type", node.span, (), message)
        return Project(services={}, volumes={})
    others = _without_build_secrets(node, ctx)
    ctx.awaited.update(_awaited_services(node.get("services")))
    section = open_section(whole, _without_stray_services(node if ctx.full else others), "")
    _check_platform_settings(section)
    services, providers = _services(section), parse_providers(section)
    jobs = parse_jobs(section, {*services, *providers})
    project = Project(
        services=with_provided({**services, **jobs}, providers),
        volumes=_volumes(section),
        endpoints=_endpoints(section),
        inactive=ctx.inactive,
        networks=parse_networks(section) if ctx.full else {},
        configs=parse_file_objects(section, FileKind.CONFIG),
        secrets=parse_file_objects(section, FileKind.SECRET),
        models=parse_models(section),
        providers=providers,
    )
    return with_joined_volumes(project, ctx)


def _check_platform_settings(section: Section) -> None:
    """Report wrong values of ``x-platform``, which was read before the model."""
    settings = section.section("x-platform", "x-platform")
    if settings is not None:
        settings.boolean("full", default=False)


def _without_build_secrets(node: Mapping, ctx: Context) -> Mapping:
    """Record the top-level secrets, and drop those that a build uses from the node: they have an effect."""
    declared = node.get("secrets")
    if not isinstance(declared, Mapping):
        return node
    ctx.secrets.update({name: entry for name, (_, entry) in declared.entries.items()})
    named = set(_build_secret_names(node.get("services")))
    left = {name: entry for name, entry in declared.entries.items() if name not in named}
    entries = {key: entry for key, entry in node.entries.items() if key != "secrets" or left}
    if left:
        entries["secrets"] = (node.key("secrets"), Mapping(declared.span, left, declared.tag, declared.size))
    return Mapping(node.span, entries, node.tag, node.size)


def _build_secret_names(services: Node | None) -> Iterator[str]:
    for _, service in services if isinstance(services, Mapping) else ():
        build = service.get("build") if isinstance(service, Mapping) else None
        names = build.get("secrets") if isinstance(build, Mapping) else None
        for item in names if isinstance(names, Sequence) else ():
            source = item.get("source") if isinstance(item, Mapping) else item
            if isinstance(source, Scalar):
                yield source.text


def _awaited_services(services: Node | None) -> Iterator[str]:
    """Yield the services that others wait for to complete."""
    for _, service in services if isinstance(services, Mapping) else ():
        found = service.get("depends_on") if isinstance(service, Mapping) else None
        for name, dependency in found if isinstance(found, Mapping) else ():
            condition = dependency.get("condition") if isinstance(dependency, Mapping) else None
            if isinstance(condition, Scalar) and condition.text == DependencyCondition.COMPLETED:
                yield name.text


def _services(section: Section) -> dict[str, Service]:
    whole = section.get("services")
    services: dict[str, Service] = {}
    for name, place in whole.members() if whole else ():
        if is_provided(place):
            continue
        # A service that can't be read is kept as an empty one, so that references to it are not reported as well.
        services[name] = parse_service(name, place) or Service(name=name)
    found = section.fields.get("services")
    has_jobs = section.get("jobs") is not None
    if has_jobs and found is None:
        return {}
    if found is None or found.is_null or (isinstance(found.node, Mapping) and not found.node.entries):
        span, hint = _stray_services(section.whole, found)
        hint = hint or "add a service such as  web: {image: nginx}"
        message = "the definition has no services"
        if profiles := sorted({profile for own in section.whole.ctx.inactive.values() for profile in own}):
            message = "the definition has no service whose profile is on"
            hint = f"turn a profile on with --profile or COMPOSE_PROFILES: {', '.join(profiles[:_MAX_STRAY])}"
        section.whole.ctx.report.add("no-services", span, ("services",), message, hint)
    services = with_further_names(services)
    return _with_awaited_jobs(services, whole) if whole else services


def _with_awaited_jobs(services: dict[str, Service], whole: Field) -> dict[str, Service]:
    """Make a service without ``restart`` a Job if others wait for it to complete: nothing else can."""
    waiting: dict[str, str] = {}
    for service in services.values():
        for dependency in service.depends_on:
            if dependency.condition is DependencyCondition.COMPLETED:
                waiting.setdefault(dependency.service, service.name)
    jobs: dict[str, Service] = {}
    for name, place in whole.members():
        if name in waiting and name in services and not sets_restart(place.node) and _is_plain(services[name]):
            jobs[name] = replace(services[name], restart=NEVER)
            message = f"becomes a Job: '{waiting[name]}' waits for it to complete, and it sets no 'restart'"
            key = whole.ctx.origins.key_at(*place.path)
            whole.ctx.report.add(
                "inferred-job", key, place.path, f"{dotted(place.path)} {message}", "set restart: 'no'"
            )
    return {**services, **jobs}


def _is_plain(service: Service) -> bool:
    return service.scheduling.mode is Mode.REPLICATED and not service.scheduling.ends


def sets_restart(service: Node | None) -> bool:
    """Whether a service says when it is restarted; a key without a value says nothing."""
    deploy = service.get("deploy") if isinstance(service, Mapping) else None
    found = [
        section.get(key)
        for section, key in ((service, "restart"), (deploy, "restart_policy"))
        if isinstance(section, Mapping)
    ]
    return any(node is not None and not (isinstance(node, Scalar) and node.is_null) for node in found)


def _without_stray_services(node: Mapping) -> Mapping:
    """Drop services at the top level of a definition that has no others: one error names them all."""
    services = node.get("services")
    if isinstance(services, Mapping) and services.entries:
        return node
    entries = {key: entry for key, entry in node.entries.items() if not _looks_like_service(entry[1])}
    return Mapping(node.span, entries, node.tag, node.size)


def _looks_like_service(node: Node) -> bool:
    return isinstance(node, Mapping) and any(key in node for key in ("image", "build", "extends"))


def _stray_services(whole: Field, services: Field | None) -> tuple[Span, str]:
    """Find services at the top level: not indented, or as in files of Compose's first version."""
    entries = whole.node if isinstance(whole.node, Mapping) else ()
    stray = [key for key, node in entries if _looks_like_service(node)]
    if not stray and services is not None:
        return services.span, ""
    if not stray:
        unknown = [key for key, _ in entries if key.text not in SECTIONS[""]]
        typos = ((key.span, whole.ctx.report.near(key.text, ("services",))) for key in unknown)
        return next((found for found in typos if found[1]), (whole.span, ""))
    names = join_some([quoted(key.text) for key in stray], _MAX_STRAY)
    looks = "looks like a service: put it" if len(stray) == 1 else "look like services: put them"
    first_format = "" if services else "; the file has Compose's first format"
    return stray[0].span, f"{names} {looks} under 'services:', indented{first_format}"


# volumes --------------------------------------------------------------------------------------------------------------


def _volumes(section: Section) -> dict[str, Volume]:
    whole = section.get("volumes")
    volumes: dict[str, Volume] = {}
    for name, place in whole.members() if whole else ():
        if place.is_null:
            volumes[name] = Volume(name=name)
            continue
        inner = place.section("volumes.*")
        volumes[name] = _read_volume(name, inner) if inner is not None else Volume(name=name)
    return volumes


def _parse_class(text: str) -> str:
    if not is_dns_name(text):
        raise BadValue("must be the name of a storage class: lower-case letters, digits, '-' and '.'")
    return text


def _read_volume(name: str, section: Section) -> Volume:
    options = section.section("driver_opts", "volumes.*.driver_opts")
    sizes = [s.optional("size", parse_volume_size) for s in (options, section) if s]
    classes = [s.optional("class", _parse_class) for s in (options, section) if s]
    for key, values in (("size", sizes), ("class", classes)):
        if len({v for v in values if v is not None}) > 1:
            section.fields[key].report(
                "overridden-key", f"differs from driver_opts.{key}, which wins", "keep one of them"
            )
    mode = section.get("x-access-mode")
    external, object_name = parse_external(section, "volumes")
    return Volume(
        name=name,
        size=next((size for size in sizes if size is not None), 1024**3),
        storage_class=next((name for name in classes if name), ""),
        access_mode=(mode.choice(*_ACCESS_MODES) if mode else None) or "ReadWriteOnce",
        external=external,
        object_name=object_name,
        labels=parse_annotations(section, "labels"),
        patches=parse_patches(section, "volumes.*.x-kubernetes"),
    )


# endpoints ------------------------------------------------------------------------------------------------------------


def _endpoints(section: Section) -> tuple[Endpoint, ...]:
    whole = section.get("endpoints")
    if whole is None:
        return ()
    if isinstance(whole.node, Sequence):
        return (Endpoint(name="", routes=_routes("", whole)),)
    if not isinstance(whole.node, Mapping):
        whole.report_type("a list of routes, a mapping of names to routes, or a mapping with 'rules'")
        return ()
    if "rules" in whole.node:
        extended = _extended("", whole)
        return (extended,) if extended else ()
    endpoints: list[Endpoint] = []
    for name, place in whole.members():
        if isinstance(place.node, Mapping):
            extended = _extended(name, place)
            endpoints += [extended] if extended else []
        else:
            endpoints.append(Endpoint(name=name, routes=_routes(name, place)))
    return tuple(endpoints)


def _extended(name: str, whole: Field) -> Endpoint | None:
    section = whole.section("endpoints")
    rules = section.get("rules") if section else None
    if section is None or rules is None:
        whole.report("missing-key", "must have 'rules', a list of routes")
        return None
    return Endpoint(
        name=name,
        routes=_routes(name, rules),
        labels=section.mapping("labels"),
        annotations=section.mapping("annotations"),
        patches=parse_patches(section, "endpoints.x-kubernetes"),
    )


def _routes(name: str, whole: Field) -> tuple[Route, ...]:
    routes: list[Route] = []
    for item in whole.items("a list of routes, each with path, service and port", suggests_list=False):
        route = _read_route(item)
        if route is not None:
            item.ctx.origins.put_alias(route_path(name, len(routes)), item.node, item.path)
            routes.append(route)
    return tuple(routes)


def _read_route(item: Field) -> Route | None:
    section = item.section("endpoints.*")
    if section is None:
        return None
    missing = [key for key in ("path", "service", "port") if section.get(key) is None]
    if missing:
        names = ", ".join(f"'{key}'" for key in missing)
        item.report("missing-key", f"must have {names}", "a route has path, service and port")
    path = section.optional("path", _parse_route_path)
    port = section.optional("port", parse_port_number)
    service = section.optional("service", _parse_service_name)
    return Route(path=path, service=service, port=port) if path and port and service else None


def _parse_service_name(text: str) -> str:
    if not text:
        raise BadValue("must be the name of a service")
    return text


def _parse_route_path(text: str) -> str:
    if not text.startswith("/"):
        raise BadValue("must be a path that begins with '/'")
    if len(text) > _MAX_ROUTE_CHARS:
        raise BadValue(f"must be a path of at most {_MAX_ROUTE_CHARS} characters")
    if (
        not re.fullmatch(r"/(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*", text)
        or "//" in text
        or "/../" in f"{text}/"
        or "/./" in f"{text}/"
        or "%2f" in text.lower()
    ):
        raise BadValue("must be a path of an address, without '//', '/./', '/../', '%2F', '?' or spaces")
    return text
