"""Parse ``build``."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from functools import partial

from composeplat.compose.model import Build, BuildSecret
from composeplat.compose.nodes import Mapping, Scalar
from composeplat.compose.parse.environment import absolute
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.parse.windows_paths import meant_path, refuse_windows_path
from composeplat.diagnostics import quoted

#: A base image in a local folder.
OCI_LAYOUT = "oci-layout://"
_REMOTE = r"(?:https?|git|ssh)://|git@|github\.com/|docker-image://|oci-layout://|service:|target:"
#: The options of a local cache that are folders.
_CACHE_FOLDERS = ("src", "dest")
_NETWORKS = ("default", "host", "none")


def is_remote(context: str) -> bool:
    """Whether a build context is a URL, not a local folder."""
    return re.match(_REMOTE, context) is not None


def cache_options(text: str) -> list[tuple[str, str]]:
    """Split a cache into options as BuildKit's clients do: fields of CSV with keys in any case; ValueError if none.

    An image without a key has an empty one.
    """
    try:
        (fields,) = csv.reader(text.splitlines(), strict=True)
    except csv.Error as error:
        raise ValueError(text) from error
    pairs = [field.partition("=") for field in fields]
    return [(key.lower(), value) if equals else ("", key) for key, equals, value in pairs]


def cache_folders(text: str) -> list[str]:
    """Return the folders of a cache that was parsed."""
    return [value for key, value in cache_options(text) if key in _CACHE_FOLDERS]


def with_cache_folders(text: str, change: Callable[[str], str]) -> str:
    """Return a cache with other folders, in the one form that all readers of it split alike."""
    written = io.StringIO()
    options = ((key, change(value) if key in _CACHE_FOLDERS and value else value) for key, value in cache_options(text))
    csv.writer(written, lineterminator="").writerow(f"{key}={value}" if key else value for key, value in options)
    return written.getvalue()


def parse_build(service: Section) -> Build | None:
    whole = service.get("build")
    if whole is None:
        return None
    if isinstance(whole.node, Scalar):
        context = whole.text()
        whole.ctx.origins.put_alias((*whole.path, "context"), whole.node, whole.path)
        return Build(context=_context(whole, context or "."))
    section = whole.section("services.*.build")
    return _read_build(section) if section else None


def _context(place: Field, text: str) -> str:
    if text.startswith(OCI_LAYOUT):
        return OCI_LAYOUT + absolute(place, text.removeprefix(OCI_LAYOUT))
    if is_remote(text):
        return text
    if refuse_windows_path(place, text):
        # The Dockerfile is looked for in the folder that is meant.
        text = meant_path(text) or "."
    return absolute(place, text)


def _dockerfile(place: Field | None) -> str:
    text = place.text() if place else None
    if place is None or not text:
        return ""
    return meant_path(text) if refuse_windows_path(place, text) else text


def _read_build(section: Section) -> Build:
    context = section.get("context")
    inline = section.get("dockerfile_inline")
    dockerfile = section.get("dockerfile")
    if inline and dockerfile:
        dockerfile.report("conflicting-keys", "can't be combined with dockerfile_inline", "keep one of them")
    ssh = section.fields.get("ssh")
    if ssh is not None and ssh.is_null:
        ssh.report_type("a mapping or a list")
    return Build(
        context=_context(context, context.text() or ".") if context else absolute(section.whole, "."),
        dockerfile=_dockerfile(dockerfile),
        dockerfile_inline=section.text("dockerfile_inline"),
        target=section.text("target"),
        args=_args(section),
        labels=section.mapping("labels"),
        additional_contexts=_additional_contexts(section),
        extra_hosts=_extra_hosts(section),
        cache_from=_caches(section, "cache_from"),
        cache_to=_caches(section, "cache_to"),
        platforms=section.texts("platforms"),
        secrets=_secrets(section),
        ssh=_ssh(section),
        tags=section.texts("tags"),
        network=_network(section),
        no_cache=section.boolean("no_cache", default=False),
        pull=section.boolean("pull", default=False),
    )


def _network(section: Section) -> str:
    """Read ``network``; BuildKit has three networks, and can't join those of Compose."""
    text = section.text("network")
    if text and text not in _NETWORKS:
        section.fields["network"].report(
            "no-effect", "is a network that builds can't join; they use the default network"
        )
        return ""
    return text


