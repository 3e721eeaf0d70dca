"""The late value of a secret that was in a state.

Owns that it is not part of any text: a manifest with it is registered again, and shown to no one.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from composeplat.system.records import record


@record
class Revealed:
    value: Any = field(repr=False)
