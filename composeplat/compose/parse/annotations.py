"""Parse annotations: ``labels``, ``deploy.labels``, ``annotations`` and a volume's ``labels``."""

from __future__ import annotations

from composeplat.compose.origins import annotation_path
from composeplat.compose.parse.fields import Section
from composeplat.compose.parse.kompose_labels import LABELS, PREFIX, replacement_of
from composeplat.names import is_key


def parse_annotations(section: Section, key: str) -> dict[str, str]:
    """Parse the pairs; a name that is not valid in Kubernetes gets a warning."""
    found = section.get(key)
    kept: dict[str, str] = {}
    for name, place, value in found.pairs() if found else ():
        if name.startswith(PREFIX):
            # The name of a list entry may contain a variable's value.
            shown = f"the label '{name}'" if name in LABELS else "a label"
            place.report("kompose-label", f"has {shown} of kompose, which has no effect here", replacement_of(name))
        if is_key(name):
            kept[name] = value or ""
            place.ctx.origins.put_alias(annotation_path(section.whole.path[:2], name), place.node, place.path)
        else:
            place.report(
                "no-effect",
                "has a name that is not valid for a Kubernetes annotation, and is left out",
                "at most 63 letters, digits, '-', '_' and '.', after an optional DNS name and '/'",
            )
    return kept
