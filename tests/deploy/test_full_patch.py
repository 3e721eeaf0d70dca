"""Patches in full mode: what runs has them, and the API server refuses what its schema does not know."""

from __future__ import annotations

from tests.deploy.conftest import SLEEP, Environment


def project(container: str = "", more: str = "") -> str:
    return f"""
x-platform: {{full: true}}
services:
  web:
    image: busybox
    command: {SLEEP}
    stop_grace_period: 0
    x-kubernetes:
      patch:
        Deployment:
          metadata: {{annotations: {{team: shop}}}}
          spec:
            template:
              spec:
                containers:
                  - name: web
                    env: [{{name: NODE, valueFrom: {{fieldRef: {{fieldPath: spec.nodeName}}}}}}]
                    {container}
                  - {{name: beside, image: busybox, command: [sh, -c, sleep 3600]}}
                terminationGracePeriodSeconds: 0
                {more}
"""


def test_a_patch_reaches_the_pod(environment: Environment) -> None:
    """Before a deploy, the API server says what it does not know, at its place; then the pod is as patched."""
    refused = environment.deploy(project("imagePullPolice: Always")).expect(1)
    assert (
        "compose.yaml:18:21: error: services.web.x-kubernetes.patch.Deployment.spec.template.spec.containers[0]"
        in refused.stderr
    )
    assert 'unknown field "spec.template.spec.containers[0].imagePullPolice" [invalid-patch]' in refused.stderr
    invalid = environment.platform("preview").expect(1)
    assert "[invalid-patch]" in invalid.stderr

    environment.deploy(project()).expect()

    workload = environment.get("apps/v1", "Deployment", "web")
    assert workload
    assert workload["metadata"]["annotations"]["team"] == "shop"
    (pod,) = environment.pods("web")
    assert [container["name"] for container in pod["spec"]["containers"]] == ["web", "beside"]
    assert environment.exec(pod["metadata"]["name"], "sh", "-c", "echo $NODE") == "local\n"
    refused = environment.deploy(project(more="dnsPolicy: Never")).expect(1)
    assert (
        "compose.yaml:21:17: error: services.web.x-kubernetes.patch.Deployment.spec.template.spec.dnsPolicy"
        in refused.stderr
    )
    environment.platform("preview", "--expect-no-changes").expect(1)
    environment.write(project())
    environment.platform("preview", "--expect-no-changes").expect()
