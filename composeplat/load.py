"""From files to a checked project: the stages in their order, and the files they need.

Owns the order and nothing else:

1. find the files, read the env files, settle the environment's name;
2. each file: bytes -> text -> nodes -> variables in -> its includes under it;
3. files over one another, ``!reset`` carried out;
4. nodes -> model, by the table of keys;
5. env files of services and content of host volumes, read last as only the model knows which;
6. rules over the whole.

Must not know Kubernetes or Pulumi.
Variables are substituted before files are merged, as each file may have an env file of its own, and after YAML is
parsed, as a value must never become structure.
"""

from __future__ import annotations

import dataclasses
import os.path
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from composeplat import files
from composeplat.blame import Checker, Origins
from composeplat.check import check_project
from composeplat.diagnostics import ComposeplatError, Exit, InvalidDefinition, Report, Source, Span, quoted
from composeplat.dotenv import read_env
from composeplat.environ import VOLUME_AFFINITY, WAKE_IN_ORDER, Uses, Variables
from composeplat.interpolate import interpolate, interpolate_scalar
from composeplat.merge import merge, settle
from composeplat.model import HOST, Mount, Project, Service
from composeplat.names import make_label
from composeplat.parse import Context, parse_project
from composeplat.parse.fields import Field
from composeplat.settings import Settings
from composeplat.source import Mapping as MappingNode
from composeplat.source import Node, Scalar, StopReading, decode, read_nodes

MAX_INCLUDES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a front door asks for: every input of a reading, given as plain values."""

    files: tuple[str, ...] = ()
    """Files as named with ``-f``; ``-`` is standard input; none means to look for one."""
    folder: Path
    env_files: tuple[str, ...] = ()
    shell: Mapping[str, str] = field(default_factory=dict)
    platform: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    namespace: str = ""
    context_namespace: str = ""
    """The namespace of the kubeconfig's current context: used where nothing else says one."""
    domain: str = ""
    ingress_class: str = ""
    gateway: str = ""
    tls_secret: str = ""
    tls_issuer: str = ""
    registry: str = ""
    standard_input: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    project: Project
    settings: Settings
    origins: Origins
    report: Report
    document: Node
    """The definition as one tree: files merged, variables in."""
    variables: Variables
    uses: Uses
    folder: Path
    """What relative paths are relative to."""


class NoDefinition(ComposeplatError):
    exit_code = Exit.INVALID


def load(request: Request) -> Loaded:
    """Read, check and give the project; the report has what was found, errors included."""
    reading = read(request)
    if not reading.complete:
        return _unread(reading)
    ctx = Context(reading.report, reading.variables, Origins(), reading.variables.lookup("HOME") or "")
    project = parse_project(reading.document, ctx)
    check_project(project, ctx.origins, ctx.report)
    project = _with_files(project, ctx, reading)
    return Loaded(
        project=project,
        settings=reading.settings,
        origins=ctx.origins,
        report=ctx.report,
        document=reading.document,
        variables=reading.variables,
        uses=reading.uses,
        folder=reading.folder,
    )


def _unread(reading: Reading) -> Loaded:
    """What is known of a definition that can't be read as a whole: checking the rest would blame the wrong places."""
    return Loaded(
        project=Project(services={}, volumes={}),
        settings=reading.settings,
        origins=Origins(),
        report=reading.report,
        document=reading.document,
        variables=reading.variables,
        uses=reading.uses,
        folder=reading.folder,
    )


# reading --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Reading:
    """A definition on its way through the first stages."""

    folder: Path
    report: Report
    variables: Variables
    settings: Settings
    document: Node
    uses: Uses
    complete: bool
    """No file was missing, and each could be read as YAML."""


