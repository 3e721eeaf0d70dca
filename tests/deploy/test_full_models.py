"""AI models in full mode: a container has the variables of its model's endpoint, and reaches it."""

from __future__ import annotations

from tests.deploy.conftest import SLEEP, Environment

PROJECT = f"""
x-platform: {{full: true}}
services:
  chat:
    image: busybox
    stop_grace_period: 0
    command: {SLEEP}
    models: {{llm: {{endpoint_var: API}}}}
    depends_on: [served]
  served:
    image: busybox
    stop_grace_period: 0
    command: sh -c 'mkdir -p /srv/v1; echo answer > /srv/v1/index.html; exec httpd -f -p 8000 -h /srv'
    expose: [8000]
    network_mode: service:chat
models:
  llm: {{model: tiny, x-endpoint: "http://127.0.0.1:8000/v1/"}}
"""


def test_a_service_reaches_its_model(environment: Environment) -> None:
    """The endpoint is another service of its pod, which answers at the URL of the variable."""
    environment.deploy(PROJECT).expect()

    (pod,) = environment.pods("chat")
    asked = environment.exec(pod["metadata"]["name"], "sh", "-c", 'echo "$LLM_MODEL"; wget -qO- "$API"')
    assert asked == "tiny\nanswer\n"
