"""Resolve the inputs of a reading: variables, files, settings.

Owns the precedence of options, variables, env files and defaults, and the environment's name.
Must not know the model: nothing but the keys ``name`` and ``x-platform`` is read from the definition here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from composeplat.compose.discovery import DEFAULT_NAMES, find_compose_files
from composeplat.compose.dotenv import Lookup
from composeplat.compose.interpolate import interpolate_scalar
from composeplat.compose.load.examples import hints_for_variables
from composeplat.compose.load.sources import Fallbacks, Sources
from composeplat.compose.nodes import OVERRIDE, RESET, Mapping as MappingNode, Node, Scalar, kind_of
from composeplat.compose.options import SETTINGS, Request, Setting, Settings, Value, hint_of_file
from composeplat.compose.placeholders import has_placeholder, late_hint, name_of, placeholders_in, replace_placeholders
from composeplat.compose.values import is_address
from composeplat.compose.variables import VOLUME_AFFINITY, WAKE_IN_ORDER, BadSetting, VariableReferences, Variables
from composeplat.diagnostics import ComposeplatError, Exit, Report, Source, Span, quoted
from composeplat.names import make_label
from composeplat.system import files
from composeplat.system.project_root import ProjectRoot, find_project_root

_NAMESPACE, _DOMAIN = (SETTINGS[name].variable for name in ("namespace", "domain"))


class NoDefinition(ComposeplatError):
    exit_code = Exit.INVALID
    code = "no-compose-file"


# variables ------------------------------------------------------------------------------------------------------------


def first_variables(request: Request, sources: Sources) -> Variables:
    """Return the variables that can name the definition's files: the shell's, and those of the first env files."""
    shell = Variables.from_layers(request.shell, {}, request.platform)
    named = _named_env_files(request, shell)
    if named:
        return _with_place(request, sources, partial(_layered, request, named, None))
    own = default_env_file(shell, request.folder)
    if request.files or not own:
        return shell
    # It is read again, with its messages, if it is also an env file of the definition.
    layered = partial(_layered, request, [own], project_root(request, request.folder))
    return _with_place(request, Sources(request, Report()), layered)


def project_variables(request: Request, first: Variables, folder: Path, sources: Sources) -> Variables:
    """Add the ``.env`` beside the definition, unless env files are given.

    That of the current folder comes first, unless options name the definition.
    """
    shell = Variables.from_layers(request.shell, {}, request.platform)
    if _named_env_files(request, shell):
        return first
    folders = dict.fromkeys((folder,) if request.files else (request.folder, folder))

    def read(sources: Sources, place: Lookup) -> Variables:
        variables = shell
        for at in folders:
            if own := default_env_file(shell, at):
                found = sources.env(own, variables, project_root(request, at), Fallbacks(place=place))
                variables = variables.with_defaults(sources.shown(own), found)
        return variables

    return _with_example(request, shell, [*folders], _with_place(request, sources, read), sources)


def _with_example(
    request: Request, shell: Variables, folders: list[Path], variables: Variables, sources: Sources
) -> Variables:
    """Add hints about the env file of the current folder, if it is not read, and about examples, if there is none."""
    if shell.flag("COMPOSE_DISABLE_ENV_FILE", default=False):
        return variables
    missing = [] if any(default_env_file(shell, folder) for folder in folders) else folders
    unread = "" if request.folder in folders else default_env_file(shell, request.folder)

    def read(path: str) -> Mapping[str, str]:
        root = project_root(request, Path(os.path.dirname(path)))
        return Sources(request, Report()).env(path, variables, root)

    paths = [os.path.join(folder, ".env") for folder in missing]
    return replace(variables, hint_for=hints_for_variables(paths, unread, sources.shown, read))


def default_env_file(variables: Variables, folder: Path) -> str:
    """Return the ``.env`` of a folder; empty if there is none, or if it is not wanted.

    A folder of that name is none, as in Compose: it is usually a virtual environment of Python.
    """
    is_wanted = not variables.flag("COMPOSE_DISABLE_ENV_FILE", default=False)
    own = os.path.join(folder, ".env")
    return own if is_wanted and files.exists(Path(own)) and not os.path.isdir(own) else ""


def env_files_to_name(request: Request, folder: Path) -> list[str]:
    """Return the env files that another folder's program has to name to read the same variables as this command.

    Without names it reads the ``.env`` beside the definition, and not that of the current folder.
    """
    shell = Variables.from_layers(request.shell, {}, request.platform)
    named = _named_env_files(request, shell)
    own = default_env_file(shell, request.folder)
    if named or request.files or folder == request.folder or not own:
        return named
    beside = default_env_file(shell, folder)
    return [beside, own] if beside else [own]


def _named_env_files(request: Request, shell: Variables) -> list[str]:
    named = request.env_files or _split(shell.lookup("COMPOSE_ENV_FILES"), ",")
    return [os.path.join(request.folder, name) for name in named]


def _layered(
    request: Request, paths: list[str], root: ProjectRoot | None, sources: Sources, place: Lookup
) -> Variables:
    """Read env files in layers; each may refer to variables of earlier ones, below its own lines."""
    shell = Variables.from_layers(request.shell, {}, request.platform)
    read: list[tuple[str, Mapping[str, str]]] = []
    for path in paths:
        earlier = Variables.from_files({}, read, {}).lookup
        read.append((sources.shown(path), sources.env(path, shell, root, Fallbacks(earlier, place))))
    return Variables.from_files(request.shell, read, request.platform)


def _with_place(request: Request, sources: Sources, read: Callable[[Sources, Lookup], Variables]) -> Variables:
    """Read env files that may refer to the namespace and the domain, which they may set themselves.

    Only a file that refers to them is read twice: first without the value that it asks for.
    """

    @cache
    def place(name: str) -> str | None:
        setting = {_NAMESPACE: "namespace", _DOMAIN: "domain"}.get(name)
        if setting is None:
            return None
        # The domain may refer to the namespace, and neither to itself.
        known = (_NAMESPACE,) if setting == "domain" else ()
        variables = read(Sources(request, Report()), lambda other: place(other) if other in known else None)
        return str(_resolved_setting(request, setting, variables, _defaults(request))) or None

    return read(sources, place)


def _split(text: str | None, separator: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(separator) if part.strip())


# the project's root ---------------------------------------------------------------------------------------------------


def project_root(request: Request, folder: Path) -> ProjectRoot:
    """Return the root of the project in a folder.

    Only the user can allow files outside it: an env file comes with the project.
    """
    allowed = SETTINGS["allow_outside"].resolve(request.allow_outside, Variables.from_layers(request.shell))
    path = find_project_root(folder, request.shell.get("HOME", ""))
    return ProjectRoot(path, allow_outside=bool(allowed), option=request.outside_option)


def definition_root(request: Request, variables: Variables, folder: Path) -> ProjectRoot | None:
    """Return the folder that must contain the definition's own files; None if the user named them."""
    if request.files or request.shell.get("COMPOSE_FILE"):
        return None
    return project_root(request, request.folder if variables.lookup("COMPOSE_FILE") else folder)


