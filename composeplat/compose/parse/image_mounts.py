"""Parse a volume with the files of an image, which has an effect in full mode alone."""

from __future__ import annotations

from composeplat.compose.model import IMAGE, Mount
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.values import clean_sub_path, clean_target, parse_image


def parse_image_mount(item: Field, section: Section) -> Mount | None:
    """Read a mount of ``type: image``, which nobody can write to; None if it can't be read."""
    for key, meaning in (("target", "the path inside the container"), ("source", "the image")):
        if section.get(key) is None:
            item.report("missing-key", f"must have a '{key}', {meaning}")
    target, source = section.optional("target", clean_target), section.optional("source", parse_image)
    inner = section.section("image", "services.*.volumes.*.image")
    sub_path = inner.optional("subpath", lambda text: clean_sub_path(text.lstrip("/"))) if inner else None
    own = section.optional("sub_path", clean_sub_path)
    written = section.get("read_only")
    if written is not None and not section.boolean("read_only", default=True):
        written.report("no-effect", "has no effect: nobody can write to the files of an image", "leave it out")
    if target is None or source is None:
        return None
    return Mount(kind=IMAGE, target=target, source=source, sub_path=own or sub_path or "", read_only=True)
