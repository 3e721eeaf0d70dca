"""The entries of ``compose.platform.yaml`` that mend a finding.

Owns which findings have a fix, and the entries but those with volumes (:mod:`~composeplat.compatibility.volume_fixes`).
Must not know the text of a file: :mod:`composeplat.compatibility.platform_file` writes the entries.

An entry never has the value of a variable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial

from composeplat.compatibility.accepted_host_rules import (
    PublicHost,
    accept_hosts,
    development_variable,
    find_public_hosts,
    hosts_for,
    is_only_local,
)
from composeplat.compatibility.ending_rules import can_be_job
from composeplat.compatibility.entries import Change, Entry, changed_text, expose_entries, yaml_text
from composeplat.compatibility.host_rules import (
    HOST_VARIABLE,
    published_addresses,
    renamed_hosts,
    replace_docker_hosts,
    replace_hosts,
    written_variable,
)
from composeplat.compatibility.image_rules import ImageAnswers
from composeplat.compatibility.key_fixes import (
    change_arguments,
    drop_gateway,
    mend_key,
    process_entries,
    rename_variable,
)
from composeplat.compatibility.left_out import OF_A_PROFILE, docker_tools, not_started
from composeplat.compatibility.listener_rules import listen_everywhere, may_listen_everywhere
from composeplat.compatibility.port_rules import Use, exposed_ports, find_joined, find_uses, unreachable_ports
from composeplat.compatibility.route_fixes import RouteFixes, route_to_page
from composeplat.compatibility.url_rules import PublicUrl, find_public_urls, is_only_urls, replace_local_urls
from composeplat.compatibility.volume_fixes import VolumeFixes
from composeplat.compose.data_paths import find_program
from composeplat.compose.load import Loaded
from composeplat.compose.load.profiles import read_profiles
from composeplat.compose.model import Service
from composeplat.compose.nodes import find_node
from composeplat.compose.shared_images import builders_of, image_identity
from composeplat.diagnostics import Diagnostic, Report
from composeplat.plan import Plan
from composeplat.registry.image_config import ImageFacts

#: The parts of the path of a service's variables.
_VARIABLE_DEPTH = 3
#: Programs of images that keep data, which a command names before their options.
_SERVERS = "mariadbd mongod mysqld postgres redis-server valkey-server"


def _keeps_data(service: Service) -> bool:
    """Whether a service is the program of its image, with options at most, and has the data of it."""
    first = service.command[0] if service.command else "-"
    has_own_program = service.entrypoint is not None or not (first.startswith("-") or first in _SERVERS.split())
    mounts = (mount for mount in service.mounts if not mount.read_only)
    return not has_own_program and any(find_program(mount.target, service.image) for mount in mounts)


def _lead_to_pod(service: Service) -> tuple[Entry, ...]:
    reason = "Its name is the address of its pod then."
    return (Entry(("services", service.name, "deploy"), "endpoint_mode: dnsrr", reason),)


def _make_job(service: Service, diagnostic: Diagnostic) -> tuple[Entry, ...]:
    parent = tuple(map(str, diagnostic.path[:-1]))
    retries = Entry(
        (*parent, "deploy"), "restart_policy: {max_attempts: 6}", "What it needs may not be ready at first."
    )
    once = Entry(parent, 'restart: "no"', "Its command ends: it runs until it succeeds.")
    return (once, retries) if can_be_job(service) else ()


def _set_variable(
    parent: tuple[str, ...],
    name: str,
    before: str,
    change: Callable[[str], str],
    reason: str,
    *,
    is_last: bool = False,
) -> tuple[Entry, ...]:
    def write(text: str) -> str:
        return f"{yaml_text(name)}: {yaml_text(text)}"

    return changed_text(parent, Change(before, change, write, is_last=is_last), reason)


class Fixes:
    """The fixes of a definition's findings."""

    def __init__(self, loaded: Loaded, plan: Plan, images: ImageAnswers) -> None:
        self._loaded = loaded
        self._plan = plan
        self._images = images
        self.not_started = not_started(loaded, plan)
        self.hosts = renamed_hosts(loaded, self.not_started)
        """The names that don't resolve in a cluster, with those that do."""
        self._left_out = {**docker_tools(loaded, self.not_started), **dict.fromkeys(self.not_started, OF_A_PROFILE)}
        self.volumes = VolumeFixes(loaded, images, self._left_out)
        self._fixers: dict[str, Callable[[Diagnostic], tuple[Entry, ...]]] = {
            "host-data": self.volumes.keep_data,
            "missing-path": self.volumes.keep_data,
            "outside-project": self.volumes.keep_data,
            "forbidden-path": self.volumes.keep_or_drop,
            "image-volume": self.volumes.keep_image_volumes,
            "unreachable-port": self._expose,
            "unresolvable-host": self._rename_host,
            "own-name-listener": self._listen_everywhere,
            "on-failure-job": self._keep_running,
            "ending-command": lambda diagnostic: _make_job(self._service(diagnostic), diagnostic),
            "unshared-base": self._share_base,
            "unsupported-key": lambda diagnostic: (
                self.volumes.mount_volumes_of_others(diagnostic.path) or mend_key(loaded, diagnostic.path)
            ),
            "no-effect": lambda diagnostic: self._write_process(diagnostic) or self._routes.entries_for(diagnostic),
            "sensitive-port": lambda diagnostic: route_to_page(loaded, str(diagnostic.path[1])),
            "local-url": self._write_public_urls,
            "local-host": self._accept_hosts,
            "docker-only-host": self._write_published,
            "invalid-name": lambda diagnostic: rename_variable(loaded, diagnostic.path, self._mend_value),
            "invalid-value": lambda diagnostic: drop_gateway(loaded, diagnostic.path),
        }

    def entries_for(self, diagnostic: Diagnostic) -> tuple[Entry, ...]:
        path = diagnostic.path
        if path[:1] == ("services",) and len(path) > 1 and path[1] in self._left_out:
            name = str(path[1])
            return (Entry(("services",), f"{yaml_text(name)}: !reset null", self._left_out[name]),)
        fixer = self._fixers.get(diagnostic.code)
        return fixer(diagnostic) if fixer else ()

    def _service(self, diagnostic: Diagnostic) -> Service:
        return self._loaded.project.services[str(diagnostic.path[1])]

    @cached_property
    def uses(self) -> Mapping[str, list[Use]]:
        """How the services address each other."""
        return find_uses(self._loaded.project)

    @cached_property
    def joined(self) -> Mapping[str, Use]:
        """The services that others join as members of a cluster."""
        return find_joined(self._loaded.project)

    @cached_property
    def _routes(self) -> RouteFixes:
        return RouteFixes(self._loaded, self._images, self.uses)

    def _expose(self, diagnostic: Diagnostic) -> tuple[Entry, ...]:
        service = self._service(diagnostic)
        if service.name in self.joined:
            return _lead_to_pod(service)
        missing = unreachable_ports(service, self.uses[service.name], exposed_ports(service, self._images))
        return expose_entries(service.name, missing)

    def _share_base(self, diagnostic: Diagnostic) -> tuple[Entry, ...]:
        """Build on the image of another service: its name in the Dockerfile is that of a context.

        That of a profile, which may be off, is none for a service without it.
        """
        *parent, image = map(str, diagnostic.path)
        builder = builders_of(self._loaded.project)[image_identity(image)]
        profiles = read_profiles(self._loaded.document, Report())
        if not {*profiles.get(builder, ())} <= {*profiles.get(parent[1], ())}:
            return ()
        return (Entry(tuple(parent), f"{yaml_text(image)}: service:{builder}", f"The image that {builder} builds."),)

    def _keep_running(self, diagnostic: Diagnostic) -> tuple[Entry, ...]:
        """Restart a server that Docker restarts after failures: one with an address, a check or its data is no job."""
        parent, key = tuple(map(str, diagnostic.path[:-1])), diagnostic.path[-1]
        service = self._service(diagnostic)
        if not self._is_server(service):
            return ()
        value = "any" if key == "condition" else "unless-stopped"
        return (Entry(parent, f"{key}: {value}", "A server, which is restarted when it ends."),)

    def _is_server(self, service: Service) -> bool:
        is_addressed = any(use.port or HOST_VARIABLE.search(use.where) for use in self.uses[service.name])
        has_address = is_addressed or service.ports or service.name in self._routes.routes
        return bool(has_address or service.health_check or _keeps_data(service))

    def _write_process(self, diagnostic: Diagnostic) -> tuple[Entry, ...]:
        """Write the program of an image, which the limits of ``ulimits`` are set for."""
        if diagnostic.path[2:] != ("ulimits",):
            return ()
        service = self._service(diagnostic)
        image = self._images.get(service.image) if service.is_pulled else None
        return process_entries(service, image) if isinstance(image, ImageFacts) else ()

    def _rename_host(self, diagnostic: Diagnostic) -> tuple[Entry, ...]:
        """Set a variable again with the name that resolves: of an env file only one that is no more than a name."""
        path = diagnostic.path
        if path[2:] in (("command",), ("entrypoint",), ("healthcheck",)):
            key = str(path[-1]).replace("healthcheck", "test")
            change = partial(replace_hosts, variable=key, renamed=self.hosts)
            return change_arguments(self._loaded, path, change, "The host's name in a cluster.")
        if len(path) < _VARIABLE_DEPTH or path[2] not in ("environment", "env_file"):
            return ()
        service = self._service(diagnostic)
        environment = find_node(self._loaded.document, "services", service.name, "environment")
        entries: list[Entry] = []
        for variable in (str(path[3]),) if len(path) > _VARIABLE_DEPTH else tuple(service.environment):
            is_own = variable in service.environment
            before = (written_variable(environment, variable) or "") if is_own else service.variables[variable]
            if is_own or before in self.hosts:
                change = partial(replace_hosts, variable=variable, renamed=self.hosts)
                reason = "The host's name in a cluster."
                entries += _set_variable(("services", service.name, "environment"), variable, before, change, reason)
        return tuple(entries)

    def _listen_everywhere(self, diagnostic: Diagnostic) -> tuple[Entry, ...]:
        """Set a variable again; where a single address is needed, let the name lead to the pod."""
        parent, variable = tuple(map(str, diagnostic.path[:-1])), str(diagnostic.path[-1])
        service = self._service(diagnostic)
        before = written_variable(find_node(self._loaded.document, *parent), variable) or ""
        is_for_others = variable.replace("LISTENERS", "ADVERTISED_LISTENERS") not in service.variables
        if is_for_others or not may_listen_everywhere(variable):
            return _lead_to_pod(service)
        change = partial(listen_everywhere, service=service)
        return _set_variable(parent, variable, before, change, "Where a pod can listen.") or _lead_to_pod(service)

    @cached_property
    def public_urls(self) -> Mapping[int, PublicUrl]:
        """The ports that Docker would publish on this machine, with the URLs of the services in a cluster."""
        return find_public_urls(self._loaded.project, self._plan)

    def _write_public_urls(self, diagnostic: Diagnostic) -> tuple[Entry, ...]:
        reason, is_argument = "The URL in a cluster.", diagnostic.path[2:] in (("command",), ("entrypoint",))
        name = "" if is_argument else str(diagnostic.path[-1])
        change = partial(replace_local_urls, name, service=self._service(diagnostic), urls=self.public_urls)
        if is_argument:
            return change_arguments(self._loaded, diagnostic.path, change, reason)
        return self._write_again(diagnostic, change, reason, is_only_urls)

    @cached_property
    def public_hosts(self) -> Mapping[str, tuple[PublicHost, ...]]:
        return find_public_hosts(self._plan)

    def _accept_hosts(self, diagnostic: Diagnostic) -> tuple[Entry, ...]:
        service, variable, reason = self._service(diagnostic), str(diagnostic.path[-1]), "Browsers ask for this host."
        if added := development_variable(service, variable):
            host = self.public_hosts[service.name][0].written
            parent = ("services", service.name, "environment")
            return (Entry(parent, f"{added}: {yaml_text(host)}", reason),) if host else ()
        hosts = hosts_for(service, variable, self._loaded.project.services.values(), self.public_hosts)
        keeps_local = service.health_check is not None
        change = partial(accept_hosts, variable, public=hosts, keeps_local=keeps_local)
        return self._write_again(diagnostic, change, reason, is_only_local, is_last=True)

    @cached_property
    def _published(self) -> Mapping[str, str]:
        return published_addresses(self._loaded.project.services.values())

    def _write_published(self, diagnostic: Diagnostic) -> tuple[Entry, ...]:
        change = partial(replace_docker_hosts, published=self._published)
        return self._write_again(diagnostic, change, "The service that has this port.")

    def _mend_value(self, service: Service, variable: str, text: str) -> str:
        """Replace the hosts and URLs in a value that a cluster does not have."""
        if not service.container.names.hosts:
            text = replace_docker_hosts(text, self._published)
        if find_node(self._loaded.document, "services", service.name, "network_mode") is None:
            text = replace_local_urls(variable, text, service, self.public_urls)
        return replace_hosts(text, variable, self.hosts)

    def _write_again(
        self,
        diagnostic: Diagnostic,
        change: Callable[[str], str],
        reason: str,
        is_harmless: Callable[[str], bool] | None = None,
        *,
        is_last: bool = False,
    ) -> tuple[Entry, ...]:
        """Set a variable or a build argument again, with another text than the file has.

        The value of an env file is written only if it is harmless, as it may be secret.
        """
        *parent, name = map(str, diagnostic.path)
        if parent[2:] == ["env_file"]:
            parent = [*parent[:2], "environment"]
            value = self._service(diagnostic).variables[name]
            before = value if is_harmless and is_harmless(value) else ""
        else:
            before = written_variable(find_node(self._loaded.document, *parent), name) or ""
        return _set_variable(tuple(parent), name, before, change, reason, is_last=is_last)
