"""Providers in full mode: a program of this machine sets variables of the containers that depend on its service."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

from composeplat.system.processes import start_time
from tests.deploy.conftest import SLEEP, Environment, until
from tests.deploy.test_full_watch import Watch

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
echo '{"type": "get-service-config"}'
read -r answer && echo "$answer" > "$CALLS.answer"
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

    environment.write("PLATFORM_ALLOW_PROVIDERS=true\n", ".env")
    refused = environment.deploy(PROJECT).expect(1)
    assert "provider-refused" in refused.stderr
    assert not calls.exists()

    deployed = environment.deploy("", "--allow-providers", "--debug").expect()
    up = f"compose --project-name={environment.name} up --size=256 --zone=a --zone=b db"
    assert calls.read_text().splitlines() == ["compose metadata", up]
    assert json.loads(calls.with_suffix(".answer").read_text()) == {
        "provider": {"type": "awesome", "options": {"size": ["256"], "zone": ["a", "b"]}}
    }
    web = variables_of(environment, "web")
    assert (web["DB_URL"], web["EXACT"], web["OWN"]) == ("planted-in-provider", "a=b", "mine")
    assert "EXACT" not in variables_of(environment, "other")
    assert "db: made [secret] \\x1b[31m" in deployed.stderr
    for text in (deployed.stdout, deployed.stderr, json.dumps(environment.state())):
        assert "planted-in-provider" not in text

    run = [*environment.command_line("run", "-T"), "web", "env"]
    ran = subprocess.run(run, cwd=environment.folder, env=environment.variables, capture_output=True, check=True)
    assert b"DB_URL=planted-in-provider\n" in ran.stdout

    preview = environment.platform("preview", "--expect-no-changes").expect()
    assert "planted-in-provider" not in preview.stdout + preview.stderr
    assert len(calls.read_text().splitlines()) == 2

    environment.platform("destroy", PLATFORM_ALLOW_PROVIDERS="true").expect()
    assert calls.read_text().splitlines()[-1] == (
        f"compose --project-name={environment.name} down --size=256 --zone=a --zone=b db"
    )


SMALL = """
x-platform: {full: true}
services:
  web: {image: busybox, command: "true", restart: "no", stop_grace_period: 0, depends_on: [db]}
  db: {provider: {type: awesome}}
"""


def test_a_provider_fails_or_is_interrupted(environment: Environment) -> None:
    """Nothing is changed in the cluster, and no process is left; a preview says that it knows no values."""
    install(environment, '#!/bin/sh\necho planted-in-errors >&2; echo "usage: planted-in-output"; exit 2\n')
    failed = environment.deploy(SMALL, "--allow-providers").expect(1)
    assert "compose.yaml:5:18: error: services.db.provider is given by the program 'awesome'" in failed.stderr
    assert "no JSON object with a type: line 1 [provider-failed]" in failed.stderr
    assert "planted-in-output" not in failed.stderr + Path(failed.log).read_text()
    assert environment.names() == set()

    shown = environment.platform("preview").expect()
    assert "the variables that the provider of db sets are known at a deploy" in shown.stdout + shown.stderr

    started = environment.folder.parent / "started"
    install(
        environment,
        f"#!/bin/sh\n[ $2 = metadata ] && exit\nsleep 60 & echo $! > {started}; wait\n",
    )
    process = environment.start("deploy", "--allow-providers")
    until(lambda: started.exists() and started.read_text().strip())
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert "the program of db was ended; nothing was changed in the cluster" in errors
    assert start_time(int(started.read_text())) is None


WATCHED = """
x-platform: {full: true}
services:
  web:
    image: busybox
    stop_grace_period: 0
    command: sh -c 'trap true TERM; sleep 1000000 & wait; true'
    depends_on: [db]
    develop: {watch: [{path: ./src, action: sync, target: /src}]}
  db: {provider: {type: awesome}}
"""


def test_a_dependent_is_watched(environment: Environment) -> None:
    """A saved file is copied into the pod, and the provider does not run again."""
    calls = install(environment)
    environment.write("1", "src/file")
    environment.deploy(WATCHED, "--allow-providers").expect()
    before = calls.read_text()

    watch = Watch(environment, "watch", "web")
    watch.until("watching", service="web")
    environment.write("2", "src/file")
    watch.until("copied", files=1)
    (pod,) = environment.pods("web")
    assert environment.exec(pod["metadata"]["name"], "cat", "/src/file") == "2"
    assert watch.end() == 130
    assert calls.read_text() == before


def test_a_provider_that_left_the_file(environment: Environment) -> None:
    """Its Secret goes, and the deploy says how to release what its program made."""
    install(environment)
    environment.deploy(SMALL, "--allow-providers", "--no-wait").expect()

    left = environment.deploy(
        SMALL.replace(", depends_on: [db]", "").replace("  db: {provider: {type: awesome}}\n", "")
    )

    assert f"PROGRAM compose --project-name={environment.name} down db" in left.expect().stderr
    assert "Secret/db-provided" not in environment.names()
