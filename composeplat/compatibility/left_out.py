"""The services that a cluster does without: those that Docker Compose does not start, and tools for Docker itself.

Owns which services these are, and the reason that is written beside each.
Without the socket of Docker, such a tool ends at once or has nothing to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from composeplat.compose.load import Loaded
from composeplat.compose.load.profiles import active_services, read_profiles
from composeplat.compose.model import HOST, Mount, Service
from composeplat.compose.nodes import Scalar, Sequence, find_node
from composeplat.compose.options import split_names
from composeplat.compose.system_paths import ENGINE_SOCKETS
from composeplat.diagnostics import Report
from composeplat.names import clean
from composeplat.plan import Plan
from composeplat.registry.image_reference import ImageReference

OF_A_PROFILE = "Docker Compose starts it only with its profile."
_FOR_DOCKER = "A tool for Docker, whose socket no cluster has."
_PROXY_FOR_DOCKER = "It finds services by the socket of Docker, which no cluster has: they have URLs of their own."
#: The ends of the names of images that do nothing without Docker.
_TOOLS = re.compile(
    r"(?:^|/)(?:watchtower|ouroboros|diun|autoheal|deunhealth|dozzle|portainer(?:-ce|-ee)?|portainer/agent|dockge|yacht"
    r"|docker-socket-proxy|socket-proxy|docker-gen|cadvisor)$"
)
_PROXIES = re.compile(
    r"(?:^|/)(?:traefik|nginx-proxy|acme-companion|(?:docker-)?letsencrypt-nginx-proxy-companion|caddy-docker-proxy)$"
)
#: The files of a proxy that are not its routes: certificates, and logins for them.
_CERTIFICATES = re.compile(r"acme|cert|letsencrypt|ssl", re.IGNORECASE)


def not_started(loaded: Loaded, plan: Plan) -> frozenset[str]:
    """Return the services that Docker Compose does not start: of profiles that are not chosen, and that none needs.

    None that has a route: who gives it an address wants it here, and the route would lead nowhere.
    Full mode does not start them either. Where Compose would start no service at all, a profile is always chosen.
    """
    if loaded.settings.full:
        return frozenset()
    chosen = split_names(loaded.variables.lookup("COMPOSE_PROFILES"))
    # Jobs have profiles too, and are in full mode alone.
    known = loaded.project.services
    profiles = {name: own for name, own in read_profiles(loaded.document, Report()).items() if name in known}
    started = active_services(profiles, chosen)
    wanted = {*started, *_routed(loaded)}
    return frozenset(profiles) - plan.select_services(wanted) if started else frozenset()


def docker_tools(loaded: Loaded, unstarted: frozenset[str] = frozenset()) -> Mapping[str, str]:
    """Return the services that are tools for Docker, each with the reason to leave it out; none that others need.

    A project that starts nothing else keeps them.
    """
    found: dict[str, str] = {}
    for service in loaded.project.services.values():
        name = ImageReference.parse(service.image).repository
        if not any(map(_is_socket, service.mounts)):
            continue
        if _TOOLS.search(name):
            found[service.name] = _FOR_DOCKER
        elif _PROXIES.search(name) and not _has_routes_of_its_own(service):
            found[service.name] = _PROXY_FOR_DOCKER
    needed = {other for name in loaded.project.services if name not in found for other in _needed(loaded, name)}
    needed |= _routed(loaded)
    kept = needed if loaded.project.services.keys() - found.keys() - unstarted else needed.union(found)
    return {name: reason for name, reason in found.items() if name not in kept}


def _routed(loaded: Loaded) -> set[str]:
    """Return the services that the routes of the file's endpoints lead to."""
    routed = {clean(route.service) for endpoint in loaded.project.endpoints for route in endpoint.routes}
    return {name for name in loaded.project.services if clean(name) in routed}


def _has_routes_of_its_own(service: Service) -> bool:
    """Whether a proxy also reads routes from files."""
    settings = " ".join((*(service.command or ()), *service.variables)).lower()
    folders = (mount for mount in service.mounts if mount.kind == HOST and not _is_socket(mount))
    return bool(re.search(r"providers[._]file", settings)) or any(
        not _CERTIFICATES.search(f"{mount.source} {mount.target}") for mount in folders
    )


def _is_socket(mount: Mount) -> bool:
    return PurePosixPath(mount.source).name in ENGINE_SOCKETS


def _needed(loaded: Loaded, name: str) -> Iterator[str]:
    """Yield the services that a service waits for, or shares volumes or a network with."""
    yield from (dependency.service for dependency in loaded.project.services[name].depends_on)
    mode = find_node(loaded.document, "services", name, "network_mode")
    if isinstance(mode, Scalar):
        yield mode.text.removeprefix("service:")
    for key in ("links", "volumes_from"):
        listed = find_node(loaded.document, "services", name, key)
        items = listed.items if isinstance(listed, Sequence) else []
        yield from (item.text.partition(":")[0] for item in items if isinstance(item, Scalar))
