"""How a service becomes its Kubernetes objects, as statements with the lines that they come from.

Owns the statements. The decisions are those of :mod:`composeplat.plan`: this module names the key behind each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from composeplat.compatibility.image_rules import ImageAnswers
from composeplat.compose.load import Loaded
from composeplat.compose.model import ANONYMOUS, HOST, IMAGE, MEMORY, NAMED, Mount, Service
from composeplat.compose.options import UNKNOWN_DOMAIN
from composeplat.compose.origins import Origins, mount_path, port_path
from composeplat.compose.rollout_model import Mode
from composeplat.compose.values import show_size
from composeplat.diagnostics import PathKey, Span, format_count
from composeplat.plan import Plan, ServicePlan
from composeplat.registry.image_config import ImageFacts


@dataclass(frozen=True, slots=True)
class Statement:
    topic: str
    text: str
    span: Span | None = None
    """None if no line of the file says it."""


def explain(loaded: Loaded, plan: Plan, images: ImageAnswers, planned: ServicePlan) -> tuple[Statement, ...]:
    return tuple(_Explainer(loaded, plan, images, planned).statements())


def _with_domain(url: str) -> str:
    """Name the domain of a URL where no cluster was asked for it."""
    host, found, path = url.partition(f".{UNKNOWN_DOMAIN}")
    return f"{host}.DOMAIN{path}, with the domain of the cluster" if found else url


class _Explainer:
    def __init__(self, loaded: Loaded, plan: Plan, images: ImageAnswers, planned: ServicePlan) -> None:
        self.loaded, self.plan, self.images, self.planned = loaded, plan, images, planned
        self.service: Service = loaded.project.services[planned.name]
        self.path: PathKey = ("services", planned.name)
        self.origins: Origins = loaded.origins

    def statements(self) -> Iterator[Statement]:
        yield self._kind()
        yield self._restart()
        yield self._image()
        yield self._replicas()
        yield from self._addresses()
        yield from self._urls()
        yield from self._volumes()
        yield from self._order()

    def _at(self, *keys: str | int) -> Span | None:
        """Return the place of a key of the service; None if it is not written."""
        path = (*self.path, *keys)
        return self.origins.at(*path) if self.origins.has(*path) else None

    def _kind(self) -> Statement:
        service = self.service
        if service.runs_elsewhere:
            key = next(iter(service.pod.joined))
            return Statement("kind", f"a container in the pods of '{service.pod.owner}'", self._at(key))
        mounts = [(i, m) for i, m in enumerate(service.mounts) if m.kind in (NAMED, ANONYMOUS)]
        if mode := self._kind_of_mode():
            return mode
        if service.is_job:
            return Statement("kind", f"Job, as restart is '{service.restart}'", self._restart_place())
        if mounts:
            index, mount = mounts[0]
            volume = f"volume '{mount.source}'" if mount.kind == NAMED else f"anonymous volume at {mount.target}"
            span = self.origins.at(*mount_path(service.name, index))
            return Statement("kind", f"StatefulSet, as it mounts the {volume}", span)
        return Statement("kind", "Deployment, as it mounts no named or anonymous volume")

    def _kind_of_mode(self) -> Statement | None:
        mode = self.service.scheduling.mode
        if schedule := self.service.scheduling.schedule:
            reason = f"its schedule is '{schedule.cron}'" if schedule.cron else "a person starts it"
            return Statement("kind", f"CronJob, as {reason}", self._at("x-schedule") or self._at("triggers"))
        if mode is Mode.REPLICATED:
            return None
        return Statement(
            "kind", f"{self.service.workload_kind}, as deploy.mode is '{mode}'", self._at("deploy", "mode")
        )

    def _replicas(self) -> Statement:
        if self.service.is_global:
            return Statement("replicas", "one on each node", self._at("deploy", "mode"))
        return Statement("replicas", str(self.service.replicas), self._at("deploy", "replicas") or self._at("scale"))

    def _restart_place(self) -> Span | None:
        return self._at("deploy", "restart_policy", "condition") or self._at("restart")

    def _restart(self) -> Statement:
        span = self._restart_place()
        return Statement("restart", self.service.restart + ("" if span else ", the default"), span)

    def _image(self) -> Statement:
        is_built, builder = self.service.build is not None, self.service.container.built_by
        how = ", built" if is_built else f", built by {builder}" if builder else ""
        return Statement("image", f"{self.planned.image}{how}", self._at("build" if is_built else "image"))

    def _addresses(self) -> Iterator[Statement]:
        name = self.planned.cluster_name
        if not self.service.ports:
            exposed = self._listed_ports()
            listed = f"; its image exposes {exposed}" if exposed else ""
            yield Statement("address", f"{name}, to every port of its pods{listed}")
        for port in self.service.ports:
            text = f"{name}:{port.published or port.target}/{port.protocol}"
            more = f", to port {port.target} of the container" if port.published not in (None, port.target) else ""
            yield Statement("address", text + more, self.origins.at(*port_path(self.service.name, port)))

    def _listed_ports(self) -> str:
        """Return the ports that a deploy lists in the cluster service of a service without ports: its image's."""
        images = (desired.ports_of for desired in self.planned.objects if isinstance(desired.ports_of, str))
        facts = (self.images.get(image) for image in images)
        return ", ".join(f"{n}/{protocol}" for f in facts if isinstance(f, ImageFacts) for n, protocol in f.ports)

    def _urls(self) -> Iterator[Statement]:
        for endpoint in self.plan.endpoints:
            for url, service, port in endpoint.addresses:
                if service == self.service.name:
                    yield Statement("url", f"{_with_domain(url)}, to port {port}")

    def _volumes(self) -> Iterator[Statement]:
        for index, mount in enumerate(self.service.mounts):
            span = self.origins.at(*mount_path(self.service.name, index))
            yield Statement("volume", f"{mount.target}: {self._describe(mount)}", span)

    def _describe(self, mount: Mount) -> str:
        mode = ", read-only" if mount.read_only else ""
        if mount.kind == NAMED:
            volume = self.loaded.project.volumes.get(mount.source)
            size = f", {show_size(volume.size)}" if volume else ""
            return f"volume '{mount.source}'{size}{mode}"
        if mount.kind == HOST and self.service.build is not None:
            return "a host volume of a built service, for 'platform up' only"
        if mount.kind == HOST:
            count = mount.content.count if mount.content else 0
            return f"{format_count(count, 'file')} of this machine, copied, read-only"
        if mount.kind == IMAGE:
            return f"the files of image {mount.source}, read-only"
        return f"in memory{mode}" if mount.kind == MEMORY else f"a volume for each pod, 1Gi{mode}"

    def _order(self) -> Iterator[Statement]:
        for dependency in self.service.depends_on:
            text = f"{dependency.service}, until it is {dependency.condition.adjective}"
            yield Statement("waits for", text, self._at("depends_on", dependency.service) or self._at("depends_on"))