# files ----------------------------------------------------------------------------------------------------------------


def definition_files(request: Request, variables: Variables, sources: Sources) -> list[str]:
    """Return the files to read, in their order: as given, or found from the current folder upwards."""
    separator = variables.lookup("COMPOSE_PATH_SEPARATOR") or os.pathsep
    named = request.files or _split(variables.lookup("COMPOSE_FILE"), separator)
    if address := next(filter(is_address, named), ""):
        raise NoDefinition(
            f"the Compose file must be on this machine, not {quoted(address)}", "fetch it, and name the file"
        )
    if named:
        return [name if name == "-" else os.path.normpath(os.path.join(request.folder, name)) for name in named]
    found = find_compose_files(request.folder)
    if found is None:
        raise NoDefinition(
            "no Compose file here or in a folder above: looked for " + ", ".join(DEFAULT_NAMES),
            next(filter(None, map(hint_of_file, request.named_services)), "")
            or "name one with -f, or go to the folder that has one",
        )
    if found.ignored:
        names = ", ".join(quoted(path.name) for path in found.ignored)
        verb = "is" if len(found.ignored) == 1 else "are"
        span = Span(sources.make(str(found.files[0]), found.files[0].parent, ""))
        message = f"also found {names}, which {verb} not read"
        sources.report.add("multiple-compose-files", span, (), message, "name the file with -f")
    return [str(path) for path in found.files]


