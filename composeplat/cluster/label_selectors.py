"""Label selectors, as in NetworkPolicies: whether one selects an object, by its labels.

Must not know what is selected, or why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Check labels against a label selector; an empty one selects everything."""
    wanted = selector or {}
    if any(labels.get(key) != value for key, value in (wanted.get("matchLabels") or {}).items()):
        return False
    return all(_meets(expression, labels) for expression in wanted.get("matchExpressions") or ())


def _meets(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or []
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels
