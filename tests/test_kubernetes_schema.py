"""The judge of rendered objects, judged: it passes sound objects and names each planted mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.kubernetes_schema import problems_of

SOUND = """
apiVersion: v1
kind: Secret
metadata: {name: web-env, namespace: dev}
type: Opaque
data: {MODE: ZGV2}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web-files, namespace: dev}
data: {a.conf: "a = 1"}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: dev, annotations: {team.example.com/Owner: shop}}
spec:
  selector: {app: web}
  ports:
  - {name: tcp-80, port: 80, targetPort: 80, protocol: TCP}
  - {name: udp-80, port: 80, targetPort: 80, protocol: UDP}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web, namespace: dev}
spec:
  serviceName: web
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, tier: front}}
    spec:
      nodeSelector: {disk: ssd}
      containers:
      - name: web
        image: nginx
        ports: [{containerPort: 80}]
        envFrom: [{secretRef: {name: web-env}}]
        resources: {requests: {cpu: 250m, memory: 64Mi}, limits: {cpu: "0.5", memory: 1Gi}}
        readinessProbe: {exec: {command: ["true"]}, periodSeconds: 5}
        volumeMounts:
        - {name: data, mountPath: /data}
        - {name: cache, mountPath: /cache}
        - {name: files, mountPath: /etc/a.conf, subPath: a.conf}
      volumes:
      - {name: data, persistentVolumeClaim: {claimName: data}}
      - {name: files, configMap: {name: web-files, items: [{key: a.conf, path: a.conf, mode: 420}]}}
  volumeClaimTemplates:
  - metadata: {name: cache}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: dev}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: seed, namespace: dev}
