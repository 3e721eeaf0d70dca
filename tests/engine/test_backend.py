"""Where Pulumi's things lie: private, and apart from the user's own."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from composeplat.diagnostics import ComposeplatError
from composeplat.engine.backend import Backend, DataFolder, find_backend, find_data_folder, writing
from tests.own_cluster import NEEDS_ROOT

CLOUD = "https://api.pulumi.com"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def log_in(folder: Path, url: str, tokens: Mapping[str, str] | None = None) -> None:
    """Leave what ``pulumi login`` writes."""
    folder.mkdir(parents=True, exist_ok=True)
    accounts = {at: {"accessToken": token, "username": "someone"} for at, token in (tokens or {}).items()}
    login = {"current": url, "accessTokens": dict(tokens or {}), "accounts": accounts}
    (folder / "credentials.json").write_text(json.dumps(login))


# folders --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        pytest.param({"HOME": "/home/a"}, "/home/a/.local/share/composeplat", id="home"),
        pytest.param({}, "/root/.local/share/composeplat", id="no-home"),
        pytest.param({"HOME": "/home/a", "XDG_DATA_HOME": "/d"}, "/d/composeplat", id="data-folder"),
        pytest.param({"HOME": "/home/a", "XDG_DATA_HOME": "/d", "COMPOSEPLAT_DATA": "/x"}, "/x", id="named"),
    ],
)
def test_find_data_folder(monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str], folder: str) -> None:
    """The home is where the user's data are, unless another folder is named."""
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)

    assert DataFolder(Path(folder)) == find_data_folder(environment)


def test_a_folder_for_each_stack(tmp_path: Path) -> None:
    """A stack's folder is one of its own for each backend, environment and namespace, and always the same."""
    data_folder = DataFolder(tmp_path)
    chosen = [("file:///a", "shop", "team"), ("file:///b", "shop", "team"), ("file:///a", "x", "team")]
    chosen.append(("file:///a", "shop", "x"))

    assert len({data_folder.stack(*item) for item in chosen}) == len(chosen)
    assert tmp_path / "stacks" / "49f9160320a5" / "shop" / "team" == data_folder.stack("file:///a", "shop", "team")


def test_the_folder_of_a_stack_after_another_password_of_the_backend(tmp_path: Path) -> None:
    """It stays: it may have the passphrase of the state. One that was made with the whole URL is used as it was."""
    data_folder = DataFolder(tmp_path)
    places = [("postgres://me:old1@db/x", "shop", "team"), ("postgres://me:new2@db/x", "shop", "team")]
    found = {data_folder.stack(*place) for place in places}
    former = tmp_path / "stacks" / hashlib.sha256(places[0][0].encode()).hexdigest()[:12] / "shop" / "team"

    assert len(found) == 1
    assert data_folder.stack("postgres://me:old1@other/x", "shop", "team") not in found
    former.mkdir(parents=True)
    assert [data_folder.stack(*place) for place in places] == [former, *found]


def test_state_of_each_cluster(tmp_path: Path) -> None:
    """Another cluster's state is another folder."""
    assert tmp_path / "state" / "one" == DataFolder(tmp_path).state("one")


def test_prepare(tmp_path: Path) -> None:
    """Preparing makes a home that its owner alone can enter, and in which Pulumi can write no log of each run."""
    data_folder = DataFolder(tmp_path / "deep" / "home")

    data_folder.prepare()

    assert mode(data_folder.path) == 0o700
    assert {path.name: mode(path) for path in data_folder.path.iterdir()} == {
        "passphrase": 0o600,
        "pulumi": 0o700,
        "stacks": 0o700,
        "state": 0o700,
    }
    assert (data_folder.pulumi / "logs").is_file()


@pytest.mark.parametrize("before", [0o755, 0o711, 0o700, 0o500 | 0o200])
def test_a_data_folder_that_is_there(tmp_path: Path, before: int) -> None:
    """A folder that is there already keeps its mode; what is made in it is closed to others."""
    tmp_path.chmod(before)

    DataFolder(tmp_path).prepare()

    assert mode(tmp_path) == before
    assert {mode(path) for path in tmp_path.iterdir()} == {0o700, 0o600}