# names ----------------------------------------------------------------------------------------------------------------


def resolve_settings(
    request: Request, variables: Variables, documents: list[Node], folder: Path, report: Report
) -> Settings:
    """Resolve each setting, and the environment's name."""
    resolved = _resolved(request, variables, full="full" if _asks_for_full_mode(variables, documents) else "")
    placed = variables.with_place(resolved["namespace"], resolved["domain"])
    settings = Settings(
        environment=_environment_name(request, placed, documents, folder, report),
        name_from_folder=not any(_given_names(request, placed, documents)),
        volume_affinity=variables.switch(VOLUME_AFFINITY, default=True),
        wake_in_order=variables.switch(WAKE_IN_ORDER),
        build_platforms=request.build_platforms,
        load_policy="" if resolved["registry"] else request.load_policy,
        **resolved,
    )
    _check_settings(settings, request, variables)
    if settings.full:
        return settings
    if request.profile:
        raise BadSetting("--profile has an effect in full mode alone", "add --full")
    return replace(settings, profile=())


def _resolved(request: Request, variables: Variables, *, full: str = "") -> dict[str, Any]:
    """Each setting: as given, else from its variable, else the default of the cluster."""
    defaults = {**_defaults(request), "full": full}
    return {name: _resolved_setting(request, name, variables, defaults) for name in SETTINGS}


def _defaults(request: Request) -> dict[str, str]:
    return {
        "namespace": request.context_namespace or "default",
        "domain": request.default_domain,
        "ingress_class": request.default_ingress_class,
        "registry": request.default_registry,
    }


def _resolved_setting(request: Request, name: str, variables: Variables, defaults: Mapping[str, str]) -> Value:
    setting = SETTINGS[name]
    counting = Variables.from_layers(request.shell) if setting.is_shell_only else variables
    return setting.resolve(getattr(request, name), counting, defaults.get(name, ""))


def namespace_of(request: Request) -> str:
    """Return the namespace without reading a definition; it is not validated.

    Env files outside the project are read too, as only a name is used; reading the definition reports them.
    """
    request = replace(request, allow_outside=True)
    sources = Sources(request, Report())
    variables = first_variables(request, sources)
    try:
        names = definition_files(request, variables, sources)
    except NoDefinition:
        pass
    else:
        folder = request.folder if names[0] == "-" else Path(os.path.dirname(names[0]))
        variables = project_variables(request, variables, folder, sources)
    return str(_resolved(request, variables)["namespace"])


def _environment_name(
    request: Request, variables: Variables, documents: list[Node], folder: Path, report: Report
) -> str:
    """Return ``--name``, COMPOSE_PROJECT_NAME, the file's ``name`` or the folder's name, as a DNS label."""
    _check_names(documents, report)
    given = _given_names(request, variables, documents)
    chosen = next((name for name in (*given, folder.name) if name), "default")
    label = make_label(chosen)
    if label and not has_placeholder(chosen):
        return label
    source = documents[0].span.source if documents else Source(name=str(folder), base=folder)
    written = _written_name(documents)
    span = written.span if written is not None and chosen is given[-1] else Span(source)
    problem, hint = "has no letter or digit", "give one with --name or the key 'name'"
    if has_placeholder(chosen):
        problem, hint = "is not known before the program runs", late_hint(map(name_of, placeholders_in(chosen)))
    report.add("invalid-name", span, ("name",), f"the environment's name {problem}", hint)
    return "default"


