"""Providers in full mode: a program of this machine sets variables of the containers that depend on its service."""

from __future__ import annotations

import json
from pathlib import Path

from tests.deploy.conftest import SLEEP, Environment

PROJECT = f"""
x-platform: {{full: true}}
services:
  web:
    image: busybox
    stop_grace_period: 0
    command: {SLEEP}
    environment: {{OWN: mine, DB_URL: overridden}}
    depends_on: {{db: {{condition: service_healthy}}}}
  other:
    image: busybox
    stop_grace_period: 0
    command: {SLEEP}
  db:
    provider: {{type: awesome, options: {{size: 256, zone: [a, b]}}}}
"""

PROGRAM = """\
#!/bin/sh
echo "$@" >> "$CALLS"
case "$*" in
*metadata*) exit 1 ;;
*" down "*) exit 0 ;;
esac
printf '%s\\n' '{"type": "info", "message": "making db"}' '{"type": "setenv", "message": "URL=SECRET"}' \\
  '{"type": "rawsetenv", "message": "EXACT=a=b"}' '{"type": "debug", "message": "x"}' \\
  '{"type": "info", "message": "made SECRET \\u001b[31m"}'
""".replace("SECRET", "planted-in-provider")


def install(environment: Environment, text: str = PROGRAM) -> Path:
    """Put a provider's program into a folder of the path; return the file with its calls."""
    folder = environment.folder.parent / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "awesome").write_text(text)
    (folder / "awesome").chmod(0o755)
    calls = environment.folder.parent / "calls"
    environment.variables.update(PATH=f"{folder}:{environment.variables['PATH']}", CALLS=str(calls))
    return calls


def variables_of(environment: Environment, service: str) -> dict[str, str]:
    (pod,) = environment.pods(service)
    lines = environment.exec(pod["metadata"]["name"], "env").splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_a_provider_sets_variables_of_dependents(environment: Environment) -> None:
    """It runs in a deploy that allows it; its values are secrets; destroy releases it."""
    calls = install(environment)

    refused = environment.deploy(PROJECT).expect(1)
    assert "provider-refused" in refused.stderr
    assert not calls.exists()

    deployed = environment.deploy("", "--allow-providers", "--debug").expect()
    up = f"compose --project-name={environment.name} up --size=256 --zone=a --zone=b db"
    assert calls.read_text().splitlines() == ["compose metadata", up]
    web = variables_of(environment, "web")
    assert (web["DB_URL"], web["EXACT"], web["OWN"]) == ("planted-in-provider", "a=b", "mine")
    assert "EXACT" not in variables_of(environment, "other")
    assert "db: made [secret] \\x1b[31m" in deployed.stderr
    for text in (deployed.stdout, deployed.stderr, json.dumps(environment.state())):
        assert "planted-in-provider" not in text

    preview = environment.platform("preview", "--expect-no-changes").expect()
    assert "planted-in-provider" not in preview.stdout + preview.stderr
    assert len(calls.read_text().splitlines()) == 2

    without = PROJECT[: PROJECT.index("  db:")].replace("depends_on: {db: {condition: service_healthy}}", "")
    left = environment.deploy(without).expect()
    assert f"PROGRAM compose --project-name={environment.name} down db" in left.stderr
    assert "Secret/db-provided" not in environment.names()

    environment.write(PROJECT)
    environment.platform("destroy", "--allow-providers").expect()
    assert calls.read_text().splitlines()[-1] == (
        f"compose --project-name={environment.name} down --size=256 --zone=a --zone=b db"
    )