@pytest.mark.parametrize("before", [0o1777, 0o777, 0o775, 0o770])
def test_a_data_folder_that_others_can_write_in(tmp_path: Path, before: int) -> None:
    """A folder such as /tmp is refused, and stays as it is: as root, it used to be closed to everybody else."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(before)

    with pytest.raises(ComposeplatError) as caught:
        DataFolder(shared).prepare()

    assert str(caught.value) == (
        f"other users can write to '{shared}', the folder for the state of deployments and its passphrase"
    )
    assert caught.value.hint == (
        f"set COMPOSEPLAT_DATA to a folder of your own, such as {shared}/composeplat,"
        f" or remove their access: chmod go-w {shared}"
    )
    assert mode(shared) == before
    assert list(shared.iterdir()) == []


def test_a_data_folder_in_a_folder_of_all(tmp_path: Path) -> None:
    """The fix works: a folder of one's own in one of all is made, and closed to others."""
    tmp_path.chmod(0o1777)

    DataFolder(tmp_path / "composeplat").prepare()

    assert mode(tmp_path / "composeplat") == 0o700


@NEEDS_ROOT
def test_a_data_folder_of_another_user(tmp_path: Path) -> None:
    """In a folder of all, another user may have made it, and could replace the passphrase and Pulumi's plugins."""
    planted = tmp_path / "composeplat"
    planted.mkdir()
    os.chown(planted, 12345, 12345)
    DataFolder(planted).prepare()
    for path in sorted(planted.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()

    tmp_path.chmod(0o1777)
    with pytest.raises(ComposeplatError) as caught:
        DataFolder(planted).prepare()

    assert str(caught.value) == (
        f"'{planted}', the folder for the state of deployments and its passphrase, belongs to another user"
    )
    assert caught.value.hint == "set COMPOSEPLAT_DATA to a folder of your own"
    assert list(planted.iterdir()) == []


def test_a_data_folder_with_logs(tmp_path: Path) -> None:
    """A folder of logs that is there already stays."""
    data_folder = DataFolder(tmp_path)
    (data_folder.pulumi / "logs").mkdir(parents=True)

    data_folder.prepare()

    assert (data_folder.pulumi / "logs").is_dir()


def test_passphrase(tmp_path: Path) -> None:
    """The passphrase is made once, long and private, and never written again: state hangs on it."""
    data_folder = DataFolder(tmp_path)
    data_folder.prepare()
    made = data_folder.passphrase.read_text()

    data_folder.prepare()

    assert made == data_folder.passphrase.read_text()
    assert mode(data_folder.passphrase) == 0o600
    assert len(made) == 43


def test_each_data_folder_has_a_passphrase_of_its_own(tmp_path: Path) -> None:
    """No two data_folders share a passphrase."""
    data_folders = [DataFolder(tmp_path / name) for name in ("a", "b")]
    for data_folder in data_folders:
        data_folder.prepare()

    assert data_folders[0].passphrase.read_text() != data_folders[1].passphrase.read_text()


# files ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "message", "fix"),
    [
        pytest.param(
            OSError(28, "No space left on device"),
            "'/there': no space left on device",
            "free space there, or",
            id="disk",
        ),
        pytest.param(
            OSError(30, "Read-only file system", "/a/b"),
            "'/a/b': read-only file system",
            "make it writable, or",
            id="ro",
        ),
        pytest.param(
            OSError(1, "Operation not permitted"),
            "'/there': operation not permitted",
            "its file system may have no links, such as FAT:",
            id="no-links",
        ),
        pytest.param(OSError("odd"), "'/there': odd", "make it writable, or", id="no-number"),
    ],
)
def test_writing(error: OSError, message: str, fix: str) -> None:
    """Why something can't be written is reported in a sentence, with the place and a fix."""
    with pytest.raises(ComposeplatError) as caught, writing(Path("/there")):
        raise error

    assert str(caught.value) == f"can't write {message}"
    assert caught.value.hint == f"{fix} set COMPOSEPLAT_DATA to another folder for the data of deployments"


def test_writing_something_else(tmp_path: Path) -> None:
    """Only what has to do with files is reported so."""
    with pytest.raises(ValueError, match="odd"), writing(tmp_path):
        raise ValueError("odd")


@pytest.mark.parametrize("spoiled", ["", "pulumi"])
def test_prepare_where_a_file_is_in_the_way(tmp_path: Path, spoiled: str) -> None:
    """A home that can't be made says which place is to blame."""
    data_folder = DataFolder(tmp_path / "home")
    (data_folder.path / spoiled).parent.mkdir(exist_ok=True)
    (data_folder.path / spoiled).touch()

    with pytest.raises(ComposeplatError, match=rf"^can't write '{data_folder.path}.*': file exists$"):
        data_folder.prepare()


