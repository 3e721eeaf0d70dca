"""Parse ``label_file``: the paths of files with labels, which are read later."""

from __future__ import annotations

from collections.abc import Collection

from composeplat.compose.origins import label_file_path
from composeplat.compose.parse.environment import absolute
from composeplat.compose.parse.fields import Section
from composeplat.compose.parse.windows_paths import refuse_windows_path
from composeplat.compose.pod_model import LabelFiles
from composeplat.compose.values import parse_path


def parse_label_files(section: Section, own: Collection[str]) -> LabelFiles:
    """Read the paths; ``own`` are the names in ``labels``, which win over the files."""
    whole = section.get("label_file")
    paths: list[str] = []
    for item in whole.items_or_text() if whole else ():
        path = item.value(parse_path)
        if path and not refuse_windows_path(item, path):
            name = str(section.whole.path[1])
            item.ctx.origins.put_alias(label_file_path(name, len(paths)), item.node, item.path)
            paths.append(absolute(item, path))
    return LabelFiles(paths=tuple(paths), names=frozenset(own) if paths else frozenset())
