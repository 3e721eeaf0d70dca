"""The cluster of a program, where no Kubernetes provider is given: that of Pulumi's default provider.

Owns what the configuration of the stack says of it, in keys such as ``kubernetes:context``, and when hooks can't ask
it: its kubeconfig is a text of the configuration, the provider writes files instead, or the program is a unit test with
mocks.
Of a Kubernetes provider of the caller, owns the warning about its namespace, which is only known once Pulumi has it.
"""

from __future__ import annotations

import os
from typing import Any

import pulumi
from pulumi.output import contains_unknowns
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
    provider: pulumi.ProviderResource | None = None
    """That of the caller, which may be for any cluster."""

    @classmethod
    def of(cls, resource: pulumi.Resource, *, waits: bool | None = None) -> DefaultCluster:
        """Return the cluster of a component. A provider of the caller may be for any, unless ``waits`` is given."""
        provider = resource.get_provider(KUBERNETES_TYPE)
        if provider is not None:
            return cls(is_readable=bool(waits), provider=provider)
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

    def warn_of_namespace(self, component: pulumi.Resource, namespace: str) -> None:
        """Warn where the caller's provider has another namespace than the default, which decides the plan."""
        if self.provider is None:
            return
        done: pulumi.Output[Any] = pulumi.Output.from_input(_warn_of_namespace(component, namespace, self.provider))
        done.apply(lambda _: None)

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


async def _warn_of_namespace(component: pulumi.Resource, namespace: str, provider: pulumi.ProviderResource) -> None:
    settings = [await _setting(provider, key) for key in ("kubeconfig", "context", "namespace")]
    if contains_unknowns(settings):
        return
    kubeconfig, context, configured = (str(setting or "") for setting in settings)
    other = configured or _provider_namespace(kubeconfig, context)
    if other != namespace:
        hint = f"give it namespace={other!r}, or namespace={namespace!r} if that is meant"
        text = f"its objects are in namespace '{namespace}', although the provider's namespace is '{other}'"
        pulumi.log.warn(f"{text}\n  hint: {hint}", resource=component)


async def _setting(provider: pulumi.ProviderResource, key: str) -> Any:
    """Return a setting, None if it is not given: in a preview, the output of such a one is not known."""
    output: pulumi.Output[Any] | None = getattr(provider, key, None)
    # A provider of another process has none of these outputs.
    return None if output is None else await output.future(with_unknowns=True)


def _provider_namespace(kubeconfig: str, context: str) -> str:
    path = os.path.expanduser(kubeconfig)
    # The class of Pulumi's SDK takes this variable for a kubeconfig that is not given.
    is_ambient = kubeconfig in ("", os.environ.get("KUBECONFIG"))
    if not is_ambient and not os.path.isfile(path):
        return _namespace_in(kubeconfig, context)
    return read_kubeconfig(os.environ, "" if is_ambient else path).namespace(context) or DEFAULT_NAMESPACE


def _namespace_in(kubeconfig: str, context: str) -> str:
    """Return the namespace of a kubeconfig that is a text: that of another cluster's context must not count."""
    return parse_kubeconfig(kubeconfig).namespace(context) or DEFAULT_NAMESPACE


def _configured(key: str) -> str:
    found: Any = get_config(f"kubernetes:{key}")
    return str(found or "")
