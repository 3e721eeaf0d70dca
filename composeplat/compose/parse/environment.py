"""Parse ``environment`` and ``env_file``."""

from __future__ import annotations

import os.path
import re

from composeplat.compose.model import EnvFile
from composeplat.compose.nodes import Mapping, Scalar, Sequence
from composeplat.compose.origins import env_file_path, env_file_source_path
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.parse.swarm_templates import describe_template
from composeplat.compose.parse.windows_paths import refuse_windows_path
from composeplat.compose.pasted_text import pasted_hint
from composeplat.compose.values import parse_path
from composeplat.diagnostics import quoted
from composeplat.names import is_env_name


def parse_environment(service: Section) -> dict[str, str | None]:
    """Read the variables; the value of a bare name is the variable's of the command."""
    variables: dict[str, str | None] = {}
    whole = service.get("environment")
    for name, place, value in whole.pairs() if whole else ():
        if not name and value is None and place.node.is_substituted:
            continue  # as in ${DEBUG:+DEBUG=1}
        if not is_env_name(name):
            _report_name(place, name, value, is_item=isinstance(whole.node, Sequence) if whole else False)
            continue
        variables[name] = place.variable(name) if value is None else value
        # A list, which files that are merged give too, has the variable at a number.
        place.ctx.origins.put((*place.path[:-1], name), place.node)
        template = describe_template(variables[name] or "")
        if template:
            place.report("swarm-template", f"{template[0]}: the text stays as it is", template[1])
    return variables


def _report_name(place: Field, name: str, value: str | None, *, is_item: bool) -> None:
    """Report a name that no variable can have; that of a list entry may contain a variable's value, and is left out."""
    written = place.node.written if isinstance(place.node, Scalar) else ""
    is_hidden = is_item and "$" in written.partition("=")[0]
    shown = "" if is_hidden else f", not {quoted(name)}"
    expected = f"must have a name of letters, digits, '_', '-' and '.', not beginning with a digit{shown}"
    place.report("invalid-name", expected, "" if is_hidden else _name_hint(name, value))


def name_without_colons(name: str) -> str:
    """Return the name by which .NET finds a nested setting where ':' is not possible; empty for other names."""
    other = name.replace(":", "__")
    return other if other != name and is_env_name(other) else ""


def _name_hint(name: str, value: str | None) -> str:
    if value is None and is_env_name(name.partition(":")[0]):
        return "write '=' after the name, not ':'"
    if other := name_without_colons(name):
        return f"write {quoted(other)}: .NET reads '__' as ':'"
    if name != name.strip():
        return "leave out the spaces around '='"
    return pasted_hint(name) or ("write NAME=value, or leave it out" if value is None else "")


def parse_env_files(service: Section) -> tuple[EnvFile, ...]:
    whole = service.get("env_file")
    if whole is None:
        return ()
    files: list[EnvFile] = []
    for item in whole.items_or_text():
        read = _read_env_file(item)
        if read is not None:
            name = str(service.whole.path[1])
            place = item.node.get("path") if isinstance(item.node, Mapping) else item.node
            item.ctx.origins.put_alias(env_file_path(name, len(files)), item.node, item.path)
            if place is not None:
                item.ctx.origins.put_alias(env_file_source_path(name, len(files)), place, item.path)
            files.append(read)
    return tuple(files)


def _read_env_file(item: Field) -> EnvFile | None:
    if isinstance(item.node, Scalar):
        path = item.value(parse_path)
        return EnvFile(path=absolute(item, path)) if path and not refuse_windows_path(item, path) else None
    section = item.section("services.*.env_file.*")
    if section is None:
        return None
    place = section.get("path")
    path = place.value(parse_path) if place else None
    if place is None:
        item.report("missing-key", "must have a 'path'")
    if place is None or not path or refuse_windows_path(place, path):
        return None
    style, required = section.get("format"), section.get("required")
    return EnvFile(
        path=absolute(place, path),
        # With a wrong value, an error about a missing file could be a consequence of it.
        required=required is None or bool(required.boolean()),
        raw=style is not None and style.choice("raw") == "raw",
    )


def absolute(place: Field, path: str) -> str:
    """Return the absolute path; a relative one is relative to the folder of its file."""
    if path == "~" or path.startswith("~/"):
        path = place.ctx.home + path[1:] if place.ctx.home else path
    # POSIX keeps two slashes at the start apart from one; Windows shells write them for a path of the engine's machine.
    return re.sub(r"\A//", "/", os.path.normpath(os.path.join(place.base, path)))
