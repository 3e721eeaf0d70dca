"""Where things are kept: as the environment says, else where the system keeps a user's things."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from composeplat.local.layout import make_layout
from composeplat.system.folders import cache_folder, data_folder, home_folder, user_data_folder


@pytest.fixture(autouse=True, params=[None, "/process/xdg", str(Path.home() / "xdg")])
def _of_the_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables of this process are not those of the environment."""
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        if request.param:
            monkeypatch.setenv(name, request.param)
        else:
            monkeypatch.delenv(name, raising=False)


@pytest.mark.skipif(sys.platform != "linux", reason="the folders are those of Linux")
@pytest.mark.parametrize(
    ("environment", "data", "cache"),
    [
        pytest.param({"HOME": "/h"}, "/h/.local/share/composeplat", "/h/.cache/composeplat", id="home"),
        pytest.param(
            {"HOME": "/h", "XDG_DATA_HOME": "/d", "XDG_CACHE_HOME": "/c"}, "/d/composeplat", "/c/composeplat", id="xdg"
        ),
        pytest.param(
            {"HOME": "/h", "XDG_DATA_HOME": "/d", "COMPOSEPLAT_DATA": "/x", "COMPOSEPLAT_CACHE": "/y"}, "/x", "/y",
            id="named",
        ),
    ],
)  # fmt: skip
def test_folders(environment: Mapping[str, str], data: str, cache: str) -> None:
    """The variables of the environment decide, the most specific first."""
    assert (data_folder(environment), cache_folder(environment)) == (Path(data), Path(cache))


@pytest.mark.parametrize("name", ["COMPOSEPLAT_%s", "XDG_%s_HOME"])
def test_a_relative_path(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is below the current folder, also for programs that run in another one."""
    monkeypatch.chdir(tmp_path)
    environment = {name % "DATA": ".data", name % "CACHE": ".cache"}

    found = [data_folder(environment), cache_folder(environment)]
    own = "composeplat" if name.startswith("XDG") else ""
    assert found == [tmp_path / ".data" / own, tmp_path / ".cache" / own]
    assert make_layout({"COMPOSEPLAT_CLUSTER": "own"}).folder == tmp_path / "own" / "cluster"


def test_the_users_data_folder_differs_from_the_named_folder() -> None:
    """The local cluster has a variable of its own: one that names the data of deploys does not move it."""
    assert user_data_folder({"XDG_DATA_HOME": "/d", "COMPOSEPLAT_DATA": "/x"}) == Path("/d/composeplat")


def test_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no variable says so, the account has a home."""
    monkeypatch.setenv("HOME", "/account")

    assert home_folder({}) == Path("/account")
    assert cache_folder({}).is_relative_to("/account")


def test_nothing_is_loaded_where_variables_set_it() -> None:
    """Where variables say it all, the library is not loaded: it takes longer than the rest."""
    script = (
        "import sys\nfrom composeplat.system.folders import cache_folder, data_folder\n"
        "data_folder({'COMPOSEPLAT_DATA': '/x'}), cache_folder({'XDG_CACHE_HOME': '/c'})\n"
        "sys.exit('platformdirs' in sys.modules)"
    )

    subprocess.run([sys.executable, "-c", script], check=True)
