"""Affinity of what shares a volume, files mounted one by one, and what rolls the pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from composeplat.compose.file_model import FileKind, FileMount
from composeplat.compose.model import MAX_HOST_BYTES, MAX_HOST_FILES, HostFile, Project as Definition, Service
from composeplat.plan.fingerprint import HASH_ANNOTATION, Fingerprint
from composeplat.plan.identity import Identity
from composeplat.plan.storage import plan_storage
from tests.conftest import Project, Reading

AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"


def shared_by(reading: Reading) -> dict[str, list[str]]:
    """For each workload, the labels of the volumes that hold it to a node."""
    assert reading.plan is not None, reading.messages
    found: dict[str, list[str]] = {}
    for desired in reading.plan.objects:
        pod = desired.manifest["spec"].get("template", {}).get("spec", {}) if "spec" in desired.manifest else {}
        if "affinity" in pod:
            terms = pod["affinity"]["podAffinity"][AFFINITY]
            found[desired.name] = [key for term in terms for key in term["labelSelector"]["matchLabels"]]
    return found


def volumes(**mounts: str) -> str:
    """Services with their volumes, by name: ``a="one two"`` mounts both."""
    services = [
        f"  {name}: {{image: x, volumes: [{', '.join(f'{v}:/{v}' for v in used.split())}]}}\n"
        for name, used in mounts.items()
    ]
    names = dict.fromkeys(v for used in mounts.values() for v in used.split())
    return "services:\n" + "".join(services) + f"volumes: {{{', '.join(f'{name}: {{}}' for name in names)}}}\n"


def test_affinity(project: Project) -> None:
    """Services that mount the same volume must share a node, by a label of that volume in that environment."""
    reading = project(volumes(a="data", b="data")).read()
    label = "dev.platform.com/volume-data"

    assert reading.pod("StatefulSet", "a")["affinity"] == {
        "podAffinity": {
            AFFINITY: [
                {
                    "labelSelector": {"matchLabels": {label: "demo"}},
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        }
    }
    for name in ("a", "b"):
        assert reading.object("StatefulSet", name)["spec"]["template"]["metadata"]["labels"][label] == "demo"


LABEL = "dev.platform.com/volume-"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(volumes(a="one", b="two"), {}, id="none-shared"),
        pytest.param(
            volumes(a="one", b="one two", c="two"),
            {name: [f"{LABEL}one", f"{LABEL}two"] for name in "abc"},
            id="chain",
        ),
        pytest.param(
            volumes(a="one", b="one", c="two", d="two"),
            {"a": [f"{LABEL}one"], "b": [f"{LABEL}one"], "c": [f"{LABEL}two"], "d": [f"{LABEL}two"]},
            id="two-groups",
        ),
        pytest.param(
            volumes(a="one own", b="one"),
            {"a": [f"{LABEL}one"], "b": [f"{LABEL}one"]},
            id="own-volume-does-not-count",
        ),
        pytest.param(
            volumes(a="one", b="one two", c="two three", d="three", e="four"),
            {name: [f"{LABEL}one", f"{LABEL}three", f"{LABEL}two"] for name in "abcd"},
            id="long-chain",
        ),
    ],
)
def test_services_that_share_volumes(project: Project, text: str, expected: Mapping[str, list[str]]) -> None:
    """What is shared by way of others holds all of them to one node."""
    assert expected == shared_by(project(text).read())


def test_replicas_share(project: Project) -> None:
    """Several replicas of one service share its volume."""
    text = "services: {a: {image: x, scale: 2, volumes: ['data:/d']}}\nvolumes: {data: {}}"

    assert shared_by(project(text).read()) == {"a": [f"{LABEL}data"]}


def test_affinity_of_a_job(project: Project) -> None:
    """A Job that shares a volume is held to the node too."""
    text = """\
