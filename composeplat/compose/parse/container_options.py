"""Parse the keys of a container that have an effect in full mode alone."""

from __future__ import annotations

from composeplat.compose.parse.fields import Section
from composeplat.compose.pod_model import ContainerOptions


def parse_container_options(section: Section) -> ContainerOptions:
    return ContainerOptions(
        privileged=section.boolean("privileged", default=False),
        read_only=section.boolean("read_only", default=False),
        stdin_open=section.boolean("stdin_open", default=False),
        tty=section.boolean("tty", default=False),
    )
