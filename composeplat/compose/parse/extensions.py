"""Parse the keys of a service that are our own and that full mode honors."""

from __future__ import annotations

from composeplat.compose.extension_model import Extensions
from composeplat.compose.full_keys import SERVICE
from composeplat.compose.parse.autoscale import parse_autoscale
from composeplat.compose.parse.expose import parse_expose
from composeplat.compose.parse.fields import Section
from composeplat.compose.parse.patches import parse_patches


def parse_extensions(service: Section) -> Extensions:
    return Extensions(
        autoscale=parse_autoscale(service),
        expose=parse_expose(service),
        patches=parse_patches(service, f"{SERVICE}.x-kubernetes"),
    )