services: {a: {image: x, volumes: ['data:/d']}, b: {image: x, restart: 'no', volumes: ['data:/d']}}
volumes: {data: {}}
"""
    reading = project(text).read()

    assert shared_by(reading) == {"a": [f"{LABEL}data"], "b": [f"{LABEL}data"]}


# host content ---------------------------------------------------------------------------------------------------------

HOST = "services: {web: {image: nginx, volumes: ['./conf:/etc/app']}}"


def modes(reading: Reading) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = reading.pod("Deployment", "web")["volumes"][0]["secret"]["items"]
    return items


def test_each_file_has_a_mount(project: Project) -> None:
    """Each file of a folder is mounted at its own path, so that what the image has beside it stays."""
    folder = project({"compose.yaml": HOST, "conf/app.ini": "x", "conf/sub/b.bin": b"\xff\x00"})
    (folder.path / "conf/app.ini").chmod(0o640)
    (folder.path / "conf/sub/b.bin").chmod(0o755)

    reading = folder.read()

    mounts = reading.container("Deployment", "web")["volumeMounts"]
    assert [(m["mountPath"], m["readOnly"]) for m in mounts] == [
        ("/etc/app/app.ini", True),
        ("/etc/app/sub/b.bin", True),
    ]
    assert [m["subPath"] for m in mounts] == [item["path"] for item in modes(reading)]
    assert [item["mode"] for item in modes(reading)] == [0o640, 0o755]


def test_content(project: Project) -> None:
    """Content is kept in a Secret, byte for byte: a ConfigMap stood plain in the state."""
    reading = project({"compose.yaml": HOST, "conf/a": "text", "conf/b": b"\xff\x00", "conf/c": b"\0"}).read()
    held = reading.object("Secret", "web-files")

    assert held["type"] == "Opaque"
    assert list(held["data"].values()) == ["dGV4dA==", "/wA=", "AA=="]
    assert reading.pod("Deployment", "web")["volumes"][0]["secret"]["secretName"] == "web-files"


def test_files_with_equal_names(project: Project) -> None:
    """Paths that would have the same key in a Secret keep apart."""
    reading = project({"compose.yaml": HOST, "conf/a/b": "1", "conf/a_b": "2"}).read()

    assert sorted(reading.object("Secret", "web-files")["data"].values()) == ["MQ==", "Mg=="]
    assert len({mount["subPath"] for mount in reading.container("Deployment", "web")["volumeMounts"]}) == 2


NESTED = "services: {web: {image: nginx, volumes: ['./b:/x/f', './a:/x', './c:/y']}}"


def test_a_volume_within_another_is_mounted_last(project: Project) -> None:
    """A file that two volumes have at one path is that of the deeper volume, whatever their order."""
    files = {"a/f": "a", "a/g": "a", "b": "b", "c/d": "c"}
    held = project({"compose.yaml": NESTED, **files}).read().object("Secret", "web-files")

    assert held["data"] == {"x_f": "Yg==", "x_g": "YQ==", "y_d": "Yw=="}


def test_a_volume_within_another_is_copied_last(project: Project) -> None:
    """So it is in a derived image."""
    plan = project({"compose.yaml": NESTED, "a/g": b"x" * (MAX_HOST_BYTES + 1), "b": "b", "c/d": "c"}).read().plan

    assert plan is not None
    copies = ['COPY ["1/", "/x/"]', 'COPY ["2/", "/y/"]', 'COPY ["0", "/x/f"]']
    assert plan.images[0].build.dockerfile_inline == "\n".join(["FROM nginx", *copies, ""])


HIDING = """
    services: {web: {image: nginx, volumes: ['./src:/app', /app/node_modules, 'cache:/app/tmp/cache']}}
    volumes: {cache: }
