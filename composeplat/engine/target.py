"""The target cluster of an operation, and its defaults for domain and registry.

Owns the choice between the kubeconfig's cluster and the local one. It does not connect; it may start the local cluster.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from composeplat.cluster.access import Access
from composeplat.cluster.api import ApiError
from composeplat.cluster.identity import cluster_identity
from composeplat.cluster.kubeconfig import KubeConfig, find_access, read_kubeconfig
from composeplat.cluster.other_clusters import OtherCluster, recognize
from composeplat.diagnostics import ComposeplatError, MissingPiece
from composeplat.local.cluster_kind import local_cluster
from composeplat.local.layout import DOMAIN, Layout
from composeplat.plan.desired import Plan
from composeplat.system.atomic import write_private
from composeplat.system.records import record

_HTTPS = 443


@record(kw_only=True)
class Target:
    access: Access
    kubeconfig: str
    """What ``KUBECONFIG`` is for the programs we start."""
    context: str = ""
    """A context other than the kubeconfig's current one."""
    namespace: str = ""
    """The context's."""
    domain: str = ""
    registry: str = ""
    https_port: int = _HTTPS
    """Where endpoints answer."""
    layout: Layout | None = None
    """The layout of the local cluster, if it is the target."""
    other: OtherCluster | None = None
    """A local cluster of another program, if it is the target."""

    def identity(self) -> str:
        try:
            return cluster_identity(self.access)
        except ApiError as error:
            hint = "check that the cluster runs, and that --context is right"
            raise MissingPiece(str(error), error.hint or ("platform cluster start" if self.layout else hint)) from error

    def log_in(self) -> None:
        """Get the credentials where a plugin may ask the user for them; a failure is that of the first request."""
        if sys.stdin is not None and sys.stdin.isatty():
            with contextlib.suppress(ComposeplatError):
                self.access.credentials.current()

    def reached_at(self, url: str) -> str:
        """An endpoint's address as it is reached from here."""
        if self.https_port == _HTTPS or not url.startswith("https:"):
            return url
        parts = urlsplit(url)
        return urlunsplit(parts._replace(netloc=f"{parts.netloc}:{self.https_port}"))

    def urls_of(self, plan: Plan) -> tuple[str, ...]:
        """The addresses of a plan's endpoints as they are reached from here."""
        return tuple(dict.fromkeys(self.reached_at(url) for endpoint in plan.endpoints for url in endpoint.urls))

    def kubeconfig_for(self, folder: Path) -> str:
        """``KUBECONFIG`` with the context of this run in front: the first is believed, and no credential is copied.

        The user may choose another current one meanwhile, and another run in this folder may have another one.
        """
        context = self.access.context
        if not context:
            return self.kubeconfig
        name = hashlib.sha256(context.encode(errors="surrogatepass")).hexdigest()[:12]
        chooser = folder / f"kubeconfig-{name}"
        write_private(chooser, json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": context}) + "\n")
        return f"{chooser}{os.pathsep}{self.kubeconfig}"


def find_target(
    environment: Mapping[str, str], *, kubeconfig: str = "", context: str = "", local: bool = False, start: bool = False
) -> Target:
    if local:
        cluster = local_cluster(environment)
        if start:
            cluster.start()
        elif not cluster.status().running:
            raise MissingPiece("the local cluster is not running", "platform cluster start")
        kubeconfig, context = str(cluster.layout.kubeconfig), ""
    config = read_kubeconfig(environment, kubeconfig)
    access = find_access(environment, kubeconfig, context)
    # Programs that are given them run elsewhere.
    paths = os.pathsep.join(str(path.absolute()) for path in config.paths)
    target = Target(
        access=access,
        kubeconfig=paths,
        namespace=config.namespace(context),
        context=context if context != config.current else "",
    )
    layout = _local_layout(environment, access)
    if layout is None:
        return replace(target, other=_recognize(config, context, access))
    return replace(
        target,
        layout=layout,
        domain=DOMAIN,
        registry=f"localhost:{layout.host_ports.registry}",
        https_port=layout.host_ports.https,
    )


def _recognize(config: KubeConfig, context: str, access: Access) -> OtherCluster | None:
    name = str(config.context(context).get("cluster") or "")
    entry, _ = config.clusters.get(name, ({}, Path()))
    return recognize(name, entry, access.host)


def _local_layout(environment: Mapping[str, str], access: Access) -> Layout | None:
    """The local cluster's layout, if it is that which the kubeconfig leads to."""
    layout = local_cluster(environment).layout
    authority = str(layout.keys / "ca.crt")
    return layout if access.authority == authority and access.port == layout.host_ports.api else None