# plugins --------------------------------------------------------------------------------------------------------------


def test_place_plugin(tmp_path: Path) -> None:
    """A provider stands where Pulumi looks for it, as a link."""
    program = tmp_path / "program"
    program.write_text("one")

    DataFolder(tmp_path).place_plugin("kubernetes", "4.25.0", program)

    link = tmp_path / "pulumi" / "plugins" / "resource-kubernetes-v4.25.0" / "pulumi-resource-kubernetes"
    assert program == link.readlink()
    assert [link] == list(link.parent.iterdir())


def test_place_plugin_twice(tmp_path: Path) -> None:
    """A provider that is in place is not placed again."""
    data_folder, program = DataFolder(tmp_path), tmp_path / "program"
    data_folder.place_plugin("kubernetes", "4.25.0", program)
    folder = tmp_path / "pulumi" / "plugins" / "resource-kubernetes-v4.25.0"
    before = (folder / "pulumi-resource-kubernetes").lstat()

    data_folder.place_plugin("kubernetes", "4.25.0", program)

    assert before == (folder / "pulumi-resource-kubernetes").lstat()


def test_place_plugin_of_another_program(tmp_path: Path) -> None:
    """Where the program lies elsewhere now, as after a cache was cleared, the link is routed there."""
    data_folder = DataFolder(tmp_path)
    data_folder.place_plugin("docker-build", "0.0.22", tmp_path / "gone")
    folder = tmp_path / "pulumi" / "plugins" / "resource-docker-build-v0.0.22"

    data_folder.place_plugin("docker-build", "0.0.22", tmp_path / "there")

    assert tmp_path / "there" == (folder / "pulumi-resource-docker-build").readlink()
    assert [folder / "pulumi-resource-docker-build"] == list(folder.iterdir())


# backends -------------------------------------------------------------------------------------------------------------


def test_a_backend_of_our_own(tmp_path: Path) -> None:
    """Without a word from the user, state is kept in files of our own, under our passphrase."""
    data_folder = DataFolder(tmp_path / "data")
    folder = tmp_path / "data" / "state" / "uid"

    backend = find_backend({"HOME": str(tmp_path)}, data_folder, "uid")

    variables = {
        "PULUMI_BACKEND_URL": f"file://{folder}",
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(tmp_path / "data" / "passphrase"),
    }
    assert Backend(f"file://{folder}", variables, folder) == backend
    assert folder.is_dir()


@pytest.mark.parametrize(
    ("url", "given", "folder"),
    [
        pytest.param("s3://bucket", "s3://bucket", None, id="a-bucket"),
        pytest.param(CLOUD, CLOUD, None, id="a-service"),
        pytest.param("file:///state", "file:///state", Path("/state"), id="files"),
        pytest.param(
            "file:///my%20state/%C3%BC", "file:///my%20state/%C3%BC", Path("/my state/ü"), id="an-encoded-path"
        ),
        pytest.param(
            "file:///state?no_tmp_dir=true",
            "file:///state?no_tmp_dir=true",
            Path("/state"),
            id="files-with-an-option",
        ),
    ],
)
def test_backend_that_is_set(tmp_path: Path, url: str, given: str, folder: Path | None) -> None:
    """The backend is the one that the user set, whatever they are logged in to; of files the folder is known."""
    log_in(tmp_path / ".pulumi", "gs://other", {"gs://other": "token"})

    backend = find_backend({"PULUMI_BACKEND_URL": url, "HOME": str(tmp_path)}, DataFolder(tmp_path / "data"), "uid")

    passphrase = str(tmp_path / "data" / "passphrase")
    assert (url.partition("?")[0], folder) == (backend.url, backend.folder)
    assert backend.variables == {"PULUMI_BACKEND_URL": given, "PULUMI_CONFIG_PASSPHRASE_FILE": passphrase}
    assert not (tmp_path / "data" / "state").exists()


