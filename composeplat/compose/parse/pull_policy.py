"""Parse ``pull_policy`` and ``pull_refresh_after``, which have an effect in full mode alone."""

from __future__ import annotations

from composeplat.compose.nodes import Scalar
from composeplat.compose.parse.fields import Section
from composeplat.compose.values import BadValue, parse_duration

_POLICIES = {"always": "always", "never": "never", "missing": "missing", "if_not_present": "missing", "build": "build"}
_DURATIONS = {"daily": "24h", "weekly": "168h"}
_SECOND = 10**9
_REFRESHED = ("daily", "weekly", "refresh")


def parse_pull_policy(service: Section) -> str:
    """Return when nodes pull the image. A refreshed image counts as always: a node asks whenever a pod starts."""
    policy = service.value("pull_policy", _parse_policy, "")
    found, after = service.get("pull_policy"), service.get("pull_refresh_after")
    period = after.value(parse_duration) if after else None
    is_refreshed = found is not None and found.text() == "refresh"
    if after and not is_refreshed:
        after.report("no-effect", "has no effect without pull_policy: refresh")
    if found and is_refreshed and after is None:
        found.report("missing-key", "needs 'pull_refresh_after'", "say after how long, as in pull_refresh_after: 24h")
    if found and policy == "build" and service.get("build") is None:
        found.report("invalid-value", "is 'build', and the service has no 'build'", "give it a build section")
    if found and policy == "never" and service.get("build") is not None:
        found.report("no-effect", "has no effect on an image that is built: a node must pull it from the registry")
        return ""
    return "always" if period is not None and is_refreshed else "" if policy == "build" else policy


def parse_pull_period(service: Section) -> int | None:
    """Return the seconds between two pulls; None for a policy without a time, and for one that can't be read."""
    found, after = service.get("pull_policy"), service.get("pull_refresh_after")
    text = found.node.text if found and isinstance(found.node, Scalar) else ""
    written = after.node.text if after and isinstance(after.node, Scalar) and text == "refresh" else ""
    try:
        period = parse_duration(written or _DURATIONS.get(text, "") or text.removeprefix("every_"))
    except BadValue:
        return None
    return period // _SECOND if written or text in _DURATIONS or text.startswith("every_") else None


def _parse_policy(text: str) -> str:
    if text in _REFRESHED or not text:
        return "always" if text else ""
    if text.startswith("every_") and text[-1:].isalpha():
        parse_duration(text.removeprefix("every_"))
        return "always"
    if text not in _POLICIES:
        expected = "must be always, never, missing, if_not_present, build, refresh, daily, weekly or every_12h"
        raise BadValue(expected, (*_POLICIES, *_REFRESHED))
    return _POLICIES[text]
