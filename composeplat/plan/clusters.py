"""Services that are the members of one cluster, such as three nodes of a database, each a service of its own.

Owns how they are recognized: the same image, and each names the other in its environment or command, by any of its
names.
Must not plan their Services. It is apart because it is the one rule about Kubernetes that looks at what services say of
each other: such members are ready only once they have met, so their names must lead to pods that are not ready.
"""

from __future__ import annotations

import re
from collections import defaultdict

from composeplat.compose.model import Project, Service
from composeplat.names import clean

#: A name that is not a part of a longer one.
_NAME = r"(?<![\w.-])[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?![\w-]|\.\w)"
_MAX_CHARS = 64 * 1024
#: The numbers of servers, as MinIO writes them: ``server{1...4}``.
_RANGE = re.compile(r"\{(\d{1,3})\.\.\.(\d{1,3})\}", re.ASCII)
_HOSTS = re.compile(r"(?<=//)[\w.-]*\{[\w.{}-]+", re.ASCII)
_MAX_NUMBERS, _MAX_RANGES = 64, 2


def find_members(project: Project) -> frozenset[str]:
    """The names of services with a peer: another service of the same image, where each names the other."""
    by_image: dict[str, list[Service]] = defaultdict(list)
    for service in project.services.values():
        if service.image:
            by_image[service.image].append(service)
    groups = [services for services in by_image.values() if len(services) > 1]
    return frozenset(name for services in groups for name in _members_of(services))


def _members_of(services: list[Service]) -> set[str]:
    names = {name: service.name for service in services for name in (*service.networking.aliases, clean(service.name))}
    mentions = {
        service.name: {names[name] for name in _names_in(service) if name in names} - {service.name}
        for service in services
    }
    return {name for name, mentioned in mentions.items() if any(name in mentions[other] for other in mentioned)}


def _names_in(service: Service) -> set[str]:
    texts = (*service.variables.values(), *(service.command or ()), *(service.entrypoint or ()))
    found = {name for text in texts for name in re.findall(_NAME, text[:_MAX_CHARS], flags=re.ASCII)}
    ranges = (host for text in texts for host in _HOSTS.findall(text[:_MAX_CHARS]))
    return found.union(*map(expand_ranges, ranges))


def expand_ranges(host: str) -> list[str]:
    """Return the hosts of a range such as ``server{1...4}``; of one without a range, that host."""
    found = _RANGE.search(host)
    if found is None or len(_RANGE.findall(host)) > _MAX_RANGES:
        return [host]
    first, last = int(found[1]), int(found[2])
    numbers = range(first, min(last, first + _MAX_NUMBERS - 1) + 1)
    texts = (str(number).zfill(len(found[1])) for number in numbers)
    return [name for text in texts for name in expand_ranges(host[: found.start()] + text + host[found.end() :])]