def read(request: Request, *, substitute: bool = True) -> Reading:
    """Carry out stages 1 to 3."""
    report = Report()
    sources = _Sources(request, report)
    variables = _first_variables(request, sources)
    names = _definition_files(request, variables, sources)
    folder = request.folder if names[0] == "-" else Path(os.path.dirname(names[0]))
    variables = _project_variables(request, variables, folder, sources)
    texts: list[tuple[str, list[Node]]] = [(name, sources.nodes(name, folder)) for name in names]
    uses = Uses()
    settings = _settings(request, variables, [node for _, nodes in texts for node in nodes], folder, report)
    variables = variables.with_defaults("project", {"COMPOSE_PROJECT_NAME": settings.environment}).with_defaults(
        "platform",
        {
            "PLATFORM_NAME": settings.environment,
            "PLATFORM_NAMESPACE": settings.namespace,
            "PLATFORM_DOMAIN": settings.domain,
        },
    )
    reader = _Reader(sources, uses, substitute=substitute)
    document = reader.join(texts, variables)
    return Reading(folder, report, variables, settings, settle(document), uses, sources.complete)


class _Sources:
    """Reads sources, numbered in the order they come, so that messages sort as people read."""

    def __init__(self, request: Request, report: Report) -> None:
        self.request = request
        self.report = report
        self.count = 0
        self.complete = True

    def make(self, name: str, base: Path, text: str) -> Source:
        self.count += 1
        return Source(name=name, base=base, text=text, order=self.count)

    def shown(self, path: str) -> str:
        """Name a file as people would: relative to where they are, unless that climbs."""
        if path == "-":
            return "<stdin>"
        relative = os.path.relpath(path, self.request.folder)
        return path if relative.startswith("..") else relative

    def nodes(self, path: str, base: Path) -> list[Node]:
        try:
            content = self.content(path)
        except files.Unreadable as error:
            self.complete = False
            self.refuse(path, base, error)
            return []
        return self.nodes_of(content, path, base)

    def content(self, path: str) -> bytes:
        if path != "-":
            return files.read_bytes(Path(path), limit=files.MAX_DEFINITION)
        given = self.request.standard_input
        return files.read_standard_input() if given is None else given

    def nodes_of(self, content: bytes, path: str, base: Path) -> list[Node]:
        try:
            source = decode(content, lambda text: self.make(self.shown(path), base, text), self.report)
            return [node for node in read_nodes(source, self.report) if not _is_empty(node)]
        except StopReading:
            self.complete = False
            return []

    def refuse(self, path: str, base: Path, error: files.Unreadable, span: Span | None = None) -> None:
        place = span or Span(self.make(self.shown(path), base, ""))
        name = quoted(self.shown(path)) if span is None else "the file it names"
        self.report.add("unreadable-file", place, (), f"{name} {error.reason}")

    def env(self, path: str, variables: Variables) -> dict[str, str]:
        """Read an env file that supplies variables to the definition."""
        base = Path(os.path.dirname(path))
        try:
            content = files.read_bytes(Path(path), limit=files.MAX_ENV_FILE)
            source = decode(content, lambda text: self.make(self.shown(path), base, text), self.report)
        except files.Unreadable as error:
            self.refuse(path, base, error)
            return {}
        except StopReading:
            return {}
        return read_env(source, variables.lookup, self.report)


def _is_empty(node: Node) -> bool:
    return isinstance(node, Scalar) and node.is_null


def _first_variables(request: Request, sources: _Sources) -> Variables:
    """What may name the definition's files: the shell and the env files of the folder we stand in."""
    shell = Variables.of(request.shell, {}, request.platform)
    named = request.env_files or _split(shell.lookup("COMPOSE_ENV_FILES"), ",")
    if named:
        return _layered(request, [os.path.join(request.folder, name) for name in named], sources)
    own = os.path.join(request.folder, ".env")
    if request.files or shell.lookup("COMPOSE_FILE") or not _wants_env_file(shell) or not files.exists(Path(own)):
        return shell
    quiet = _Sources(request, Report())
    return _layered(request, [own], quiet)


def _project_variables(request: Request, first: Variables, folder: Path, sources: _Sources) -> Variables:
    """Add the ``.env`` beside the definition, unless env files were named."""
    shell = Variables.of(request.shell, {}, request.platform)
    if request.env_files or shell.lookup("COMPOSE_ENV_FILES") or not _wants_env_file(shell):
        return first
    own = os.path.join(folder, ".env")
    if not files.exists(Path(own)):
        return shell
    return _layered(request, [own], sources)


