"""Loading images: the name in the nodes, which nodes have one, and the messages if the program of a cluster fails."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import pytest

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.archive_loading import ArchiveLoader, have_image, need_load_program
from composeplat.cluster.other_clusters import PRODUCTS, OtherCluster, Product
from composeplat.components.image_loading import loaded_name
from composeplat.diagnostics import ComposeplatError, MissingPiece
from tests.cluster.objects import Answer, Server, refusal
from tests.conftest import VARIABLES

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("env-web", "docker.io/library/env-web:0123456789abcdef0123"),
        ("team/web:1.2", "docker.io/team/web:0123456789abcdef0123"),
        ("registry.example.com:5000/a/web:1", "registry.example.com:5000/a/web:0123456789abcdef0123"),
    ],
)
def test_loaded_name(reference: str, expected: str) -> None:
    """The name of the build, with the digest as its tag, so each content has its own name."""
    assert loaded_name(reference, DIGEST) == expected


def loader_for(code: str, *, program: str = sys.executable) -> ArchiveLoader:
    product = Product(title="kind", prefix="kind-", load=(program, "-c", code, "{archive}", "{name}"))
    return ArchiveLoader(
        cluster=OtherCluster(product, "dev"), access=Access(host="127.0.0.1", port=1), environment=VARIABLES
    )


def failure(loader: ArchiveLoader) -> ComposeplatError:
    with pytest.raises(ComposeplatError) as raised:
        loader.load("the image of service 'web'", Path("/image.tar"))
    return raised.value


def test_the_program_fails() -> None:
    """The message has its last lines, without control characters, and the hint the command."""
    error = failure(loader_for("import sys; print('1\\n2'); print('\\x1b[31mno nodes', file=sys.stderr); sys.exit(1)"))

    shown = str(error)
    assert shown.startswith("the image of service 'web' can't be loaded into kind cluster 'dev': ")
    assert "no nodes" in shown
    assert "\x1b" not in shown
    assert error.hint.startswith("try: ")


def test_the_program_is_missing(tmp_path: Path) -> None:
    """Without the program, the hint names a registry."""
    missing = str(tmp_path / "kind")
    error = failure(loader_for("", program=missing))

    assert str(error) == (
        f"the image of service 'web' can't be loaded into kind cluster 'dev': '{missing}' can't be started:"
        " no such file or directory"
    )
    assert error.hint == "push to a registry instead: --registry"


def test_the_check_for_the_program(tmp_path: Path) -> None:
    """Before a build, one of the cluster's programs must be on PATH; without it the fix names a registry."""
    (rancher,) = (product for product in PRODUCTS if product.title == "Rancher Desktop")
    cluster = OtherCluster(rancher, "rancher-desktop")
    with pytest.raises(MissingPiece) as raised:
        need_load_program(cluster, str(tmp_path))
    assert str(raised.value) == "the images of Rancher Desktop are loaded with 'docker', which is not on PATH"
    assert raised.value.hint == "install docker, or push to a registry: --registry"

    (tmp_path / "nerdctl").write_text("")
    with pytest.raises(MissingPiece):
        need_load_program(cluster, str(tmp_path))
    (tmp_path / "nerdctl").chmod(0o755)
    need_load_program(cluster, str(tmp_path))


NAME = "docker.io/library/platform-agent:0123-amd64"


def node(*images: object) -> dict[str, object]:
    return {"metadata": {"name": "n"}, "status": {"images": list(images)}}


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([node({"names": ["a@sha256:1", NAME]})], True, id="containerd"),
        pytest.param([node({"names": ["platform-agent:0123-amd64"]})], True, id="docker"),
        pytest.param([node({"names": [NAME]}), node({"names": ["other"]})], False, id="one-node-without"),
        pytest.param([node({"names": None}), {"metadata": {"name": "n"}, "status": {}}], False, id="no-names"),
        pytest.param([], False, id="no-nodes"),
    ],
)
def test_an_image_that_the_nodes_have(*, nodes: list[object], expected: bool) -> None:
    """It is known by its whole name, on each node."""
    with Server(otherwise=Answer(json.dumps({"items": nodes}).encode())) as server, Api(server.access) as api:
        assert have_image(api, NAME) is expected


def test_nodes_that_may_not_be_read() -> None:
    """Without the permission to list nodes an image is loaded again; another error is one."""
    with Server(otherwise=refusal(403, "forbidden")) as server, Api(server.access) as api:
        assert not have_image(api, NAME)
        server.otherwise = refusal(400, "what?")
        with pytest.raises(ApiError):
            have_image(api, NAME)


def test_an_interrupt_ends_the_program() -> None:
    """A program that hangs ends with the interrupt."""
    loader = loader_for("import time; time.sleep(60)")
    threading.Timer(0.3, loader.cancelled.set).start()
    started = time.monotonic()

    assert str(failure(loader)).endswith("can't be loaded into kind cluster 'dev': interrupted")
    assert time.monotonic() - started < 10
