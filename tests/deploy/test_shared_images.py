"""Services that run the image which another service builds, under a name without a registry."""

from __future__ import annotations

import pytest

from tests.deploy.conftest import PORTS, SLEEP, Environment
from tests.deploy.test_run import run

FILE = f"""\
x-app: &app
  image: shop:dev
  command: "{SLEEP}"
  stop_grace_period: 0
services:
  worker: {{<<: *app, depends_on: [web]}}
  web: {{<<: *app, build: .}}
  site: {{<<: *app, volumes: ["./site:/site"]}}
  migrate: {{<<: *app, command: cat /version, restart: "no"}}
"""


NAMED_USER = f"""\
services:
  web:
    image: localhost:{PORTS["registry"]}/accounts:1
    user: app
    command: "{SLEEP}"
    stop_grace_period: 0
"""


def write_version(environment: Environment, version: str) -> None:
    environment.write(f"FROM busybox:1.37\nRUN echo {version} > /version\n", "Dockerfile")


def version_of(environment: Environment, service: str) -> str:
    (pod,) = environment.pods(service)
    return environment.exec(pod["metadata"]["name"], "cat", "/version").strip()


def digests(environment: Environment) -> dict[str, str]:
    rows = environment.platform("images", "--json").expect().json["images"]
    assert {row["source"] for row in rows} == {"built"}
    return {row["service"]: row["digest"] for row in rows}


def test_an_image_is_built_once(environment: Environment) -> None:
    """It is pushed to the cluster's registry and runs by one digest in all services; a new build rolls them all out."""
    environment.write("x" * 300_000, "site/large")
    write_version(environment, "one")
    environment.deploy(FILE).expect()

    images = [resource for resource in environment.state()["resources"] if resource["type"].endswith(":Image")]
    assert {
        name.rpartition("/")[2]: tag for image in images for name, tag in [(image["urn"], image["inputs"]["tags"])]
    } == {
        "web": [f"localhost:{PORTS['registry']}/shop:dev"],
        "site": [f"localhost:{PORTS['registry']}/env-site"],
    }
    before = digests(environment)
    assert before["worker"] == before["web"] == before["migrate"] != before["site"]
    assert [version_of(environment, name) for name in ("web", "worker", "site")] == ["one"] * 3
    assert environment.platform("logs", "migrate", "--no-prefix").expect().stdout.strip() == "one"

    write_version(environment, "two")
    environment.platform("deploy", "worker").expect()
    after = digests(environment)
    assert after["worker"] == after["web"] != before["web"]
    assert (after["site"], after["migrate"]) == (before["site"], before["migrate"])

    environment.deploy().expect()
    last = digests(environment)
    assert last["migrate"] == last["worker"] == last["web"] == after["web"]
    assert [version_of(environment, name) for name in ("web", "worker", "site")] == ["two"] * 3

    environment.platform("rollback", "1", "--yes").expect()
    assert digests(environment)["worker"] == before["worker"]
    assert [version_of(environment, name) for name in ("web", "worker", "site")] == ["one"] * 3


def test_a_user_is_looked_up_in_the_image(environment: Environment) -> None:
    """Its number is in a layer in the registry; the container runs with it and the user's group, so does a one-off."""
    environment.write("root:x:0:0::/:/bin/sh\napp:x:1234:4321::/:/bin/sh\nother:x:77:78::/:\n", "passwd")
    environment.write("root:x:0:\napp:x:4321:\n", "group")
    environment.write("FROM busybox:1.37\nCOPY passwd group /etc/\n", "Dockerfile")
    build = f"services: {{web: {{build: ., image: 'localhost:{PORTS['registry']}/accounts:1'}}}}"
    environment.write(build, "build.yaml")
    environment.platform("build", "-f", "build.yaml").expect()

    outcome = environment.deploy(NAMED_USER).expect()

    (pod,) = environment.pods("web")
    numbers = environment.exec(pod["metadata"]["name"], "sh", "-c", "echo $(id -u) $(id -g)").strip()
    assert numbers == "1234 4321"
    assert "non-numeric-user" not in outcome.stderr
    status, output, _ = run(environment, "-u", "other:app", "web", "sh", "-c", "echo $(id -u) $(id -g)")
    assert (status, output) == (0, b"77 4321\n")


BUILT_USER = f"""
services:
  web: {{build: ., user: app, command: "{SLEEP}", stop_grace_period: 0}}
  worker: {{image: accounts, user: "other:app", command: "{SLEEP}", stop_grace_period: 0}}
  accounts: {{build: {{context: ., target: accounts}}, image: accounts, command: "{SLEEP}", stop_grace_period: 0}}
"""


def numbers_in(environment: Environment, service: str) -> str:
    (pod,) = environment.pods(service)
    return environment.exec(pod["metadata"]["name"], "sh", "-c", "echo $(id -u) $(id -g)").strip()


@pytest.mark.endurance
def test_a_user_is_looked_up_in_an_image_that_is_built(environment: Environment) -> None:
    """A deploy builds first then; afterwards nothing has changed, also for a preview, until the image has."""
    lines = "FROM busybox:1.37 AS accounts\nRUN echo app:x:{0}:4321::/: >> /etc/passwd\n"
    lines += "RUN echo app:x:4321: >> /etc/group; echo other:x:77:78::/: >> /etc/passwd\nFROM accounts\n"
    environment.write(lines.format(1234), "Dockerfile")
    environment.write(BUILT_USER)

    first = environment.platform("preview").expect()
    assert "the numbers of users are not known before the images are built: accounts, web" in first.stderr
    assert "non-numeric-user" not in environment.deploy().expect().stderr
    assert [numbers_in(environment, name) for name in ("web", "worker")] == ["1234 4321", "77 4321"]
    for command in ("preview", "deploy"):
        again = environment.platform(command, "--json").expect()
        assert (again.json["changes"], "non-numeric-user" in again.stderr) == ([], False)

    environment.write(lines.format(2345), "Dockerfile")
    environment.deploy().expect()
    assert numbers_in(environment, "web") == "2345 4321"
    environment.write(BUILT_USER.replace("user: app", "user: nobody-here"))
    outcome = environment.deploy("", "web").expect()
    assert "services.web.user names a user that its image does not have, and has no effect" in outcome.stderr
    assert numbers_in(environment, "web") == "0 0"


def test_a_build_for_a_user_fails(environment: Environment) -> None:
    """Nothing is deployed, and the failure is that of the build."""
    environment.write("FROM busybox:1.37\nRUN exit 3\n", "Dockerfile")
    outcome = environment.deploy(BUILT_USER.replace(", target: accounts", "")).expect(1)

    assert "exit 3" in outcome.stderr
    assert environment.pods("web") == []
