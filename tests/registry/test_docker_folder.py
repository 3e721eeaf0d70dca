"""Where Docker's configuration is looked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from composeplat.registry.docker_folder import docker_folder


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        pytest.param({"HOME": "/h"}, "/h/.docker", id="home"),
        pytest.param({"HOME": "/h", "DOCKER_CONFIG": "/d"}, "/d", id="named"),
        pytest.param({"HOME": "/h", "DOCKER_CONFIG": ""}, "/h/.docker", id="empty"),
        pytest.param({}, "/account/.docker", id="account"),
        pytest.param({"HOME": ""}, "/account/.docker", id="empty-home"),
    ],
)
def test_the_folder_of_docker(environment: Mapping[str, str], folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Docker's configuration is where Docker looks for it, also without ``HOME``."""
    monkeypatch.setenv("HOME", "/account")

    assert docker_folder(environment) == Path(folder)
