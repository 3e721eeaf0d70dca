"""Which images are built when: by ``platform build``, and by ``platform deploy`` with and without its flags."""

from __future__ import annotations

import re

import pytest

from composeplat.cluster.api import ApiError
from tests.deploy.conftest import SLEEP, Environment
from tests.deploy.test_no_change import SWITCH

TEXT = f"""
x-app: &app {{command: "{SLEEP}", stop_grace_period: 0}}
services:
  web: {{<<: *app, build: ./web}}
  api: {{<<: *app, build: ./api, depends_on: [db]}}
  db: {{<<: *app, image: 'busybox:1.37'}}
"""
DOCKERFILE = "FROM busybox:1.37\nCOPY text /text\n"


@pytest.fixture
def built(environment: Environment) -> Environment:
    """Two services that are built, and one that is not."""
    environment.write(TEXT)
    for name in ("web", "api"):
        environment.write(DOCKERFILE, f"{name}/Dockerfile")
        environment.write(f"{name} 1\n", f"{name}/text")
    return environment


def pod(environment: Environment, service: str) -> str:
    (pods,) = environment.pods(service)
    return str(pods["metadata"]["name"])


def image(environment: Environment, service: str) -> str:
    found = environment.get("apps/v1", "Deployment", service)
    assert found is not None
    return str(found["spec"]["template"]["spec"]["containers"][0]["image"])


def test_build_then_deploy(built: Environment) -> None:
    """`platform build` makes images and nothing else; the deploy after it builds none and runs them by digest."""
    ran = built.platform("build").expect()
    web, api = ran.stdout.split()

    assert "@sha256:" in web
    assert "/env-web:latest@" in web
    assert "/env-api:latest@" in api
    assert built.names() == set()

    deployed = built.deploy().expect()
    assert "building" not in deployed.stderr
    assert (image(built, "web"), image(built, "api")) == (web, api)
    assert built.exec(pod(built, "web"), "cat", "/text") == "web 1\n"

    built.write("web 2\n", "web/text")
    before = pod(built, "web")
    (again,) = built.platform("build", "web").expect().stdout.split()
    assert again != web
    assert (pod(built, "web"), image(built, "web")) == (before, web)

    assert "no image changed" in built.platform("build").expect().stderr
    assert "built 2 images" in built.platform("build", "--force").expect().stderr


def builds(environment: Environment, *args: str) -> tuple[bool, list[str]]:
    """Whether a build has asked Pulumi, and the images that it names."""
    ran = environment.platform("build", "--debug", *args).expect()
    return re.search(r"running \S*/pulumi ", ran.stderr) is not None, ran.stdout.split()


def test_a_build_without_a_change(built: Environment) -> None:
    """After a build the next one needs no Pulumi, until anything changes that it depends on."""
    asked, images = builds(built)
    assert asked
    for _ in range(2):
        assert builds(built) == (False, images)
    built.variables[SWITCH] = "false"
    assert builds(built) == (True, images)
    del built.variables[SWITCH]
    # Not even where the state is written again, as long as it has the same images.
    built.deploy().expect()
    assert builds(built) == (False, images)

    def settle() -> list[str]:
        builds(built)
        asked, images = builds(built)
        assert not asked
        return images

    assert builds(built, "--force")[0]
    assert builds(built, "web")[0]
    assert builds(built, "web")[0] is False
    settle()
    built.write("web 2\n", "web/text")
    asked, changed = builds(built)
    assert (asked, changed[0] == images[0], changed[1:]) == (True, False, images[1:])
    settle()
    built.write(DOCKERFILE + "# a comment\n", "api/Dockerfile")
    assert builds(built)[0]
    settle()
    built.write(TEXT.replace("./web}", "{context: ./web, args: {A: b}}}"))
    assert builds(built)[0]
    settle()
    built.deploy("", "--build").expect()
    assert builds(built)[1] == [image(built, "web"), image(built, "api")]
    built.variables[SWITCH] = "false"
    assert builds(built)[0]


def test_which_are_built(built: Environment) -> None:
    """A deploy builds what changed; --no-build nothing, --build all; only what has another image rolls."""
    built.deploy().expect()
    pods = {name: pod(built, name) for name in ("web", "api", "db")}
    built.write("web 2\n", "web/text")

    built.deploy("", "--no-build").expect()
    assert {name: pod(built, name) for name in pods} == pods

    ran = built.deploy().expect()
    assert "web: built\n" in ran.stderr
    assert "api: built\n" not in ran.stderr
    assert built.exec(pod(built, "web"), "cat", "/text") == "web 2\n"
    assert {name: pod(built, name) for name in ("api", "db")} == {name: pods[name] for name in ("api", "db")}

    ran = built.deploy("", "--build").expect()
    assert {"web: built", "api: built"} <= set(ran.stderr.splitlines())
    assert {name: pod(built, name) for name in ("api", "db")} == {name: pods[name] for name in ("api", "db")}


