"""Programs of tests for plain Pulumi: with the language host of tests, and a state and plugins of their own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from composeplat.engine.backend import DataFolder
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import KUBERNETES_PROVIDER
from tests.conftest import ROOT


def pulumi_variables(variables: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment of Pulumi's command line, with all that it keeps below a folder."""
    host = folder / "bin" / "pulumi-language-python"
    host.parent.mkdir()
    host.write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT}/tests/plain/language_host.py "$@"\n')
    host.chmod(0o755)
    home = DataFolder(Path(variables["COMPOSEPLAT_DATA"]))
    home.prepare()
    provider = Toolchain(variables).need(KUBERNETES_PROVIDER).path
    home.place_plugin("kubernetes", KUBERNETES_PROVIDER.version, provider)
    return {
        **variables,
        "PATH": f"{host.parent}:{variables['PATH']}",
        "PULUMI_HOME": str(home.pulumi),
        "PULUMI_BACKEND_URL": f"file://{folder}",
        "PULUMI_CONFIG_PASSPHRASE": "x",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