def test_files_by_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is from where the command is run, which is not where Pulumi is."""
    monkeypatch.chdir(tmp_path)

    backend = find_backend(
        {"PULUMI_BACKEND_URL": "file://./state", "HOME": "/home"}, DataFolder(tmp_path / "data"), "uid"
    )

    assert (f"file://{tmp_path}/state", tmp_path / "state") == (backend.url, backend.folder)
    assert backend.variables["PULUMI_BACKEND_URL"] == backend.url


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({"PULUMI_CONFIG_PASSPHRASE": ""}, id="empty"),
        pytest.param({"PULUMI_CONFIG_PASSPHRASE": "x"}, id="given"),
        pytest.param({"PULUMI_CONFIG_PASSPHRASE_FILE": "/x"}, id="in-a-file"),
    ],
)
def test_passphrase_of_the_user(tmp_path: Path, environment: Mapping[str, str]) -> None:
    """A passphrase that the user gives, be it an empty one, is the one that counts."""
    backend = find_backend({**environment, "HOME": str(tmp_path)}, DataFolder(tmp_path / "data"), "uid")

    assert list(backend.variables) == ["PULUMI_BACKEND_URL"]


def test_no_passphrase_file(tmp_path: Path) -> None:
    """An empty name of a passphrase file is none."""
    environment = {"PULUMI_CONFIG_PASSPHRASE_FILE": "", "HOME": str(tmp_path)}

    backend = find_backend(environment, DataFolder(tmp_path / "data"), "uid")

    assert backend.variables["PULUMI_CONFIG_PASSPHRASE_FILE"] == str(tmp_path / "data" / "passphrase")


@pytest.mark.parametrize("variable", ["HOME", "PULUMI_HOME"])
def test_backend_that_is_logged_in_to(tmp_path: Path, variable: str) -> None:
    """What the user is logged in to is the backend; its token goes along, and no other."""
    folder = tmp_path / ".pulumi" if variable == "HOME" else tmp_path
    log_in(folder, CLOUD, {CLOUD: "pul-1", "https://other": "pul-2"})

    backend = find_backend({variable: str(tmp_path)}, DataFolder(tmp_path / "data"), "uid")

    variables = {
        "PULUMI_BACKEND_URL": CLOUD,
        "PULUMI_ACCESS_TOKEN": "pul-1",
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(tmp_path / "data" / "passphrase"),
    }
    assert Backend(CLOUD, variables, None) == backend


def test_a_login_in_a_folder_of_its_own(tmp_path: Path) -> None:
    """A variable names the folder of the login, as for Pulumi, whatever the other folders have."""
    for name in ("credentials", "home", ".pulumi"):
        log_in(tmp_path / name, f"file://{tmp_path}/{name}-states")
    variables = {"PULUMI_CREDENTIALS_PATH": "credentials", "PULUMI_HOME": "home", "HOME": ""}

    backend = find_backend(
        {name: str(tmp_path / folder) for name, folder in variables.items()}, DataFolder(tmp_path / "data"), "uid"
    )

    assert backend.folder == tmp_path / "credentials-states"


def test_login_to_files(tmp_path: Path) -> None:
    """A login to a folder is one to files, which can be looked at."""
    log_in(tmp_path / ".pulumi", f"file://{tmp_path}/states")

    backend = find_backend({"HOME": str(tmp_path)}, DataFolder(tmp_path / "data"), "uid")

    assert (f"file://{tmp_path}/states", tmp_path / "states") == (backend.url, backend.folder)


def test_a_token_alone(tmp_path: Path) -> None:
    """A token without a backend is one of Pulumi's own service, which Pulumi takes without being reported."""
    environment = {"PULUMI_ACCESS_TOKEN": "pul-1", "HOME": str(tmp_path)}

    backend = find_backend(environment, DataFolder(tmp_path / "data"), "uid")

    variables = {"PULUMI_CONFIG_PASSPHRASE_FILE": str(tmp_path / "data" / "passphrase")}
    assert Backend(CLOUD, variables, None) == backend


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("{", id="broken"),
        pytest.param("[]", id="a-list"),
        pytest.param("{}", id="logged-out"),
        pytest.param('{"current": ""}', id="no-login"),
        pytest.param('{"current": null, "accessTokens": null}', id="nulls"),
    ],
)
def test_no_login(tmp_path: Path, text: str) -> None:
    """A login that names no backend, or can't be read, is none."""
    (tmp_path / ".pulumi").mkdir()
    (tmp_path / ".pulumi" / "credentials.json").write_text(text)

    backend = find_backend({"HOME": str(tmp_path)}, DataFolder(tmp_path / "data"), "uid")

    assert tmp_path / "data" / "state" / "uid" == backend.folder