def _check_names(documents: list[Node], report: Report) -> None:
    """Report a ``name`` that is no text: without one, the folder's would name another environment."""
    for document in documents:
        name = document.get("name") if isinstance(document, MappingNode) else None
        if name is not None and not isinstance(name, Scalar) and name.tag != RESET:
            report.add("invalid-type", name.span, ("name",), f"name must be a text, not {kind_of(name)}")


def _given_names(request: Request, variables: Variables, documents: list[Node]) -> tuple[str, str, str]:
    """Return ``--name``, COMPOSE_PROJECT_NAME and the file's ``name``; a missing one is empty."""
    written = _written_name(documents)
    # Errors in the file's name are reported when the whole file is substituted.
    in_file = interpolate_scalar(written, variables, Report(), VariableReferences()).text if written is not None else ""
    return request.name, variables.lookup("COMPOSE_PROJECT_NAME") or "", in_file


def _written_name(documents: list[Node]) -> Scalar | None:
    return _last_set([document.get("name") for document in documents if isinstance(document, MappingNode)])


def _last_set(values: list[Node | None]) -> Scalar | None:
    """Return the last text; a ``!reset`` without one removes those of earlier files, and one with a text is that."""
    found = None
    for node in values:
        if isinstance(node, Scalar) and not node.is_null:
            found = node
        elif node is not None and node.tag == RESET:
            found = None
    return found


def _asks_for_full_mode(variables: Variables, documents: list[Node]) -> bool:
    """Whether ``x-platform.full`` is true; the last file that has it wins, and a wrong value is reported later."""
    blocks = [document.get("x-platform") for document in documents if isinstance(document, MappingNode)]
    written = _last_set([_of_block(block, "full") for block in blocks if block is not None])
    if written is None:
        return False
    text = interpolate_scalar(written, variables, Report(), VariableReferences()).text
    return Variables.from_layers({"full": text}).flag("full", default=False)


def _of_block(block: Node, key: str) -> Node | None:
    """Return the value of a key; a block that takes the place of earlier ones removes theirs."""
    found = block.get(key) if isinstance(block, MappingNode) and block.tag != RESET else None
    is_removed = found is None and block.tag in (RESET, OVERRIDE)
    return Scalar(block.span, "", "", plain=True, tag=RESET) if is_removed else found


def _check_settings(settings: Settings, request: Request, variables: Variables) -> None:
    """Refuse invalid settings; the message leaves out the value, which may be a variable's."""
    if settings.gateway and (settings.tls_secret or settings.tls_issuer):
        raise BadSetting(
            "--tls-secret and --tls-issuer are for Ingresses; with --gateway its listener has the certificate",
            "leave them out, PLATFORM_TLS_SECRET and PLATFORM_TLS_ISSUER too",
        )
    wrong = [setting for name, setting in SETTINGS.items() if _is_wrong(setting, getattr(settings, name))]
    if wrong:
        names = ((_where_given(setting, request, variables), setting.requirement) for setting in wrong)
        raise BadSetting("; ".join(f"{name} must be {requirement}" for name, requirement in names))


def _where_given(setting: Setting, request: Request, variables: Variables) -> str:
    """Name the option, or the variable with the layer that it comes from."""
    layer = None if getattr(request, setting.name) else variables.layer_of(setting.variable)
    return f"{setting.variable} ({layer})" if layer else f"{setting.option} (or {setting.variable})"


def _is_wrong(setting: Setting, value: Value) -> bool:
    return isinstance(value, str) and value != "" and not setting.is_valid(replace_placeholders(value, "x"))