def _wants_env_file(shell: Variables) -> bool:
    return not shell.flag("COMPOSE_DISABLE_ENV_FILE", default=False)


def _layered(request: Request, paths: list[str], sources: _Sources) -> Variables:
    merged: dict[str, str] = {}
    for path in paths:
        merged.update(sources.env(path, Variables.of(request.shell, merged, request.platform)))
    return Variables.of(request.shell, merged, request.platform)


def _split(text: str | None, separator: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(separator) if part.strip())


def _definition_files(request: Request, variables: Variables, sources: _Sources) -> list[str]:
    separator = variables.lookup("COMPOSE_PATH_SEPARATOR") or os.pathsep
    named = request.files or _split(variables.lookup("COMPOSE_FILE"), separator)
    if named:
        return [name if name == "-" else os.path.normpath(os.path.join(request.folder, name)) for name in named]
    found = files.find_definition(request.folder)
    if found is None:
        raise NoDefinition(
            "no Compose file here or in a folder above: looked for " + ", ".join(files.DEFAULT_NAMES),
            "name one with -f, or go to the folder that has one",
        )
    if found.passed_over:
        others = ", ".join(quoted(path.name) for path in found.passed_over)
        span = Span(sources.make(sources.shown(str(found.files[0])), found.files[0].parent, ""))
        sources.report.add(
            "several-files", span, (), f"{others} stands here too and is passed over", "name the file with -f"
        )
    return [str(path) for path in found.files]


def _settings(request: Request, variables: Variables, documents: list[Node], folder: Path, report: Report) -> Settings:
    """Settle the names: ``--name``, COMPOSE_PROJECT_NAME, the file's ``name``, the folder's, in that order."""
    named = [
        n for d in documents if isinstance(d, MappingNode) and isinstance(n := d.get("name"), Scalar) and not n.is_null
    ]
    # What may be wrong with the file's own name is told when the file is substituted as a whole.
    written = interpolate_scalar(named[-1], variables, Report(), Uses()).text if named else ""
    candidates = (request.name, variables.lookup("COMPOSE_PROJECT_NAME") or "", written, folder.name)
    chosen = next(name for name in (*candidates, "default") if name)
    environment = make_label(chosen)
    if not environment:
        span = named[-1].span if named and chosen == written else Span(_nowhere(documents, folder))
        hint = "give one with --name or the key 'name'"
        report.add("bad-name", span, ("name",), "the environment's name has no letter or digit", hint)
        environment = "default"
    # A PLATFORM_ variable of the platform itself has the lowest precedence but is one of the layers.
    return Settings(
        environment=environment,
        namespace=request.namespace or variables.lookup("PLATFORM_NAMESPACE") or request.context_namespace or "default",
        domain=(request.domain or variables.lookup("PLATFORM_DOMAIN") or "").lower().strip("."),
        ingress_class=request.ingress_class or variables.lookup("PLATFORM_INGRESS_CLASS") or "",
        gateway=request.gateway or variables.lookup("PLATFORM_GATEWAY") or "",
        tls_secret=request.tls_secret or variables.lookup("PLATFORM_TLS_SECRET") or "",
        tls_issuer=request.tls_issuer or variables.lookup("PLATFORM_TLS_ISSUER") or "",
        registry=request.registry or variables.lookup("PLATFORM_REGISTRY") or "",
        volume_affinity=variables.flag(VOLUME_AFFINITY, default=True),
        wake_in_order=variables.flag(WAKE_IN_ORDER, default=False),
    )


def _nowhere(documents: list[Node], folder: Path) -> Source:
    return documents[0].span.source if documents else Source(name=str(folder), base=folder)


# files over one another, includes under them --------------------------------------------------------------------------


