"""The parts of the cluster: their programs, arguments, files and networks, and when each is ready.

Pure: a table made from the layout. The supervisor starts the parts in this order, and restarts those that end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from composeplat.local import etcd, metrics
from composeplat.local.builder import builder_arguments, builder_environment, builder_files
from composeplat.local.cleaner import cleaner_arguments
from composeplat.local.containerd import containerd_config
from composeplat.local.docker_settings import RegistrySettings
from composeplat.local.layout import (
    API_PORT,
    BUILD_USER,
    CLUSTER_DOMAIN,
    DNS_SERVICE,
    EGRESS_RESOLVER,
    ETCD_PEER_PORT,
    ETCD_PORT,
    HTTP_PORT,
    HTTPS_PORT,
    IMAGE_CACHE_BYTES,
    METRICS_PORT,
    MIRROR_PORT,
    NODE,
    NODE_ADDRESS,
    NODE_POD_RANGE,
    POD_RANGE,
    REGISTRY_PORT,
    SERVICE_RANGE,
    Layout,
)
from composeplat.local.networks import egress_arguments
from composeplat.local.node_registries import node_registries
from composeplat.local.supervisor import Network
from composeplat.system.processes import python_module
from composeplat.system.records import record


@record(kw_only=True)
class Part:
    """One process."""

    name: str
    args: tuple[str, ...]
    network: Network = Network.CLUSTER
    """With the host's network, a part can listen on its loopback, and reach other machines."""
    ready: str = ""
    """``unix:PATH`` or ``tcp:HOST:PORT`` that answers when the part is ready; none is ready at once."""
    environment: Mapping[str, str] | None = None
    needs: tuple[str, ...] = ()
    starts_after: str = ""
    """A file that the part waits for; the cluster is ready without such a part."""
    keeps_data: bool = False
    """Such a part has time to end; the others can be killed at any time."""


@record(kw_only=True)
class Programs:
    """The paths of the programs."""

    kube: str
    coredns: str
    registry: str
    frontdoor: str
    buildkitd: str
    containerd: str
    shim: str
    """What containerd starts beside each pod."""
    python: str
    cni: str
    search_path: str
    mirror: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The variables of the user who starts the cluster: proxies, and where Docker's logins are."""
    registries: RegistrySettings = field(default_factory=RegistrySettings)
    """Settings in Docker's files on this machine."""
    slirp4netns: str = ""
    """Leads the steps of builds out; without it they have no network."""
    ctr: str = ""
    buildx: str = ""
    """Lists and deletes the builder's layers; empty while nothing has needed it."""


