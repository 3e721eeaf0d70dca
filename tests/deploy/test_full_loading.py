"""Profiles and what services inherit, by what runs in a real cluster."""

from __future__ import annotations

from tests.deploy.conftest import SLEEP, Environment

PROFILES = f"""
x-platform: {{full: true}}
services:
  web: {{image: busybox, stop_grace_period: 0, command: {SLEEP}}}
  debug: {{image: busybox, stop_grace_period: 0, command: {SLEEP}, profiles: [debug], depends_on: [web]}}
"""


def test_a_profile_is_turned_on_and_off(environment: Environment) -> None:
    """A named service is deployed with its profile; without the profile it is deleted, and the preview says why."""
    environment.write(PROFILES)
    environment.deploy("", "debug").expect()

    assert environment.names() == {f"{kind}/{name}" for kind in ("Deployment", "Service") for name in ("web", "debug")}
    kept = environment.platform("preview", "--profile=debug").expect()
    preview = environment.platform("preview").expect()
    assert "debug" not in kept.stdout
    assert "  - delete Deployment debug: its profile is off: debug\n" in preview.stdout
    assert environment.platform("status", "debug").expect().stdout.count("ready") == 1

    environment.deploy().expect()

    assert environment.names() == {"Deployment/web", "Service/web"}