class _Reader:
    def __init__(self, sources: _Sources, uses: Uses, *, substitute: bool) -> None:
        self.sources = sources
        self.report = sources.report
        self.uses = uses
        self.substitute = substitute
        self.trail: list[str] = []
        self.included = 0

    def join(self, texts: list[tuple[str, list[Node]]], variables: Variables) -> Node:
        """Lay the documents over one another in their order."""
        whole: Node | None = None
        for path, nodes in texts:
            self.trail.append(os.path.realpath(path))
            for raw in nodes:
                node = interpolate(raw, variables, self.report, self.uses) if self.substitute else raw
                node = self._with_includes(node, variables)
                whole = node if whole is None else merge(whole, node, self.report)
            self.trail.pop()
        if whole is None:
            name = self.sources.shown(texts[0][0])
            return MappingNode(Span(Source(name=name, base=Path(), text="", order=1)))
        return whole

    def _with_includes(self, node: Node, variables: Variables) -> Node:
        """Put what a file includes under it: what the file says itself wins."""
        include = node.get("include") if isinstance(node, MappingNode) else None
        if include is None or not isinstance(node, MappingNode) or (isinstance(include, Scalar) and include.is_null):
            return node
        whole = Field(Context(self.report, variables), include, ("include",))
        under: Node | None = None
        for item in whole.items("a list of files"):
            part = self._include(item, variables)
            if part is not None:
                under = part if under is None else merge(under, part, self.report)
        rest = {name: entry for name, entry in node.entries.items() if name != "include"}
        own = MappingNode(node.span, rest, node.tag, node.size)
        return own if under is None else merge(under, own, self.report)

    def _include(self, item: Field, variables: Variables) -> Node | None:
        self.included += 1
        if self.included > MAX_INCLUDES:
            item.say("bad-value", f"is one include too many: a definition may have {MAX_INCLUDES}")
            return None
        if isinstance(item.node, Scalar):
            paths, folder_field, env_fields = [item], None, None
        else:
            section = item.section("include.*")
            if section is None:
                return None
            path = section.get("path")
            if path is None:
                item.say("missing-key", "must have a 'path'")
                return None
            paths, folder_field, env_fields = (
                list(path.items_or_one()),
                section.get("project_directory"),
                section.get("env_file"),
            )
        names = [os.path.normpath(os.path.join(item.base, text)) for place in paths if (text := self._local(place))]
        if not names or len(names) != len(paths):
            return None
        for place, name in zip(paths, names, strict=True):
            if os.path.realpath(name) in self.trail:
                place.say("include-cycle", "includes a file that is being included already", "remove this include")
                return None
        given = folder_field.text() if folder_field else None
        folder = Path(os.path.normpath(os.path.join(item.base, given))) if given else Path(os.path.dirname(names[0]))
        inner = self._included_variables(env_fields, folder, item, variables)
        texts = []
        for place, name in zip(paths, names, strict=True):
            try:
                content = files.read_bytes(Path(name), limit=files.MAX_DEFINITION)
            except files.Unreadable as error:
                shown = place.node.shown if isinstance(place.node, Scalar) else ""
                place.say("unreadable-file", f"names {shown}, which {error.reason}")
                self.sources.complete = False
                continue
            texts.append((name, self.sources.nodes_of(content, name, folder)))
        if not any(nodes for _, nodes in texts):
            return None
        node = self.join(texts, inner)
        if isinstance(node, MappingNode):
            kept = {name: entry for name, entry in node.entries.items() if name not in ("name", "version")}
            node = MappingNode(node.span, kept, node.tag, node.size)
        return node

    def _local(self, place: Field) -> str | None:
        text = place.text()
        if text and ("://" in text or text.startswith(("git@", "oci:"))):
            place.say("bad-value", "must be a file on this machine", "fetch it, and name the file")
            return None
        return text

    def _included_variables(self, env: Field | None, folder: Path, item: Field, variables: Variables) -> Variables:
        """What an included file sees: ours first, then its own env files."""
        if env is None:
            own = os.path.join(folder, ".env")
            named = [own] if files.exists(Path(own)) and _wants_env_file(variables) else []
        else:
            named = [os.path.join(item.base, text) for place in env.items_or_one() if (text := place.text())]
        more: dict[str, str] = {}
        for name in named:
            if name != os.devnull:
                more.update(self.sources.env(name, variables.with_defaults("include", more)))
        return variables.with_defaults("include", more) if more else variables


