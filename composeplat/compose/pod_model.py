"""The part of the model that full mode alone reads for pods and their containers.

Owns the dataclasses of these keys; their defaults are what a service without the key has, so that planning needs no
mode.
Must not know YAML or Kubernetes, as :mod:`composeplat.compose.model`, which has them as fields of a service.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerOptions:
    privileged: bool = False
    read_only: bool = False
    """The root file system can't be written to; volumes can."""
    stdin_open: bool = False
    tty: bool = False
