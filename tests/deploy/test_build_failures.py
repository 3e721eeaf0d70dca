"""A build that can't begin or fails: where it is reported, with what, and that nothing is changed."""

from __future__ import annotations

import pytest

from tests.deploy.conftest import PORTS, SLEEP, Environment

TEXT = f'services:\n  web:\n    command: "{SLEEP}"\n    stop_grace_period: 0\n    build:\n      context: ./web\n'


def build(environment: Environment, dockerfile: str, more: str = "") -> str:
    """Deploy one service that is built; gives the message about it, which must be a failure."""
    environment.write(dockerfile, "web/Dockerfile")
    ran = environment.deploy(TEXT + more).expect(1)
    assert ran.stderr.count(": error: ") == 1
    assert environment.names() == set()
    return ran.stderr


def test_a_step_that_fails(environment: Environment) -> None:
    """A failing step is shown with the last of many lines, at the build's place in the file."""
    output = build(environment, "FROM busybox:1.37\nRUN seq 1 3000; echo no such table; exit 4\n")

    step = "RUN seq 1 3000; echo no such table; exit 4"
    assert f"compose.yaml:6:7: error: services.web: can't be built: a step ended with exit status 4: {step}" in output
    assert "  the last lines of the build:\n" in output
    assert "    3000\n    no such table\n" in output


@pytest.mark.parametrize(
    ("dockerfile", "more", "message"),
    [
        pytest.param(
            f"FROM localhost:{PORTS['registry']}/library/busybox:9.99\n", "",
            "compose.yaml:6:7: error: services.web: can't be built: there is no image"
            f" 'localhost:{PORTS['registry']}/library/busybox:9.99' to build on [deploy-failed]",
            id="a base that is not there",
        ),
        pytest.param(
            "FROM registry.invalid/app:1\n", "",
            "compose.yaml:6:7: error: services.web: can't be built on 'registry.invalid/app:1':"
            " registry registry.invalid can't be reached: no such host [deploy-failed]",
            id="a base of a registry that nobody knows",
        ),
        pytest.param(
            "FROM busybox:1.37\nCOPY gone /\n", "",
            "compose.yaml:6:16: error: services.web: can't be built: its context has no 'gone' [deploy-failed]",
            id="a file that is not there",
        ),
        pytest.param(
            "FROM busybox:1.37\n", "      dockerfile: Gone\n",
            "compose.yaml:7:19: error: services.web.build.dockerfile names a file that does not exist: 'Gone'"
            " [missing-path]",
            id="a Dockerfile that is not there",
        ),
        pytest.param(
            "FROM busybox:1.37 AS base\n", "      target: prod\n",
            "compose.yaml:7:15: error: services.web.build.target names a stage that the Dockerfile does not have:"
            " 'prod' [invalid-value]",
            id="a stage that is not there",
        ),
        pytest.param(
            "FROM busybox:1.37\n", f"    image: localhost:{PORTS['api'] + 20}/shop/web\n",
            f"compose.yaml:7:12: error: services.web: was built, but can't be pushed as"
            f" 'localhost:{PORTS['api'] + 20}/shop/web': registry localhost:{PORTS['api'] + 20} can't be reached:"
            " connection refused [deploy-failed]",
            id="a registry that does not run",
        ),
    ],
)  # fmt: skip
def test_why(dockerfile: str, more: str, message: str, environment: Environment) -> None:
    """Each reason is one message at its place, and nothing is deployed."""
    assert message in build(environment, dockerfile, more)


def test_a_step_that_prints_secrets(environment: Environment) -> None:
    """Secrets of files and variables are hidden where a failing step prints them, whole or by the line."""
    environment.write("//r.example.com/:_authToken=t0ken-of-file\nsecond-line\n", "npmrc")
    environment.variables["TOKEN"] = "t0ken-of-variable"  # noqa: S105 -- a test's
    steps = "RUN --mount=type=secret,id=npmrc --mount=type=secret,id=token"

    output = build(
        environment,
        f"FROM busybox:1.37\n{steps} cat /run/secrets/*; cut -d= -f2 /run/secrets/npmrc; exit 3\n",
        "      secrets: [npmrc, token]\nsecrets: {npmrc: {file: ./npmrc}, token: {environment: TOKEN}}\n",
    )

    assert [word for word in ("t0ken-of-file", "second-line", "t0ken-of-variable") if word in output] == []
    assert "    [secret]\n" in output


def test_a_base_is_built_along(environment: Environment) -> None:
    """A build of one service builds the image of the other that it is built on, and deploys that one no more."""
    text = "{command: sleep 1000, stop_grace_period: 0, build: "
    web = "{context: web, additional_contexts: {base: 'service:api'}}"
    environment.write(f"services:\n  web: {text}{web}}}\n  api: {text}./api}}\n")
    environment.write("FROM base\n", "web/Dockerfile")
    environment.write("FROM busybox:1.37\n", "api/Dockerfile")

    output = environment.platform("build", "web").expect().stdout
    environment.platform("deploy", "web").expect()

    assert [line.partition(":latest@")[0].rpartition("/")[2] for line in output.splitlines()] == ["env-api", "env-web"]
    assert {name for name in environment.names() if name.startswith("Deployment/")} == {"Deployment/web"}
