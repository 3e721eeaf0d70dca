"""The documents that the page shows and no command prints: the definition with its graph, files and variables.

Owns which texts of the definition the page gets: never the value of a variable, and files with secrets masked, line by
line, so that line numbers stay.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

from composeplat import __version__, progress
from composeplat.cli.console import as_data, clean_line, place_row
from composeplat.cluster.logs import LogLine
from composeplat.compose.load import Loaded
from composeplat.compose.options import UNKNOWN_DOMAIN
from composeplat.compose.variables import looks_secret
from composeplat.diagnostics import Report, Source
from composeplat.plan import Plan
from composeplat.plan.service_graph import Graph, make_graph
from composeplat.render.graph_svg import lay_out_graph
from composeplat.ui.log_batches import Line

_MAX_FILE_CHARS = 1_000_000

Row = dict[str, object]


def definition_document(loaded: Loaded, plan: Plan, *, cluster: str, strict: bool) -> dict[str, object]:
    knows_domain = loaded.settings.domain not in ("", UNKNOWN_DOMAIN)
    found = {
        "environment": plan.environment,
        "namespace": plan.namespace,
        "cluster": cluster,
        "stamp": read_stamp(loaded, plan),
        "graph": graph_row(make_graph(loaded.project, plan, with_urls=knows_domain)),
        "files": [_file_row(source) for source in loaded.origins.sources()],
        "services": [_service_row(loaded, service.name) for service in plan.services],
        "variables": [
            {"name": found.name, "source": found.layer or "default", "is_secret": looks_secret(found.name)}
            for found in loaded.references
        ],
        "diagnostics": _diagnostic_rows(loaded.report, strict=strict),
    }
    return cast(Row, progress.masked_data(found))


def with_errors(document: Mapping[str, object], loaded: Loaded, *, strict: bool) -> dict[str, object]:
    """Return the document of a definition before it had errors, with these, and with the files as they are now."""
    report, before = loaded.report, cast("list[Row]", document["files"])
    # A file with an error has no part in the model. An env file can have one too, and its text is values of variables.
    named = {os.path.realpath(path) for path in (*loaded.files, *(str(row["path"]) for row in before))}
    wrong = (found.span.source for found in report.sorted())
    sources = [*loaded.origins.sources(), *(source for source in wrong if os.path.realpath(source.name) in named)]
    files = {row["path"]: row for row in (*before, *map(_file_row, sources))}
    rows = list(files.values())
    stamp = _hash([document["stamp"], rows])
    return {**document, "stamp": stamp, "files": rows, "diagnostics": _diagnostic_rows(report, strict=strict)}


def _file_row(source: Source) -> Row:
    return {"path": source.name, "text": _masked_lines(source.text)}


def _diagnostic_rows(report: Report, *, strict: bool) -> list[object]:
    return [progress.masked_data(as_data(found, strict=strict)) for found in report.sorted()]


def page_document(environments: Iterable[Mapping[str, object]], **fields: object) -> dict[str, object]:
    shown = {"version": __version__, "read_only": False, "exported": False, "written": "", "notes": []}
    return {**shown, **fields, "environments": list(environments)}


def log_row(line: LogLine, names: Mapping[str, str]) -> Line:
    """Return a log line as the page has it; ``names`` has the services by their names in the cluster."""
    # A color within a secret would hide it from the mask, and is not shown.
    text = progress.masked_text(clean_line(line.text))
    return line.time, names.get(line.service, line.service), line.pod, text, line.is_one_off, line.container


def read_stamp(loaded: Loaded, plan: Plan) -> str:
    """Return a text that differs when the files or the planned objects do. It reveals nothing of either."""
    texts = [(source.name, source.text) for source in loaded.origins.sources()]
    return _hash([texts, [desired.manifest for desired in plan.objects]])


def _hash(data: object) -> str:
    text = json.dumps(data, sort_keys=True, default=str)
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()


def changed_files(loaded: Loaded) -> tuple[tuple[int, int] | None, ...]:
    """Return when each file of a definition was changed; another answer means that it has to be read again."""
    sources: Iterable[Source] = loaded.origins.sources()
    paths = {*(Path(source.name) for source in sources), *map(Path, loaded.files), Path(".env"), loaded.folder / ".env"}
    # Layers of variables have the names of their files.
    paths |= {Path(label) for label, _ in loaded.variables.layers}
    paths |= {Path(file.path) for service in loaded.project.services.values() for file in service.env_files}
    return tuple(map(_file_state, sorted(paths)))


def _file_state(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _masked_lines(text: str) -> str:
    return "\n".join(map(progress.masked_text, text[:_MAX_FILE_CHARS].split("\n")))


def _service_row(loaded: Loaded, name: str) -> dict[str, object]:
    return {
        "service": name,
        "place": place_row(loaded.origins.key_at("services", name)),
        "variables": [
            {"name": variable, "is_secret": looks_secret(variable), "source": _source_of(loaded, name, variable)}
            for variable in loaded.project.services[name].variables
        ],
    }


def _source_of(loaded: Loaded, service: str, variable: str) -> str:
    """Return the file and line that gives a service a variable; empty if the definition does not write it."""
    path = ("services", service, "environment", variable)
    if not loaded.origins.has(*path):
        return ""
    place = loaded.origins.at(*path)
    return f"{place.source.name}:{place.line}"


def graph_row(graph: Graph) -> dict[str, object]:
    layout = lay_out_graph(graph)
    return {
        "title": graph.title,
        "width": layout.size.width,
        "height": layout.size.height,
        "nodes": [
            {
                "key": node.key,
                "kind": node.kind,
                "name": node.name,
                "details": list(node.details),
                "x": layout.boxes[node.key].x,
                "y": layout.boxes[node.key].y,
                **layout.boxes[node.key].size._asdict(),
            }
            for node in graph.nodes
        ],
        "edges": [
            {
                "source": edge.source,
                "target": edge.target,
                "label": edge.label,
                "points": layout.lines[edge.source, edge.target],
            }
            for edge in graph.edges
        ],
    }
