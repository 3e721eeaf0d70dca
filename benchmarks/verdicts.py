"""The end of a benchmark: which limits are met, the figures as JSON, and the exit status.

Owns how these are written. Must import nothing large: the benchmark that measures memory uses it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def conclude(verdicts: Mapping[str, bool | None], path: str | None, content: Mapping[str, Any]) -> int:
    """Print the limits, write the figures to a file if there is one, and return 0 if every judged limit is met."""
    for limit, verdict in verdicts.items():
        print(f"{limit}: {'not judged' if verdict is None else 'yes' if verdict else 'NO'}")
    if path:
        Path(path).write_text(json.dumps({**content, "limits": verdicts}, indent=2) + "\n")
    return int(False in verdicts.values())