# what only the model knows to be needed -------------------------------------------------------------------------------


def _with_files(project: Project, ctx: Context, reading: Reading) -> Project:
    """Read the env files and host volumes that services name, and put their content into the model."""
    loader = _Content(project, ctx, reading)
    services = {
        name: dataclasses.replace(service, variables=loader.variables(service), mounts=loader.mounts(service))
        for name, service in project.services.items()
    }
    return dataclasses.replace(project, services=services)


class _Content(Checker):
    def __init__(self, project: Project, ctx: Context, reading: Reading) -> None:
        super().__init__(project, ctx.origins, ctx.report)
        self.ctx = ctx
        self.reading = reading
        self.count = 1000
        self._env: dict[tuple[str, bool], dict[str, str]] = {}
        self._env_problems: dict[tuple[str, bool], files.Unreadable] = {}

    def variables(self, service: Service) -> dict[str, str]:
        merged: dict[str, str] = {}
        for index, file in enumerate(service.env_files):
            path = ("services", service.name, "env_files", index)
            try:
                merged.update(self._env_file(file.path, raw=file.raw))
            except files.Unreadable as error:
                if error.missing and not file.required:
                    continue
                shown = self.origins.shown(*path)
                hint = "create it, or write the long form with required: false" if error.missing else ""
                self.say(
                    "unreadable-file",
                    path,
                    f"names {shown}, which {error.reason}" if shown else error.reason,
                    hint,
                )
        for name, value in service.environment.items():
            if value is None:
                merged.pop(name, None)
            else:
                merged[name] = value
        return merged

    def _env_file(self, path: str, *, raw: bool) -> dict[str, str]:
        """Read an env file once, however many services name it."""
        key = (path, raw)
        if key in self._env_problems:
            raise self._env_problems[key]
        if key not in self._env:
            try:
                content = files.read_bytes(Path(path), limit=files.MAX_ENV_FILE)
            except files.Unreadable as error:
                self._env_problems[key] = error
                raise
            self._env[key] = self._parse(content, path, raw=raw)
        return self._env[key]

    def _parse(self, content: bytes, path: str, *, raw: bool) -> dict[str, str]:
        self.count += 1
        name = os.path.relpath(path, self.reading.folder)

        def source(text: str) -> Source:
            return Source(
                name=path if name.startswith("..") else name,
                base=Path(path).parent,
                text=text,
                order=self.count,
            )

        try:
            return read_env(decode(content, source, self.report), self.ctx.variables.lookup, self.report, raw=raw)
        except StopReading:
            return {}

    def mounts(self, service: Service) -> tuple[Mount, ...]:
        if service.build is not None:
            return service.mounts
        return tuple(
            self._with_content(mount, ("services", service.name, "mounts", index)) if mount.kind == HOST else mount
            for index, mount in enumerate(service.mounts)
        )

    def _with_content(self, mount: Mount, path: tuple[str | int, ...]) -> Mount:
        source = Path(mount.source)
        shown = self.origins.shown(*path, "source")
        if files.is_system_path(source):
            hint = "a cluster has no path of this machine: use a named volume, or a folder of the project"
            self.say("refused-path", path, f"mounts a system path of this machine: {shown}", hint)
            return mount
        try:
            content = files.read_host_content(source, self.reading.folder)
        except files.Unreadable as error:
            code = "missing-path" if error.missing else "refused-path"
            hint = (
                "create it, or use a named volume" if error.missing else "use a named volume, or files of the project"
            )
            self.say(code, path, f"mounts a host path that {error.reason}: {shown}", hint)
            return mount
        return dataclasses.replace(mount, content=content)


def load_or_raise(request: Request) -> Loaded:
    """Load for a caller that wants a sound project or an exception: the front door of embedding programs."""
    loaded = load(request)
    if loaded.report.errors:
        raise InvalidDefinition(loaded.report)
    return loaded


__all__ = ["Loaded", "NoDefinition", "Request", "load", "load_or_raise", "read"]