def _args(section: Section) -> dict[str, str]:
    """Read build arguments; the value of a bare NAME is the variable's, and without one the argument is dropped."""
    whole = section.get("args")
    args: dict[str, str] = {}
    for name, place, value in whole.pairs() if whole else ():
        found = place.variable(name) if value is None else value
        if found is not None:
            args[name] = found
    return args


def _additional_contexts(section: Section) -> dict[str, str]:
    whole = section.get("additional_contexts")
    return {name: _context(place, value or "") for name, place, value in whole.pairs()} if whole else {}


def _caches(section: Section, key: str) -> tuple[str, ...]:
    """Return the caches, with absolute folders."""
    whole = section.get(key)
    caches: list[str] = []
    for item in whole.items_or_text() if whole else ():
        text = item.text()
        if not text:
            continue
        try:
            caches.append(with_cache_folders(text, partial(absolute, item)))
        except ValueError:
            item.report("invalid-value", "must be an image, or options such as type=local,dest=./cache")
    return tuple(caches)


def _extra_hosts(section: Section) -> tuple[str, ...]:
    """Return ``host=address`` for each entry of a list or mapping; a host may have several addresses."""
    whole = section.get("extra_hosts")
    if whole is None:
        return ()
    if not isinstance(whole.node, Mapping):
        return tuple(text.replace(":", "=", 1) if "=" not in text else text for text in whole.texts())
    return tuple(f"{host}={address}" for host, place in whole.members() for address in place.texts())


def _secrets(section: Section) -> tuple[BuildSecret, ...]:
    whole = section.get("secrets")
    found = (_read_secret(item) for item in (whole.items() if whole else ()))
    return tuple(secret for secret in found if secret is not None)


def _read_secret(item: Field) -> BuildSecret | None:
    """Read a reference to a top-level secret, which may have another name in the Dockerfile."""
    inner = item.section("services.*.build.secrets.*") if isinstance(item.node, Mapping) else None
    place = inner.get("source") if inner else item
    if place is None or not isinstance(place.node, Scalar) or place.node.is_null:
        item.report_type("a secret's name, or a mapping with a 'source'")
        return None
    source = place.node.text
    name = inner.text("target", source) if inner else source
    declared = item.ctx.secrets.get(source)
    if not isinstance(declared, Mapping):
        shown = place.node.shown
        hint = f"declare it: secrets: {{{source}: {{file: ./{source}.txt}}}}" if not place.node.is_substituted else ""
        place.report("invalid-value", f"names a secret that the top-level 'secrets' does not declare: {shown}", hint)
        return None
    file, variable = declared.get("file"), declared.get("environment")
    if isinstance(file, Scalar) and file.text:
        item.ctx.origins.put((*item.path, "file"), file)
        path = absolute(Field(item.ctx, file, ("secrets", source, "file")), file.text)
        return BuildSecret(name=name, source=source, file=path)
    if isinstance(variable, Scalar) and variable.text:
        place, is_hidden = Field(item.ctx, variable, ("secrets", source, "environment")), variable.is_substituted
        value = (place.variables.lookup if is_hidden else place.variable)(variable.text)
        written = variable.shown if is_hidden else ""
        return BuildSecret(name=name, source=source, variable=variable.text, written=written, value=value)
    message = f"names a secret that has neither 'file' nor 'environment': {quoted(place.node.written)}"
    place.report("invalid-value", message, "a build reads a secret from a file or a variable of this machine")
    return None


def _ssh(section: Section) -> tuple[str, ...]:
    """Return ``ID`` or ``ID=path``; a path is relative to its file."""
    whole = section.get("ssh")
    if whole is None:
        return ()
    if isinstance(whole.node, Scalar):
        return tuple(_with_paths(whole, *text.partition("=")[::2]) for text in whole.texts())
    return tuple(_with_paths(place, name, value or "") for name, place, value in whole.pairs())


def _with_paths(place: Field, name: str, paths: str) -> str:
    return f"{name}={','.join(absolute(place, path) for path in paths.split(','))}" if paths else name
