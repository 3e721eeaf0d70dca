"""What a deploy publishes: nothing outside the project, and what it is, is reported before anything changes."""

from __future__ import annotations

from pathlib import Path

from tests.deploy.conftest import SLEEP, Environment
from tests.schemas import checked_event

TEXT = f"""\
services:
  web:
    image: busybox:1.37
    command: {SLEEP}
    stop_grace_period: 0s
    env_file: [web.env]
    volumes: ["./conf:/conf"]
"""


def test_sent_files_are_reported_first(environment: Environment, tmp_path: Path) -> None:
    """Files and the cluster they go to are named before a service is touched, and by a preview; values are not."""
    environment.write(TEXT)
    environment.write("PASSWORD=never-shown\n", "web.env")
    environment.write("12345\n", "conf/a")
    # To a cluster that is not known as the local one.
    elsewhere = {"COMPOSEPLAT_CLUSTER": str(tmp_path / "none")}

    preview = environment.platform("preview", **elsewhere).expect()
    deploy = environment.platform("deploy", "--progress", "json", **elsewhere).expect()
    local = environment.platform("deploy").expect()

    where = f"sends to cluster 'composeplat-local', namespace {environment.namespace}: "
    assert f"{where}1 file of './conf' (6 B); env file './web.env'\n" in preview.stderr
    events = [event["event"] for line in deploy.stderr.splitlines() if "event" in (event := checked_event(line))]
    assert events.index("publish") < events.index("service")
    assert "sends to" not in local.stderr
    assert "never-shown" not in preview.stderr + deploy.stderr + deploy.stdout


def test_nothing_outside_the_project_is_synced(environment: Environment) -> None:
    """A host path outside the project, which a deploy of a built service leaves out, is not synced by ``up``."""
    (environment.folder.parent / "beside").mkdir(exist_ok=True)
    environment.write("FROM busybox:1.37\n", "Dockerfile")
    environment.write("services:\n  web:\n    build: .\n    volumes:\n      - ../beside:/app\n")

    ran = environment.platform("up", "web", "--", "true").expect(3)

    assert (
        "compose.yaml:5:9: error: services.web.volumes[0] mounts a host path that is outside the project:"
        " '../beside:/app' [outside-project]\n"
    ) in ran.stderr
    assert "--allow-outside" in ran.stderr
    assert environment.names() == set()