def make_parts(layout: Layout, programs: Programs) -> tuple[Part, ...]:
    keys, etc, folder, run = layout.keys, layout.etc, layout.folder, layout.run
    kube = programs.kube
    inner = f"--kubeconfig={layout.inner_kubeconfig}"
    paths = {"PATH": programs.search_path, "HOME": str(folder)}
    # A containerd that starts again looks there for the shim of each pod, and ends those whose shim it can't find.
    shims = {**paths, "PATH": f"{Path(programs.shim).parent}:{programs.search_path}"}
    pipes_in, pipes_out = [], []
    for name, (outside, inside) in layout.host_ports.pairs().items():
        pipes_in += [f"unix:{run / name}.sock", f"tcp:127.0.0.1:{inside}"]
        # The API asks for a token, endpoints are for all; the registry asks for nothing, and pods run what is in it.
        network = f"own+{BUILD_USER}" if name == "registry" else "tcp"
        pipes_out += [f"{network}:127.0.0.1:{outside}", f"unix:{run / name}.sock"]
    mirror = f"own+{BUILD_USER}:{layout.build_mirror_host}:{layout.host_ports.registry}"
    pipes_out += [mirror, f"unix:{layout.mirror_socket}"]
    # A pod on the node's network, not as root, is not let in.
    pipes_in += [f"own:127.0.0.1:{MIRROR_PORT}", f"unix:{layout.mirror_socket}"]
    egress = Part(
        name="egress",
        args=egress_arguments(programs.frontdoor, programs.slirp4netns),
        network=Network.HOST,
        environment=paths,
    )
    return (
        Part(
            name="etcd",
            args=(
                kube, "etcd", *etcd.etcd_arguments(layout, client_port=ETCD_PORT, peer_port=ETCD_PEER_PORT),
                "--auto-compaction-retention=1",
            ),
            ready=f"tcp:127.0.0.1:{ETCD_PORT}",
            keeps_data=True,
        ),
        Part(
            name="registry",
            args=(programs.registry, "serve", str(etc / "registry.yaml")),
            environment={**paths, "OTEL_TRACES_EXPORTER": "none"},
            keeps_data=True,
            ready=f"tcp:127.0.0.1:{REGISTRY_PORT}",
        ),
        Part(name="ports-inside", args=(programs.frontdoor, "pipe", *pipes_in), ready=f"unix:{run / 'api'}.sock"),
        Part(
            name="ports-outside",
            args=(programs.frontdoor, "pipe", "--held", *pipes_out),
            network=Network.HOST,
            needs=("ports-inside",),
        ),
        *([egress] if _leads_out(layout, programs) else []),
        Part(
            name="mirror",
            args=(
                programs.mirror, str(layout.mirror_socket), str(layout.mirror_cache), str(_cache_limit(layout)),
                str(programs.registries.certificates), *programs.registries.insecure,
            ),
            network=Network.HOST,
            environment={**programs.environment, "PATH": programs.search_path},
            ready=f"unix:{layout.mirror_socket}",
        ),
        Part(
            name="containerd",
            args=(programs.containerd, "--config", str(etc / "containerd.toml"), "--log-level=warn"),
            environment=shims,
            ready=f"unix:{layout.containerd_socket}",
            needs=("registry",),
        ),
        Part(
            name="kube-apiserver",
            args=(
                kube, "kube-apiserver", *etcd.api_server_arguments(layout, client_port=ETCD_PORT),
                *metrics.api_server_arguments(layout),
                f"--secure-port={API_PORT}", f"--advertise-address={NODE_ADDRESS}",
                f"--tls-cert-file={keys / 'api.crt'}",
                f"--tls-private-key-file={keys / 'api.key'}", f"--client-ca-file={keys / 'ca.crt'}",
                f"--token-auth-file={keys / 'tokens.csv'}", "--authorization-mode=Node,RBAC", "--allow-privileged",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={keys / 'accounts.key'}",
                f"--service-account-signing-key-file={keys / 'accounts.key'}",
                f"--service-cluster-ip-range={SERVICE_RANGE}", "--kubelet-preferred-address-types=InternalIP",
                f"--kubelet-client-certificate={keys / 'api-to-kubelet.crt'}",
                f"--kubelet-client-key={keys / 'api-to-kubelet.key'}", f"--cert-dir={folder / 'api'}",
            ),
            ready=f"tcp:127.0.0.1:{API_PORT}",
            needs=("etcd",),
        ),
        Part(
            name="kube-controller-manager",
            args=(
                kube, "kube-controller-manager", inner, "--leader-elect=false", "--allocate-node-cidrs",
                f"--cluster-cidr={POD_RANGE}", f"--service-cluster-ip-range={SERVICE_RANGE}",
                f"--root-ca-file={keys / 'ca.crt'}", f"--service-account-private-key-file={keys / 'accounts.key'}",
                "--use-service-account-credentials", "--kube-api-qps=200", "--kube-api-burst=400",
                # A suspended laptop is not a failed node: its pods wait for it.
                "--node-monitor-grace-period=60s", "--bind-address=127.0.0.1",
                # Metrics are new every 10 s; by default they would be read every 15 s.
                "--horizontal-pod-autoscaler-sync-period=5s",
            ),
            needs=("kube-apiserver",),
        ),
        Part(
            name="kube-scheduler",
            args=(kube, "kube-scheduler", inner, "--leader-elect=false", "--bind-address=127.0.0.1"),
            needs=("kube-apiserver",),
        ),
        Part(
            name="kubelet",
            args=(
                kube, "kubelet", inner, f"--config={etc / 'kubelet.yaml'}", f"--hostname-override={NODE}",
                f"--node-ip={NODE_ADDRESS}", f"--root-dir={folder / 'kubelet'}",
                f"--cert-dir={folder / 'kubelet-keys'}",
            ),
            environment=paths,
            needs=("kube-apiserver", "containerd"),
        ),
        Part(
            name="kube-proxy",
            args=(
                kube, "kube-proxy", inner, f"--hostname-override={NODE}", "--proxy-mode=iptables",
                f"--cluster-cidr={POD_RANGE}", "--conntrack-max-per-core=0",
                f"--nodeport-addresses=127.0.0.0/8,{NODE_ADDRESS}/32",
                "--healthz-bind-address=127.0.0.1:10256",
                # A pod that is ready is reached 0.1 s later, not up to 1 s; rules that could not be written are
                # written again after 5 s, not after 30 s.
                "--iptables-min-sync-period=100ms", "--iptables-sync-period=5s",
            ),
            environment=paths,
            needs=("kube-apiserver",),
        ),
        Part(
            name="coredns",
            args=(programs.coredns, "-conf", str(etc / "Corefile"), "-quiet"),
            ready=f"tcp:{NODE_ADDRESS}:53",
            needs=("kube-apiserver",),
        ),
        Part(
            name="ingress",
            args=(
                programs.frontdoor, "ingress", str(layout.ingress), f"127.0.0.1:{HTTPS_PORT}", f"127.0.0.1:{HTTP_PORT}",
                str(layout.host_ports.https),
            ),
            ready=f"tcp:127.0.0.1:{HTTPS_PORT}",
        ),
        Part(
            name="controllers",
            args=(
                *python_module(programs.python, "composeplat.local.controllers"),
                str(folder), str(API_PORT), str(layout.states),
            ),
            needs=("kube-apiserver",),
        ),
        Part(
            name="cleaner",
            args=cleaner_arguments(layout, programs.python, ctr=programs.ctr, buildx=programs.buildx),
            # The folder of sockets is in memory, so that a full disk can be cleaned.
            environment={**paths, "TMPDIR": str(run)},
            needs=("containerd",),
        ),
        Part(
            name=metrics.METRICS_SERVER,
            args=(kube, *metrics.metrics_server_arguments(layout)),
            ready=f"tcp:127.0.0.1:{METRICS_PORT}",
            needs=("kube-apiserver", "kubelet"),
            starts_after=str(layout.ready_mark),
        ),
        Part(
            name="buildkitd",
            args=builder_arguments(layout, programs.frontdoor, programs.slirp4netns),
            network=Network.HOST,
            environment=builder_environment(layout, programs.search_path, programs.environment),
            ready=f"unix:{layout.buildkit_socket}",
            keeps_data=True,
            needs=("registry",),
        ),
    )  # fmt: skip


