"""Loading images: the name in the nodes, and the message if the program of a cluster fails."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

from composeplat.cluster.access import Access
from composeplat.cluster.other_clusters import OtherCluster, Product
from composeplat.components.image_loading import ImageLoader, loaded_name
from composeplat.diagnostics import ComposeplatError
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


def loader_for(code: str, *, program: str = sys.executable) -> ImageLoader:
    product = Product(title="kind", prefix="kind-", load=(program, "-c", code, "{archive}", "{name}"))
    return ImageLoader(
        cluster=OtherCluster(product, "dev"), access=Access(host="127.0.0.1", port=1), environment=VARIABLES
    )


def failure(loader: ImageLoader) -> ComposeplatError:
    with pytest.raises(ComposeplatError) as raised:
        loader.load_archive("web", Path("/image.tar"))
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


def test_an_interrupt_ends_the_program() -> None:
    """A program that hangs ends with the interrupt."""
    loader = loader_for("import time; time.sleep(60)")
    threading.Timer(0.3, loader.cancelled.set).start()
    started = time.monotonic()

    assert str(failure(loader)).endswith("can't be loaded into kind cluster 'dev': interrupted")
    assert time.monotonic() - started < 10