def test_another_docker(built: Environment) -> None:
    """A run with another DOCKER_HOST builds what changed, also of named services, and the state stays whole."""
    built.deploy().expect()
    api = image(built, "api")

    for number, args in enumerate((("build", "web"), ("deploy", "web"), ("deploy", "--no-build"), ("deploy",))):
        built.write(f"web {number}\n", "web/text")
        other = {"DOCKER_HOST": f"tcp://127.0.0.1:{number + 1}"}
        changes = built.platform("preview", "--json", "web", **other).expect().json["changes"]
        assert {change["name"] for change in changes} <= {"env-image/web", "web"}
        assert "api: building" not in built.platform(*args, **other).expect().stderr

    hosts = [row["inputs"]["host"] for row in built.state()["resources"] if row["type"].endswith(":docker-build")]
    assert (image(built, "api"), hosts) == (api, ["tcp://127.0.0.1:4"])
    assert "building" not in built.deploy().expect().stderr


def test_nothing_is_deployed_where_a_build_fails(built: Environment) -> None:
    """One failing build, and no other service is made or changed either; what was there continues."""
    built.write(f"{DOCKERFILE}RUN echo no such thing; exit 7\n", "web/Dockerfile")
    ran = built.deploy().expect(1)

    assert "error: services.web" in ran.stderr
    assert built.names() == set()

    built.write(DOCKERFILE, "web/Dockerfile")
    built.deploy().expect()
    before = {name: pod(built, name) for name in ("web", "api", "db")}
    built.write(f"{DOCKERFILE}RUN exit 7\n", "web/Dockerfile")
    built.write("api 2\n", "api/text")
    built.deploy().expect(1)
    assert {name: pod(built, name) for name in before} == before


def test_never_built(built: Environment) -> None:
    """Without an image there is nothing to run, so --no-build is refused before anything changes."""
    ran = built.deploy("", "--no-build").expect(1)

    assert "the image of service '" in ran.stderr
    assert "has never been built here" in ran.stderr
    with built.api() as api, pytest.raises(ApiError, match="not found"):
        api.get(f"/api/v1/namespaces/{built.namespace}")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param(("db",), "service 'db' has nothing to build", id="no-build-section"),
        pytest.param(("wbe",), "there is no service 'wbe'", id="unknown"),
    ],
)
def test_nothing_to_build(built: Environment, args: tuple[str, ...], message: str) -> None:
    """A service that is not built is named."""
    assert message in built.platform("build", *args).expect(1).stderr


def test_a_build_leaves_the_rest(built: Environment) -> None:
    """A build after a deploy touches nothing but images: neither objects, nor the state's word of them, nor the URLs.

    Nor does it what has left the file since: that is for a deploy to delete.
    """
    built.write(
        f"{TEXT}  store: {{<<: *app, image: 'busybox:1.37', volumes: ['data:/data', '/cache'], ports: ['9000:9000']}}\n"
        "volumes: {data: {}}\nendpoints: [{path: /, service: store, port: 9000}]\n"
    )
    built.deploy("", "--no-wait").expect()
    before = resources(built)
    objects = built.names()

    built.write(
        f"{TEXT}  new: {{<<: *app, build: ./api}}\n".replace("  db: {<<: *app, image: 'busybox:1.37'}\n", "").replace(
            ", depends_on: [db]", ""
        )
    )
    built.write("web 2\n", "web/text")
    built.platform("build", "web").expect()

    assert before - resources(built) == set()
    assert {urn.rpartition("/")[2] for urn in resources(built) - before} <= {"new"}
    assert [urn for urn in resources(built) if "kubernetes:" in urn and urn.endswith("new")] == []
    assert built.names() == objects
    built.platform("deploy", "--no-wait").expect()
    assert built.names() - objects == {"Deployment/new", "Service/new"}
    assert not [urn for urn in resources(built) if urn.endswith(("/db", "/store"))]


def resources(environment: Environment) -> set[str]:
    return {str(row["urn"]) for row in environment.state()["resources"]}
