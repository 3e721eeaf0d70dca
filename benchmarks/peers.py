"""The program that `platform render` is compared with: kompose.

Owns its version, and builds it from its module into the user's cache. It is a program of its own, which prints the
path: a benchmark that measures memory must not grow by the imports of building.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from composeplat.diagnostics import MissingPiece
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import Tool

KOMPOSE = Tool(
    name="kompose",
    version="1.38.0",
    module=Path(__file__).parent / "kompose",
    package="github.com/kubernetes/kompose",
    build_minutes=0.5,
)


def main() -> int:
    try:
        print(Toolchain(os.environ).need(KOMPOSE).path)
    except MissingPiece as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
