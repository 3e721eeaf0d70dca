"""What a front door asks for: every input of a reading, as plain values.

Owns the one value between the command line, Pulumi programs and the reader.
Must not read anything itself: the shell's variables, the folder and standard input come in here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from composeplat.registry.credentials import Login


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    files: tuple[str, ...] = ()
    """Files as named with ``-f``; ``-`` is standard input; none means to look for one."""
    folder: Path
    """Where the caller stands."""
    env_files: tuple[str, ...] = ()
    allow_outside: bool = False
    """Whether the definition may name files outside the project."""
    outside_option: str = ""
    """How the caller would say so, where that is not by the command line's option; messages name it."""
    shell: Mapping[str, str] = field(default_factory=dict)
    platform: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    namespace: str = ""
    context_namespace: str = ""
    """The namespace of the kubeconfig's current context: used where nothing else says one."""
    domain: str = ""
    usual_domain: str = ""
    """The cluster's own domain: used where nothing else says one."""
    usual_registry: str = ""
    ingress_class: str = ""
    gateway: str = ""
    tls_secret: str = ""
    tls_issuer: str = ""
    pod_security: str = ""
    registry: str = ""
    publishes: bool = True
    """Whether what host volumes and env files hold may be published; where not, one that can't be is no error."""
    pull_secret: bool = False
    """Whether pods are given the user's logins for the registries they pull from."""
    logins: Mapping[str, Login] = field(default_factory=dict, repr=False)
    """Logins that are given, by registry; they come before those of the Docker configuration."""
    standard_input: bytes | None = None
    """What ``-`` stands for, where it is not the process's own standard input."""