def _cache_limit(layout: Layout) -> int:
    limit = layout.image_cache or IMAGE_CACHE_BYTES
    return min(limit, layout.disk_limit or limit)


def _leads_out(layout: Layout, programs: Programs) -> bool:
    return layout.egress and bool(programs.slirp4netns)


# configuration files --------------------------------------------------------------------------------------------------


def make_files(layout: Layout, programs: Programs, token: str) -> dict[Path, str]:
    """The files the parts read: path -> text."""
    etc = layout.etc
    return {
        layout.inner_kubeconfig: kubeconfig(f"https://127.0.0.1:{API_PORT}", layout, token),
        layout.kubeconfig: kubeconfig(f"https://127.0.0.1:{layout.host_ports.api}", layout, token),
        etc / "registry.yaml": _REGISTRY.format(folder=layout.registry, port=REGISTRY_PORT),
        etc / "containerd.toml": containerd_config(layout, cni=programs.cni, shim=programs.shim),
        etc / "cni" / "10-pods.conflist": json.dumps(_network(), indent=1),
        **node_registries(layout),
        etc / "kubelet.yaml": json.dumps(_kubelet(layout), indent=1),
        etc / "resolv.conf": f"nameserver {NODE_ADDRESS}\n",
        etc / "Corefile": _COREFILE.format(
            domain=CLUSTER_DOMAIN,
            address=NODE_ADDRESS,
            kubeconfig=layout.inner_kubeconfig,
            outside=_FORWARD.format(resolver=EGRESS_RESOLVER) if _leads_out(layout, programs) else "",
        ),
        **builder_files(layout, programs.cni, programs.registries),
    }


def kubeconfig(server: str, layout: Layout, token: str) -> str:
    name = "composeplat-local"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": server, "certificate-authority": str(layout.keys / "ca.crt")}}
        ],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return json.dumps(config, indent=1) + "\n"


def _network() -> dict[str, object]:
    bridge = {
        "type": "bridge",
        "bridge": "pods",
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": NODE_POD_RANGE}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    return {
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}],
    }


def _kubelet(layout: Layout) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "failSwapOn": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{layout.cgroup}",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(layout.keys / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{layout.keys / metrics.KUBELET}.crt",
        "tlsPrivateKeyFile": f"{layout.keys / metrics.KUBELET}.key",
        "containerRuntimeEndpoint": f"unix://{layout.containerd_socket}",
        "clusterDNS": [DNS_SERVICE],
        "clusterDomain": CLUSTER_DOMAIN,
        "resolvConf": str(layout.etc / "resolv.conf"),
        "podLogsDir": str(layout.folder / "pod-logs"),
        "maxPods": 250,
        "enforceNodeAllocatable": [],
        # Before it ends a pod the kubelet deletes unused images; "cleaner" does so earlier, and deletes caches first.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        # Pods come back as soon as there is space again, not after 5 minutes.
        "evictionPressureTransitionPeriod": "5s",
        "imageGCHighThresholdPercent": 100,
        "serializeImagePulls": False,
        # The registries of most images are on this machine: a first deploy of many services is not slowed down.
        "registryPullQPS": 0,
        "registerWithTaints": [],
        # Those of a pod's own namespaces, as Docker allows them: Redis and others ask for net.core.somaxconn.
        "allowedUnsafeSysctls": ["net.*", "fs.mqueue.*", "kernel.msg*", "kernel.sem", "kernel.shm*"],
    }


_REGISTRY = """\
version: 0.1
log: {{level: warn, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: "{folder}"}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""

_COREFILE = """\
.:53 {{
  bind {address}
  errors
  kubernetes {domain} in-addr.arpa ip6.arpa {{
    kubeconfig "{kubeconfig}"
    ttl 5
  }}
  cache 5 {{
    disable success {domain}
    disable denial {domain}
  }}
{outside}  reload
}}
"""

# A name without a dot is nobody's outside: asking for it would delay pods where no resolver answers.
_FORWARD = """\
  template IN ANY . {{
    match "^[^.]+[.]$"
    rcode NXDOMAIN
    fallthrough
  }}
  forward . {resolver}
"""
