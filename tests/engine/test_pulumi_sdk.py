"""The names of Pulumi's SDK that it does not promise: the pinned version has them, and another one is refused."""

from __future__ import annotations

import contextlib
import importlib
import re
from importlib.metadata import version
from pathlib import Path

import pytest

from composeplat.diagnostics import MissingPiece
from composeplat.engine.inline_program import serve
from composeplat.engine.pulumi_sdk import SDK_NAMES, TESTED_VERSION, SdkName

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", SDK_NAMES, ids=lambda name: name.name)
def test_the_pinned_version_has_it(name: SdkName) -> None:
    """Each name is there in the version that is pinned."""
    assert name.find() is not None


def test_the_version_is_pinned() -> None:
    """The version that the hint names is the one that is pinned, and that these tests run with."""
    pinned = re.search(r"^pulumi==(\S+)", (ROOT / "requirements" / "runtime.txt").read_text(), re.MULTILINE)

    assert pinned is not None
    assert TESTED_VERSION == pinned[1] == version("pulumi")


@pytest.mark.parametrize("name", SDK_NAMES, ids=lambda name: name.name)
def test_an_sdk_without_it(name: SdkName, monkeypatch: pytest.MonkeyPatch) -> None:
    """An SDK without a name is refused with the name, its version and the version to install."""
    monkeypatch.delattr(importlib.import_module(name.module), name.name)

    with pytest.raises(MissingPiece) as caught:
        name.find()

    assert str(caught.value) == (
        f"the installed Pulumi SDK, {TESTED_VERSION}, has no '{name.module}.{name.name}', which a deploy uses"
    )
    assert (
        caught.value.hint == f"install the version that platform is tested with: pip install pulumi=={TESTED_VERSION}"
    )
    assert isinstance(caught.value.__cause__, AttributeError)


def test_an_sdk_without_a_module() -> None:
    """A module that is gone is refused in the same words."""
    with pytest.raises(MissingPiece, match=r"has no 'pulumi.runtime.gone.SETTINGS'"):
        SdkName("pulumi.runtime.gone", "SETTINGS").find()


def test_serving_leaves_the_sdk_as_it_was() -> None:
    """What is replaced while a program is served is put back, also where the block fails."""
    before = [name.find() for name in SDK_NAMES]

    with contextlib.suppress(InterruptedError), serve(lambda: None) as address:
        assert address.startswith("127.0.0.1:")
        raise InterruptedError

    assert before == [name.find() for name in SDK_NAMES]