"""


def test_what_a_volume_hides_of_a_host_folder(project: Project) -> None:
    """It is not read, whatever it is: as with Docker, a volume keeps it out of the container."""
    hidden = {f"src/node_modules/{number}": "x" for number in range(MAX_HOST_FILES + 1)}
    folder = project({"compose.yaml": HIDING, "src/main.js": "m", "src/tmp/log": "l", **hidden})
    (folder.path / "src" / "node_modules" / "link").symlink_to("/usr")
    (folder.path / "src" / "tmp" / "cache").symlink_to("/usr")
    reading = folder.read()

    assert reading.messages == []
    assert sorted(reading.object("Secret", "web-files")["data"]) == ["app_main.js", "app_tmp_log"]


def test_what_a_host_folder_hides_of_another(project: Project) -> None:
    """A folder within another one is all that is there, as with Docker."""
    text = "services: {web: {image: nginx, volumes: ['./prod:/app/conf', './src:/app']}}"
    files = {"src/conf/dev": "d", "src/conf/both": "s", "src/run": "r", "prod/both": "p"}
    held = project({"compose.yaml": text, **files}).read().object("Secret", "web-files")

    assert held["data"] == {"app_run": "cg==", "app_conf_both": "cA=="}


def test_what_a_volume_hides_is_in_no_image(project: Project) -> None:
    """A derived image fills the volume, which with Docker is empty."""
    large = b"x" * (MAX_HOST_BYTES + 1)
    plan = project({"compose.yaml": HIDING, "src/main.js": large, "src/node_modules/a": "x"}).read().plan

    assert plan is not None
    assert plan.images[0].left_out == {0: {"node_modules", "tmp/cache"}}


def test_a_synced_file_at_the_path_of_a_config() -> None:
    """A path has one mount: a file that ``platform watch`` puts into new pods gives way to a config."""
    config = FileMount(kind=FileKind.CONFIG, source="site", target="/site.conf")
    files = (HostFile("/site.conf", 0o644, b"1"), HostFile("/more.conf", 0o644, b"2"))
    service = Service(name="web", image="nginx", file_mounts=(config,), synced_files=files)

    definition = Definition(services={"web": service}, volumes={})

    storage = plan_storage(service, definition, Identity(environment="shop", namespace="dev"))

    assert list(storage.files.values()) == [files[1]]


def test_content_above_the_limit(project: Project) -> None:
    """Content too large for a Secret makes a derived image, of the host paths alone."""
    folder = project({"compose.yaml": HOST, "conf/large": b"x" * (MAX_HOST_BYTES + 1)})

    reading = folder.read(registry="registry.example.com/team/")

    assert reading.plan is not None
    (image,) = reading.plan.images
    assert (image.service, image.reference, image.derived) == ("web", "registry.example.com/team/demo-web", True)
    assert image.contents == (str(folder.path / "conf"),)
    assert image.build.dockerfile_inline == 'FROM nginx\nCOPY ["0/", "/etc/app/"]\n'
    assert str(reading.container("Deployment", "web")["image"]) == "registry.example.com/team/demo-web"
    assert reading.names == ["Service/web", "Deployment/web"]


def test_one_large_content_carries_the_others(project: Project) -> None:
    """Where one mount makes a derived image, the service's other host content goes into it too."""
    text = "services: {web: {image: nginx, volumes: ['./large:/a', './small:/b/small']}}"
    folder = project({"compose.yaml": text, "large": b"x" * (MAX_HOST_BYTES + 1), "small": "x"})

    plan = folder.read().plan

    assert plan is not None
    assert plan.images[0].contents == (str(folder.path / "large"), str(folder.path / "small"))
    assert plan.images[0].build.dockerfile_inline == 'FROM nginx\nCOPY ["0", "/a"]\nCOPY ["1", "/b/small"]\n'


def test_images(project: Project) -> None:
    """A built image is named by the service's own image, or by registry, environment and service."""
    text = """\
services:
  own: {image: team/own:1, build: .}
  My_App: {build: ./app}
  plain: {image: nginx}
"""
    plan = project(text).read(registry="registry.example.com").plan
    assert plan is not None

    assert [(i.service, i.reference, i.derived) for i in plan.images] == [
        ("own", "team/own:1", False),
        ("My_App", "registry.example.com/demo-my-app", False),
    ]
    assert [str(service.image) for service in plan.services] == [
        "team/own:1",
        "registry.example.com/demo-my-app",
        "nginx",
    ]


def test_image_without_a_registry(project: Project) -> None:
    """Without a registry the name is the environment's and the service's."""
    plan = project("services: {web: {build: .}}").read().plan

    assert plan is not None
    assert plan.images[0].reference == "demo-web"


# what rolls the pods --------------------------------------------------------------------------------------------------


def digest(reading: Reading) -> Fingerprint | None:
    metadata = reading.object("Deployment", "web")["spec"]["template"]["metadata"]
    found: Fingerprint | None = metadata.get("annotations", {}).get(HASH_ANNOTATION)
    return found


def test_nothing_to_roll(project: Project) -> None:
    """A service without variables and files needs no hash."""
    assert digest(project("services: {web: {image: x}}").read()) is None


def test_a_changed_variable_rolls(project: Project) -> None:
    """The hash changes with a variable's name and value, and not with their order."""
    first, other, value, name = (
        digest(project(f"services: {{web: {{image: x, environment: {{{text}}}}}}}").read())
        for text in ("A: '1', B: '2'", "B: '2', A: '1'", "A: '1', B: '3'", "A: '1', C: '2'")
    )

    assert first is not None
    assert first == other
    assert len({first, value, name}) == 3


def test_a_changed_file_rolls(project: Project) -> None:
    """The hash changes with a file's content and mode."""
    folder = project({"compose.yaml": HOST, "conf/a": "1"})
    (folder.path / "conf/a").chmod(0o644)
    first = digest(folder.read())
    (folder.path / "conf/a").chmod(0o755)
    second = digest(folder.read())
    folder.write({"conf/a": "2"})
    third = digest(folder.read())

    assert first is not None
    assert len({first, second, third}) == 3


def test_the_hash_does_not_show_a_value(project: Project) -> None:
    """A variable's value is in its Secret alone."""
    reading = project("services: {web: {image: x, environment: {TOKEN: hunter2}}}").read()

    assert "hunter2" not in str(reading.object("Deployment", "web"))
