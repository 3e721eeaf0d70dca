"""Which builder is used, and that a user's own stay as they are."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from composeplat.cluster.access import Access
from composeplat.diagnostics import MissingPiece
from composeplat.engine.backend import DataFolder
from composeplat.engine.builder import BUILDER, builder_variables, with_docker_host
from composeplat.engine.target import Target
from composeplat.local.layout import Layout, make_layout

INSTANCE = {"Name": "mine", "Driver": "remote", "Nodes": [], "Dynamic": False}


def target(layout: Layout | None = None) -> Target:
    return Target(access=Access(host="127.0.0.1", port=1), kubeconfig="", layout=layout)


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """A user without Docker, whose local cluster would be in a folder that is not there."""
    return {"HOME": str(tmp_path / "user"), "COMPOSEPLAT_CLUSTER": str(tmp_path / "none")}


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """The user's builders."""
    folder = tmp_path / "user" / ".docker" / "buildx"
    (folder / "instances").mkdir(parents=True)
    (folder / "instances" / "mine").write_text(json.dumps(INSTANCE))
    (folder / "current").write_text('{"Key": "unix:///x", "Name": "mine"}')
    return folder


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_the_named_builder(shell: dict[str, str], users: Path, tmp_path: Path) -> None:
    """A user's builder serves from a copy, on a local cluster too; what is there stays."""
    before = contents(users)

    found = builder_variables(
        {**shell, "BUILDX_BUILDER": "mine"}, target(make_layout(shell)), DataFolder(tmp_path / "data")
    )

    assert found == {BUILDER: "mine", "BUILDX_CONFIG": str(tmp_path / "data" / "buildx-user")}
    assert contents(tmp_path / "data" / "buildx-user") == before
    assert contents(users) == before


def test_a_builder_that_is_gone_from_the_user_is_gone_from_the_copy(
    shell: dict[str, str], users: Path, tmp_path: Path
) -> None:
    """The copy has no builder that the user has removed."""
    data_folder = DataFolder(tmp_path / "data")
    (users / "instances" / "old").write_text(json.dumps(INSTANCE))
    builder_variables({**shell, "BUILDX_BUILDER": "mine"}, target(), data_folder)
    (users / "instances" / "old").unlink()

    builder_variables({**shell, "BUILDX_BUILDER": "mine"}, target(), data_folder)

    assert [path.name for path in (tmp_path / "data" / "buildx-user" / "instances").iterdir()] == ["mine"]


def test_runs_at_the_same_time(shell: dict[str, str], users: Path, tmp_path: Path) -> None:
    """Each of several runs gets its copy: none takes away what another one writes."""
    assert users.exists()

    def copy(_: int) -> dict[str, str]:
        return builder_variables({**shell, "BUILDX_BUILDER": "mine"}, target(), DataFolder(tmp_path / "data"))

    with ThreadPoolExecutor(max_workers=4) as pool:
        found = list(pool.map(copy, range(200)))

    assert {folder["BUILDX_CONFIG"] for folder in found} == {str(tmp_path / "data" / "buildx-user")}


@pytest.mark.parametrize("variable", ["BUILDX_CONFIG", "DOCKER_CONFIG"])
def test_other_configurations_at_the_same_time(
    shell: dict[str, str], users: Path, tmp_path: Path, variable: str
) -> None:
    """Jobs of a CI system have one each: none takes the builder of another one away, and a copy goes with its job."""
    data_folder, copies = DataFolder(tmp_path / "data"), []
    for job in ("one", "two"):
        folder = tmp_path / job
        shutil.copytree(users, folder if variable == "BUILDX_CONFIG" else folder / "buildx")
        for instances in folder.rglob("instances"):
            (instances / job).write_text(json.dumps(INSTANCE))
        given = {**shell, variable: str(folder), "BUILDX_BUILDER": job}
        copies.append(Path(builder_variables(given, target(), data_folder)["BUILDX_CONFIG"]))

    assert [sorted(path.name for path in (copy / "instances").iterdir()) for copy in copies] == [
        ["mine", "one"], ["mine", "two"],
    ]  # fmt: skip
    shutil.rmtree(tmp_path / "one")
    builder_variables(shell, target(), data_folder)
    assert sorted(path for path in (tmp_path / "data").iterdir() if path.is_dir()) == sorted(
        [tmp_path / "data" / "buildx-user", copies[1]]
    )


def test_the_current_builder(shell: dict[str, str], users: Path, tmp_path: Path) -> None:
    """Where none is named, the builder that the user works with is left for buildx to choose."""
    assert users.exists()

    assert builder_variables(shell, target(), DataFolder(tmp_path / "data"))[BUILDER] == ""