spec:
  backoffLimit: 0
  template:
    metadata: {labels: {app: seed}}
    spec: {restartPolicy: Never, containers: [{name: seed, image: seed}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: dev}
spec:
  rules:
  - host: web-dev.example.com
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
  tls: [{hosts: [web-dev.example.com]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: dev}
spec:
  parentRefs: [{name: edge}]
  hostnames: [web.example.com]
  rules:
  - {matches: [{path: {type: PathPrefix, value: /}}], backendRefs: [{name: web, port: 80}]}
"""


class Objects:
    """The sound objects by kind, to plant a mistake in."""

    def __init__(self) -> None:
        self.every: list[Any] = list(yaml.safe_load_all(SOUND))

    def __getitem__(self, kind: str) -> Any:
        return next(row for row in self.every if row["kind"] == kind)

    @property
    def pod(self) -> Any:
        return self["StatefulSet"]["spec"]["template"]["spec"]

    @property
    def container(self) -> Any:
        return self.pod["containers"][0]

    def put(self, path: str, value: Any) -> None:
        """Set a value at ``Kind|field|0|field``."""
        kind, *steps = path.split("|")
        target = self[kind]
        for step in steps[:-1]:
            target = target[int(step) if step.isdigit() else step]
        target[int(steps[-1]) if steps[-1].isdigit() else steps[-1]] = value


def test_sound_objects_pass() -> None:
    """Objects that a server takes have no problems: else the planted ones below would prove nothing."""
    assert problems_of(Objects().every) == []


POD = "StatefulSet|spec|template|spec"
CONTAINER = f"{POD}|containers|0"
PORTS = "Service|spec|ports"

PLANTED = [
    ("StatefulSet|spec|replicas", "3", "StatefulSet/web: $.spec.replicas: '3' is not of type 'integer', 'null'"),
    (
        f"{CONTAINER}|imagePulPolicy",
        "Always",
        "StatefulSet/web: $.spec.template.spec.containers[0]: Additional properties are not allowed",
    ),
    ("Secret|apiVersion", "v9", "Secret/web-env: no schema for v9 Secret"),
    ("Secret|metadata|name", "Web_env", "Secret/Web_env: name 'Web_env' is no DNS name"),
    ("Secret|metadata|namespace", "a.b", "Secret/web-env: namespace 'a.b' is no DNS label"),
    ("Secret|metadata|labels", {"a": "x y"}, "Secret/web-env: label 'a' has a value that no label takes: 'x y'"),
    ("Secret|metadata|labels", {"a" * 64: ""}, f"Secret/web-env: label key '{'a' * 64}' is no qualified name"),
    ("Secret|metadata|annotations", {"a b": "x"}, "Secret/web-env: annotation key 'a b' is no qualified name"),
    ("Secret|metadata|annotations", {"a": "x" * 2**18}, "Secret/web-env: annotations of 262145 bytes"),
    ("Secret|data", {"a": "?"}, "Secret/web-env: key 'a' is not base64"),
    ("Secret|data", {"a/b": ""}, "Secret/web-env: key 'a/b' can't stand"),
    ("ConfigMap|data", {"a": "x" * (2**20 + 1)}, "ConfigMap/web-files: 1048577 bytes, where 1048576 is the most"),
    ("ConfigMap|binaryData", {"a.conf": ""}, "ConfigMap/web-files: key 'a.conf' is there 2 times"),
    ("Service|metadata|name", "1web", "Service/1web: name '1web' is no DNS label that begins with a letter"),
    ("Service|spec|ports", [], "Service/web: has no ports and is not headless"),
    (f"{PORTS}|0|name", "p" * 64, f"Service/web: port name '{'p' * 64}' is no DNS label"),
    (f"{PORTS}|0|name", "udp-80", "Service/web: port name 'udp-80' is there 2 times"),
    (f"{PORTS}|0|protocol", "UDP", "Service/web: port (80, 'UDP') is there 2 times"),
    (f"{PORTS}|0|port", 70000, "Service/web: port 70000 is out of range"),
    (f"{PORTS}|0|targetPort", 0, "Service/web: targetPort 0 is out of range"),
    (f"{PORTS}|0|protocol", "QUIC", "Service/web: protocol 'QUIC' is unknown"),
    (f"{PORTS}|0|appProtocol", "a b", "Service/web: appProtocol 'a b' is no qualified name"),
    ("StatefulSet|metadata|name", "w" * 53, f"StatefulSet/{'w' * 53}: name '{'w' * 53}' is no DNS label of at most"),
    ("StatefulSet|spec|replicas", -1, "StatefulSet/web: replicas is -1"),
    (
        "StatefulSet|spec|selector",
        {"matchLabels": {"app": "x"}},
        "StatefulSet/web: selects by app, which its own pods do not carry so",
    ),
    ("StatefulSet|spec|selector", {"matchLabels": {}}, "StatefulSet/web: selects no pods"),
    (f"{POD}|restartPolicy", "Never", "StatefulSet/web: restartPolicy 'Never' where only 'Always' is allowed"),
    ("Job|spec|template|spec|restartPolicy", "Always", "Job/seed: restartPolicy 'Always' where a Job takes"),
    ("Job|spec|selector", {"matchLabels": {"app": "seed"}}, "Job/seed: a Job's selector is made by the server"),
    (f"{POD}|nodeSelector", {"disk": "a b"}, "StatefulSet/web: node selector 'disk' has a value that no label takes"),
    (f"{POD}|volumes|0|name", "Data", "StatefulSet/web: volume 'Data' is no DNS label"),
    (f"{POD}|volumes|0|emptyDir", {}, "StatefulSet/web: volume 'data' must have one source"),
    (f"{POD}|volumes|1|configMap|items|0|mode", 0o1000, "StatefulSet/web: volume 'files' has a file mode out of range"),
    (f"{POD}|volumes|1|configMap|items|0|path", "../a", "StatefulSet/web: volume 'files' has a path that leads out"),
    (f"{POD}|volumes|1|name", "data", "StatefulSet/web: volume 'data' is there 2 times"),
    (f"{CONTAINER}|image", "", "StatefulSet/web: container 'web' has the image ''"),
    (f"{CONTAINER}|name", "w_b", "StatefulSet/web: container 'w_b' is no DNS label"),
    (f"{CONTAINER}|ports|0|containerPort", 0, "StatefulSet/web: container port {'containerPort': 0} can't stand"),
    (f"{CONTAINER}|ports|0|name", "a-name-of-16-char", "StatefulSet/web: container port name 'a-name-of-16-char' is"),
    (f"{CONTAINER}|volumeMounts|1|mountPath", "/data", "StatefulSet/web: mount path '/data' is there 2 times"),
    (f"{CONTAINER}|volumeMounts|1|mountPath", "data", "StatefulSet/web: mount path 'data' can't stand"),
    (f"{CONTAINER}|volumeMounts|1|name", "x", "StatefulSet/web: mounts 'x', which is no volume of the pod"),
    (f"{CONTAINER}|volumeMounts|1|subPath", "../x", "StatefulSet/web: sub path '../x' leads out of the volume"),
    (f"{CONTAINER}|volumeMounts|0|name", "cache", "StatefulSet/web: volume 'data' is mounted nowhere"),
    (f"{CONTAINER}|resources|requests|cpu", "501m", "StatefulSet/web: requests 501m of cpu, above its limit 0.5"),
    (f"{CONTAINER}|resources|limits|cpu", "half", "StatefulSet/web: limits.cpu is no quantity: 'half'"),
    (f"{CONTAINER}|securityContext", {"runAsUser": -1}, "StatefulSet/web: runAsUser -1 is out of range"),
    (f"{CONTAINER}|readinessProbe|periodSeconds", 0, "StatefulSet/web: readinessProbe.periodSeconds is 0"),
    (f"{CONTAINER}|readinessProbe|exec", {}, "StatefulSet/web: readinessProbe runs no command"),
    (
        f"{CONTAINER}|readinessProbe|httpGet",
        {"path": "/", "port": 80},
        "StatefulSet/web: readinessProbe must have one handler, not 2",
    ),
    ("StatefulSet|spec|volumeClaimTemplates|0|spec|accessModes", [], "StatefulSet/web: a claim has no access mode"),
    ("PersistentVolumeClaim|spec|resources", {}, "PersistentVolumeClaim/data: a claim asks for no storage"),
    ("PersistentVolumeClaim|spec|storageClassName", "A", "PersistentVolumeClaim/data: storage class 'A' is no DNS"),
    ("Ingress|spec|rules|0|host", "web_dev.example.com", "Ingress/web: host 'web_dev.example.com' is no DNS name"),
    ("Ingress|spec|rules|0|http|paths|0|path", "/a/../b", "Ingress/web: path '/a/../b' can't stand"),
    ("HTTPRoute|spec|host", "x", "HTTPRoute/web: spec.host is not known"),
    ("HTTPRoute|spec|rules", [], "HTTPRoute/web: spec.rules has 0 items, where 1 to 16 are taken"),
    ("HTTPRoute|spec|parentRefs|0|name", "", "HTTPRoute/web: the Gateway's name '' is no DNS name"),
    ("HTTPRoute|spec|rules|0|matches|0|path|value", "a", "HTTPRoute/web: path 'a' can't stand"),
    ("HTTPRoute|spec|rules|0|backendRefs|0|port", 0, "HTTPRoute/web: a backend's port 0 is out of range"),
    ("HTTPRoute|spec|rules|0|backendRefs|0|name", "x", "HTTPRoute/web: leads to 'x', which is no Service"),
    (
        "Ingress|spec|rules|0|http|paths|0|backend|service|port|number",
        81,
        "Ingress/web: leads to port 81, which Service 'web' does not have",
    ),
    ("Service|spec|selector", {"app": "x"}, "Service/web: selects the pods of 0 workloads"),
    ("StatefulSet|spec|serviceName", "x", "StatefulSet/web: serviceName 'x' is no Service"),
    ("Secret|metadata|name", "x", "StatefulSet/web: takes its environment from 'web-env', which is no Secret"),
    ("ConfigMap|data", {"b": ""}, "StatefulSet/web: mounts the key 'a.conf', which no ConfigMap holds"),
    (f"{POD}|volumes|0|persistentVolumeClaim|claimName", "x", "StatefulSet/web: mounts the claim 'x', which is not"),
    ("HTTPRoute|spec|hostnames|0", "web-dev.example.com", "address 'web-dev.example.com/' is there 2 times"),
]


@pytest.mark.parametrize(("path", "value", "problem"), PLANTED, ids=[problem[:60] for _, _, problem in PLANTED])
def test_a_planted_mistake_is_named(path: str, value: Any, problem: str) -> None:
    """One wrong value in sound objects is reported first; what only follows from it comes after."""
    objects = Objects()
    objects.put(path, value)

    first, *_ = problems_of(objects.every)

    assert first.startswith(problem)


def _twice(objects: Objects) -> None:
    objects.every.append(objects["Secret"])


def _unknown_kind(objects: Objects) -> None:
    objects.every.append({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})


@pytest.mark.parametrize(
    ("plant", "problem"),
    [
        pytest.param(_twice, "object 'Secret/web-env' is there 2 times", id="twice"),
        pytest.param(_unknown_kind, "Node/n: no rules for the kind Node", id="kind"),
    ],
)
def test_a_set_is_judged_as_a_whole(plant: Callable[[Objects], None], problem: str) -> None:
    """Two objects of one name, and a kind that nobody wrote rules for, are named."""
    objects = Objects()
    plant(objects)

    assert problems_of(objects.every) == [problem]
