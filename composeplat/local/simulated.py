"""The simulated cluster: the same control plane, with nodes that only pretend to run pods.

For hundreds of pods, and for machines without root: everything is an ordinary process on loopback.
Pods become ready a moment after they are bound, jobs complete, claims are bound; nothing is run.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from composeplat.cluster.api import Api
from composeplat.cluster.kinds import kind_path
from composeplat.diagnostics import MissingPiece
from composeplat.local.cluster import LocalCluster
from composeplat.local.controllers import WITHOUT_POLICIES
from composeplat.local.etcd import api_server_arguments, etcd_arguments
from composeplat.local.etcd_cleaner import etcd_cleaner_arguments
from composeplat.local.layout import SERVICE_RANGE, HostPorts, Layout
from composeplat.local.parts import Part, Programs, kubeconfig
from composeplat.local.start_limit import StartLimit
from composeplat.system.processes import python_module
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import KWOK

_START_TIMEOUT_S = 120.0


class SimulatedCluster(LocalCluster):
    title = "the simulated cluster"

    def __init__(self, layout: Layout, environment: Mapping[str, str], nodes: int) -> None:
        super().__init__(replace(layout, host_ports=HostPorts(api=17443)), environment)
        self.nodes = nodes
        self._kwok = ""

    def _check_machine(self) -> None:
        if sys.platform != "linux":
            raise MissingPiece("the simulated cluster runs on Linux only", "use kind or k3d there")

    def _programs(self) -> Programs:
        found = Toolchain(self.environment).need_all((self.kube, KWOK))
        self._kwok = str(found[KWOK.name].path)
        path = self.environment.get("PATH", "")
        return Programs(
            kube=str(found[self.kube.name].path), coredns="", registry="", frontdoor="", buildkitd="", containerd="",
            shim="", python=sys.executable, cni="", search_path=path,
        )  # fmt: skip

    @property
    def host_ports(self) -> dict[str, int]:
        return {"api": self.layout.host_ports.api}

    def _clean(self) -> None:
        for path in (self.layout.supervisor, self.layout.states, self.layout.ready_mark, self.layout.etcd_space_file):
            path.unlink(missing_ok=True)

    def _files(self, programs: Programs, token: str) -> dict[Path, str]:  # noqa: ARG002 -- as the other cluster's
        config = kubeconfig(f"https://127.0.0.1:{self.layout.host_ports.api}", self.layout, token)
        return {self.layout.kubeconfig: config, self.layout.etc / "stages.yaml": _stages()}

    def _run_folders(self) -> tuple[Path, ...]:
        return (self.layout.run,)

    def _prepare_node(self, programs: Programs) -> None:
        """There is no builder."""

    def _launch(self, programs: Programs) -> None:
        plan = {
            "parts": [asdict(part) for part in self.parts(programs)],
            "environment": self._part_environment(programs),
            "logs": str(self.layout.logs),
            "states": str(self.layout.states),
            "network_fd": None,
        }
        processes = os.open("/proc", os.O_RDONLY)
        try:
            plan["note"] = self._note(processes)
            self._await_note(self._supervise([], plan, programs.search_path, [processes]))
        finally:
            os.close(processes)

    def parts(self, programs: Programs) -> tuple[Part, ...]:
        keys, folder, port = self.layout.keys, self.layout.folder, self.layout.host_ports.api
        # etcd's own are next to the one that is chosen, so that two of these clusters can stand side by side.
        config = f"--kubeconfig={self.layout.kubeconfig}"
        return (
            Part(
                name="etcd",
                args=(
                    programs.kube, "etcd", "--unsafe-no-fsync",
                    *etcd_arguments(self.layout, client_port=port + 1, peer_port=port + 2),
                ),
                ready=f"tcp:127.0.0.1:{port + 1}",
                keeps_data=True,
            ),
            Part(
                name="kube-apiserver",
                args=(
                    programs.kube, "kube-apiserver", *api_server_arguments(self.layout, client_port=port + 1),
                    "--bind-address=127.0.0.1", f"--secure-port={port}", f"--tls-cert-file={keys / 'api.crt'}",
                    f"--tls-private-key-file={keys / 'api.key'}", f"--client-ca-file={keys / 'ca.crt'}",
                    f"--token-auth-file={keys / 'tokens.csv'}", "--authorization-mode=RBAC", "--allow-privileged",
                    "--service-account-issuer=https://kubernetes.default.svc",
                    f"--service-account-key-file={keys / 'accounts.key'}",
                    f"--service-account-signing-key-file={keys / 'accounts.key'}",
                    f"--service-cluster-ip-range={SERVICE_RANGE}", f"--cert-dir={folder / 'api'}",
                    "--endpoint-reconciler-type=none",
                ),
                ready=f"tcp:127.0.0.1:{port}",
                needs=("etcd",),
            ),
            Part(
                name="kube-controller-manager",
                args=(
                    programs.kube, "kube-controller-manager", config, "--leader-elect=false", "--secure-port=0",
                    f"--root-ca-file={keys / 'ca.crt'}",
                    f"--service-account-private-key-file={keys / 'accounts.key'}",
                    "--use-service-account-credentials", "--kube-api-qps=400", "--kube-api-burst=800",
                    # Nobody's heart beats here; without it nodes are lost after 50 s, and their pods not ready.
                    "--node-monitor-grace-period=8760h",
                ),
                needs=("kube-apiserver",),
            ),
            Part(
                name="kube-scheduler",
                args=(programs.kube, "kube-scheduler", config, "--leader-elect=false", "--secure-port=0"),
                needs=("kube-apiserver",),
            ),
            Part(
                name="kwok",
                args=(
                    self._kwok, config, f"--config={self.layout.etc / 'stages.yaml'}",
                    "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
                ),
                needs=("kube-apiserver",),
            ),
            Part(
                name="controllers",
                args=(
                    *python_module(programs.python, "composeplat.local.controllers"),
                    str(folder), str(port), str(self.layout.states), WITHOUT_POLICIES,
                ),
                needs=("kube-apiserver",),
            ),
            Part(
                name="cleaner",
                args=etcd_cleaner_arguments(self.layout, programs.python, port + 1),
                needs=("etcd",),
            ),
        )  # fmt: skip

    def _wait_until_ready(self, programs: Programs | None) -> None:  # noqa: ARG002 -- as the other cluster's
        limit = StartLimit(_START_TIMEOUT_S)
        with Api(self.access) as api:
            self._wait_until("its API server", limit, lambda: api.text("/readyz") == "ok")
            for number in range(self.nodes):
                api.apply(_node(f"simulated-{number}"))
            nodes = kind_path("v1", "Node")
            self._wait_until("its nodes", limit, lambda: all(_is_up(node) for node in api.items(nodes)))
            accounts = "/api/v1/namespaces/default/serviceaccounts/default"
            self._wait_until("its service accounts", limit, lambda: bool(api.get(accounts)))
            self._wait_until("its parts", limit, lambda: not self.status().broken)


def _is_up(node: dict[str, Any]) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in node.get("status", {}).get("conditions", []))


def _node(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "type": "simulated"},
        },
    }


def _stages() -> str:
    """The stages of nodes and pods, as kwok reads them: JSON documents are YAML documents."""
    return "".join(f"---\n{json.dumps(stage)}\n" for stage in (_node_up(), _pod_ready(), _pod_complete(), _pod_gone()))


def _stage(name: str, kind: str, selector: list[dict[str, Any]], following: dict[str, Any]) -> dict[str, Any]:
    spec = {
        "resourceRef": {"apiGroup": "v1", "kind": kind},
        "selector": {"matchExpressions": selector},
        "next": following,
    }
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name}, "spec": spec}


def _where(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def _node_up() -> dict[str, Any]:
    ready = '.status.conditions.[] | select( .type == "Ready" ) | .status'
    status = """
{{ $now := Now }}
addresses: [{type: InternalIP, address: 127.0.0.1}]
allocatable: {cpu: 32, memory: 256Gi, pods: 1000}
capacity: {cpu: 32, memory: 256Gi, pods: 1000}
conditions:
- {type: Ready, status: "True", reason: KubeletReady, message: simulated, lastHeartbeatTime: {{ $now | Quote }}, lastTransitionTime: {{ $now | Quote }}}
phase: Running
"""  # noqa: E501 -- a template of another language
    return _stage("node-up", "Node", [_where(ready, "NotIn", "True")], {"statusTemplate": status})


_ALIVE = _where(".metadata.deletionTimestamp", "DoesNotExist")


def _pod_ready() -> dict[str, Any]:
    status = """
{{ $now := Now }}
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "True", lastTransitionTime: {{ $now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  imageID: ""
  name: {{ .name | Quote }}
  ready: true
  restartCount: 0
  started: true
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ PodIPWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) | Quote }}
phase: Running
startTime: {{ $now | Quote }}
"""  # noqa: E501 -- a template of another language
    return _stage("pod-ready", "Pod", [_ALIVE, _where(".status.podIP", "DoesNotExist")], {"statusTemplate": status})


def _pod_complete() -> dict[str, Any]:
    status = """
{{ $now := Now }}
conditions:
- {type: Ready, status: "False", reason: PodCompleted, lastTransitionTime: {{ $now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  imageID: ""
  name: {{ .name | Quote }}
  ready: false
  restartCount: 0
  state: {terminated: {exitCode: 0, reason: Completed, finishedAt: {{ $now | Quote }}, startedAt: {{ $now | Quote }}}}
{{ end }}
phase: Succeeded
"""
    selector = [
        _ALIVE,
        _where(".status.phase", "In", "Running"),
        _where(".metadata.ownerReferences.[].kind", "In", "Job"),
    ]
    return _stage("pod-complete", "Pod", selector, {"statusTemplate": status})


def _pod_gone() -> dict[str, Any]:
    selector = [_where(".metadata.deletionTimestamp", "Exists")]
    return _stage("pod-gone", "Pod", selector, {"finalizers": {"empty": True}, "delete": True})
