"""The cluster of a program, where no Kubernetes provider is given: that of Pulumi's default provider.

Owns what the configuration of the stack says of it, in keys such as ``kubernetes:context``, and when hooks can't ask
it: its kubeconfig is a text of the configuration, the provider writes files instead, or the program is a unit test with
mocks.
"""

from __future__ import annotations

import os
from typing import Any

import pulumi
from pulumi.runtime.config import get_config
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.settings import get_monitor

from composeplat.cluster.access import Access
from composeplat.cluster.kubeconfig import DEFAULT_NAMESPACE, find_access, parse_kubeconfig, read_kubeconfig
from composeplat.diagnostics import MissingPiece
from composeplat.system.records import record

#: The provider of one type is that of the whole package.
KUBERNETES_TYPE = "kubernetes:core/v1:Namespace"
_HINT = "point KUBECONFIG to a kubeconfig with a current context, or let Pulumi wait: waits=False"


@record(kw_only=True)
class DefaultCluster:
    path: str = ""
    """A kubeconfig that the configuration names, instead of ``KUBECONFIG``."""
    context: str = ""
    configured_namespace: str = ""
    is_readable: bool = True
    """Whether it is in a kubeconfig that can be read here."""

    @classmethod
    def of(cls, resource: pulumi.Resource, *, waits: bool | None = None) -> DefaultCluster:
        """Return the cluster of a component. A provider of the caller may be for any, unless ``waits`` is given."""
        if resource.get_provider(KUBERNETES_TYPE) is not None:
            return cls(is_readable=bool(waits))
        given, context = _configured("kubeconfig"), _configured("context")
        path = os.path.expanduser(given)
        is_text = bool(given) and not os.path.isfile(path)
        is_elsewhere = is_text or _configured("cluster") or _configured("renderYamlToDirectory")
        return cls(
            path="" if is_text else path,
            context=context,
            configured_namespace=_configured("namespace") or (_namespace_in(given, context) if is_text else ""),
            is_readable=not is_elsewhere or bool(waits),
        )

    @property
    def namespace(self) -> str:
        return self.configured_namespace or read_kubeconfig(os.environ, self.path).namespace(self.context)

    @property
    def name(self) -> str:
        """Its context, for messages; empty if only the provider knows it."""
        if not self.is_readable:
            return ""
        return self.context or read_kubeconfig(os.environ, self.path).current

    def access(self) -> Access | None:
        """Return how hooks reach it; None in a unit test with mocks, which calls no hook."""
        try:
            return find_access(os.environ, self.path, self.context)
        except MissingPiece as error:
            if is_mocked():
                return None
            raise pulumi.RunError(f"{error}\n  hint: {_HINT}") from error


def is_mocked() -> bool:
    return isinstance(get_monitor(), MockMonitor)


def _namespace_in(kubeconfig: str, context: str) -> str:
    """Return the namespace of a kubeconfig that is a text: that of another cluster's context must not count."""
    return parse_kubeconfig(kubeconfig).namespace(context) or DEFAULT_NAMESPACE


def _configured(key: str) -> str:
    found: Any = get_config(f"kubernetes:{key}")
    return str(found or "")
