"""Parse the keys of a service that are our own and that full mode honors."""

from __future__ import annotations

from composeplat.compose.extension_model import Extensions
from composeplat.compose.parse.autoscale import parse_autoscale
from composeplat.compose.parse.expose import parse_expose
from composeplat.compose.parse.fields import Section


def parse_extensions(service: Section) -> Extensions:
    return Extensions(autoscale=parse_autoscale(service), expose=parse_expose(service))
