"""The SDKs for TypeScript and Go, made of the provider's schema: ``make sdk`` writes them to ``build/sdk``.

The generators are those of Pulumi's releases, as packages of Go; nothing is in the repository, as the schema is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import PULUMI, Tool
from tests.conftest import ROOT

LANGUAGES = ("nodejs", "go")
_SCHEMA = ROOT / "composeplat" / "components" / "schema.json"
#: Of the version of the engine.
_GENERATOR = Tool(
    name="generate-sdk",
    version=PULUMI.version,
    module=ROOT / "tests" / "languages" / "generator",
    package=".",
    build_minutes=2,
)


def write_sdk(language: str, folder: Path) -> None:
    program = Toolchain(os.environ).need(_GENERATOR).path
    subprocess.run([program, language, _SCHEMA, folder], check=True)


def main() -> None:
    folder = Path(sys.argv[1])
    for language in LANGUAGES:
        shutil.rmtree(folder / language, ignore_errors=True)
        write_sdk(language, folder / language)
        print(f"sdk: {folder / language} written")


if __name__ == "__main__":
    main()
