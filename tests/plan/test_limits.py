"""What Kubernetes would refuse by size is an error here, and what happens to host content is reported."""

from __future__ import annotations

import pytest

from composeplat.compose.model import MAX_HOST_FILES
from tests.conftest import Project

LARGEST_ANNOTATIONS = 256 * 1024


def annotated(labels: int, annotations: int) -> str:
    """A service whose labels and annotations have that many bytes each, names and values together."""
    return (
        f"services:\n  web:\n    image: nginx\n    labels: {{a: {'x' * (labels - 1)}}}\n"
        f"    annotations: {{b: {'x' * (annotations - 1)}}}\n"
    )


def test_annotations_that_just_fit(project: Project) -> None:
    """Annotations of 256 KiB in all are taken."""
    text = annotated(LARGEST_ANNOTATIONS // 2, LARGEST_ANNOTATIONS // 2)

    assert project(text).read().messages == []


def test_annotations_that_do_not_fit(project: Project) -> None:
    """Labels and annotations count together, and one byte more is an error at the service."""
    text = annotated(LARGEST_ANNOTATIONS // 2, LARGEST_ANNOTATIONS // 2 + 1)

    expected = "services.web has labels and annotations of 257 KiB; Kubernetes allows 256 KiB [invalid-value]"
    assert project(text).read().messages == [f"compose.yaml:2:3: error: {expected}"]


@pytest.mark.parametrize(("size", "codes"), [(LARGEST_ANNOTATIONS, []), (LARGEST_ANNOTATIONS + 1, ["invalid-value"])])
def test_annotations_of_an_endpoint(project: Project, size: int, codes: list[str]) -> None:
    """They have the same limit as those of a service."""
    rules = "rules: [{path: /, service: web, port: 80}]"
    text = f"endpoints: {{annotations: {{a: {'x' * (size - 1)}}}, {rules}}}\n"

    assert project(f"services: {{web: {{image: nginx, expose: [80]}}}}\n{text}").read(domain="a.b").codes == codes


def test_annotations_count_as_bytes(project: Project) -> None:
    """A character of two bytes counts twice."""
    text = f"services:\n  web:\n    image: nginx\n    annotations: {{a: {'é' * (LARGEST_ANNOTATIONS // 2)}}}\n"

    assert project(text).read().codes == ["invalid-value"]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param(0, [], id="as-many-as-fit"),
        pytest.param(
            1,
            [
                (
                    "compose.yaml:1:45: note: services.web.volumes has host content too large for a Secret:"
                    " it goes into an image made from the service's own [derived-image]"
                )
            ],
            id="one-more",
        ),
    ],
)
def test_files_of_all_host_volumes_count_together(project: Project, more: int, expected: list[str]) -> None:
    """A Secret carries 64 files of a service, in however many folders they lie."""
    half = MAX_HOST_FILES // 2
    files = {f"a/{n}": "x" for n in range(half)} | {f"b/{n}": "x" for n in range(half + more)}
    text = "services: {web: {image: 'nginx:1', volumes: ['./a:/a', './b:/b']}}"

    reading = project({"compose.yaml": text, **files}).read()

    assert expected == reading.notes
    assert reading.plan is not None
    assert [image.derived for image in reading.plan.images] == [True] * more


EMPTY = "mounts an empty folder of this machine: what is written there is lost with the pod"


def test_an_empty_host_folder(project: Project) -> None:
    """An empty folder is warned of, as what is written there is lost; one that is read-only is noted."""
    folder = project("services: {web: {image: nginx, volumes: ['./empty:/data', './empty:/conf:ro']}}")
    (folder.path / "empty").mkdir()

    reading = folder.read()

    assert reading.messages == [f"compose.yaml:1:42: warning: services.web.volumes[0] {EMPTY} [host-data]"]
    assert reading.notes == [
        "compose.yaml:1:59: note: services.web.volumes[1] is an empty folder, and nothing is mounted [not-deployed]"
    ]
    assert reading.names == ["Service/web", "Deployment/web"]
    assert "volumeMounts" not in reading.container("Deployment", "web")


@pytest.mark.parametrize(
    ("files", "shown"),
    [
        pytest.param({}, "an empty folder", id="empty"),
        pytest.param({"sub/x": ""}, "a folder whose entries are all covered by other mounts", id="covered"),
    ],
)
def test_a_host_folder_whose_entries_are_covered(project: Project, files: dict[str, str], shown: str) -> None:
    """It is called empty only where it has no entries."""
    text = "services: {web: {image: nginx, volumes: ['./own:/a', './own:/b:ro', /a/sub, /b/sub]}}"
    folder = project({"compose.yaml": text, **{f"own/{name}": content for name, content in files.items()}})
    (folder.path / "own").mkdir(exist_ok=True)

    reading = folder.read()

    data = shown.replace("folder", "folder of this machine")
    lost = f"services.web.volumes[0] mounts {data}: what is written there is lost with the pod"
    assert reading.messages == [f"compose.yaml:1:42: warning: {lost} [host-data]"]
    assert reading.notes == [
        f"compose.yaml:1:54: note: services.web.volumes[1] is {shown}, and nothing is mounted [not-deployed]"
    ]


def test_a_host_folder_with_a_file_beside_covered_entries(project: Project) -> None:
    """A file by which git keeps a folder is named beside them."""
    text = "services: {web: {image: nginx, volumes: ['./own:/a', /a/sub]}}"
    folder = project({"compose.yaml": text, "own/.gitkeep": "", "own/sub/x": ""})

    (message,) = folder.read().messages

    assert "a folder of this machine whose entries except '.gitkeep' are all covered by other mounts" in message


def test_an_empty_host_folder_beside_a_full_folder(project: Project) -> None:
    """Beside other content, the warning names the empty one alone."""
    folder = project(
        {"compose.yaml": "services: {web: {image: nginx, volumes: ['./full:/a', './empty:/b']}}", "full/x": "x"}
    )
    (folder.path / "empty").mkdir()

    reading = folder.read()

    assert reading.messages == [f"compose.yaml:1:55: warning: services.web.volumes[1] {EMPTY} [host-data]"]
    assert [mount["mountPath"] for mount in reading.container("Deployment", "web")["volumeMounts"]] == ["/a/x"]


def test_a_large_env_file_that_many_share(project: Project) -> None:
    """Variables that would be written out for very many services are an error, reported once."""
    services = "".join(f"  s{number}: {{image: a, env_file: big.env}}\n" for number in range(40))
    text = f"services:\n{services}"

    reading = project({"compose.yaml": text, "big.env": "A=" + "x" * 900_000}).read()

    assert reading.messages == [
        "compose.yaml:39:3: error: services.s37 brings the variables of all services above 32 MiB [too-large]"
    ]