def test_the_local_clusters(shell: dict[str, str], users: Path, tmp_path: Path) -> None:
    """On a local cluster it is that one's, as only it knows the registry there."""
    assert users.exists()
    layout = make_layout(shell)

    found = builder_variables(shell, target(layout), DataFolder(tmp_path / "data"))

    assert found == {BUILDER: "composeplat", "BUILDX_CONFIG": str(tmp_path / "data" / "buildx")}
    (instance,) = (tmp_path / "data" / "buildx" / "instances").iterdir()
    assert json.loads(instance.read_text())["Nodes"][0]["Endpoint"] == f"unix://{layout.buildkit_socket}"


def test_an_unknown_builder(shell: dict[str, str], users: Path, tmp_path: Path) -> None:
    """An unknown name is reported, with those that are known."""
    assert users.exists()

    with pytest.raises(MissingPiece, match=r"^buildx has no builder 'yours'$") as caught:
        builder_variables({**shell, "BUILDX_BUILDER": "yours"}, target(), DataFolder(tmp_path / "data"))

    assert caught.value.hint == "builders are: mine"


def test_none_at_all(shell: dict[str, str], tmp_path: Path) -> None:
    """Without builders, Docker and local cluster, it is reported what would help."""
    with pytest.raises(MissingPiece, match=r"^no builder for images"):
        builder_variables(shell, target(), DataFolder(tmp_path / "data"), docker_socket=tmp_path / "none")


@pytest.mark.parametrize(
    ("current", "has_docker"),
    [
        ('{"Key": "unix:///gone/docker.sock", "Name": ""}', False),
        ("", False),
        ("[]", False),
        ('{"Key": "ssh://far", "Name": ""}', True),
        ('{"Key": "unix:///gone/docker.sock", "Name": "mine"}', True),
    ],
)
def test_docker_that_is_noted_as_the_choice(
    current: str, *, has_docker: bool, shell: dict[str, str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A first `docker buildx` notes Docker's socket for the choice, with or without Docker: it must be there."""
    users = tmp_path / "user" / ".docker" / "buildx"
    users.mkdir(parents=True)
    (users / "current").write_text(current)
    layout = make_layout(shell)
    layout.buildkit_socket.parent.mkdir(parents=True)
    request.addfinalizer(lambda: shutil.rmtree(layout.buildkit_socket.parent))
    layout.buildkit_socket.touch()

    found = builder_variables(shell, target(), DataFolder(tmp_path / "data"), docker_socket=tmp_path / "none")

    assert found[BUILDER] == ("" if has_docker else "composeplat")


def test_docker_with_none_of_its_own(shell: dict[str, str], tmp_path: Path) -> None:
    """With Docker alone, it is left to the provider, in a folder of ours."""
    shell["DOCKER_HOST"] = "tcp://127.0.0.1:1"

    found = builder_variables(shell, target(), DataFolder(tmp_path / "data"), docker_socket=tmp_path / "none")

    assert found == {BUILDER: "", "BUILDX_CONFIG": str(tmp_path / "data" / "buildx-user")}


def test_a_context_of_docker(shell: dict[str, str], tmp_path: Path) -> None:
    """A context of Docker may be named for a builder, as with buildx."""
    meta = tmp_path / "user" / ".docker" / "contexts" / "meta" / "0123" / "meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text('{"Name": "far"}')

    found = builder_variables({**shell, "BUILDX_BUILDER": "far"}, target(), DataFolder(tmp_path / "data"))

    assert found[BUILDER] == "far"


def build_provider(host: str | None, **more: Any) -> dict[str, Any]:
    values = {"version": "1"} if host is None else {"version": "1", "host": host}
    return {"type": "pulumi:providers:docker-build", "inputs": values, "outputs": values, **more}


@pytest.mark.parametrize(
    ("resources", "host", "expected"),
    [
        pytest.param([], "a", None, id="no-provider"),
        pytest.param([build_provider("a")], "a", None, id="the-same"),
        pytest.param([build_provider(None)], "", None, id="none-before-and-now"),
        pytest.param([build_provider("b", delete=True)], "a", None, id="is-being-deleted"),
        pytest.param(
            [build_provider("b", delete=True), {"type": "x"}, build_provider("b", id="1")],
            "a",
            [build_provider("b", delete=True), {"type": "x"}, build_provider("a", id="1")],
            id="another",
        ),
        pytest.param([build_provider("b")], "", [build_provider("")], id="none-now"),
    ],
)
def test_the_docker_of_a_state(resources: list[Any], host: str, expected: list[Any] | None) -> None:
    """A state gets the Docker of this run, so that Pulumi does not replace its provider and all images."""
    changed = with_docker_host({"version": 3, "resources": resources}, host)

    assert changed == (None if expected is None else {"version": 3, "resources": expected})
