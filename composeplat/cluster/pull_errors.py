"""The errors of the kubelet while it pulls an image: what they mean, and the fix.

Owns how the texts of container runtimes and registries are told apart. Must not know pods: it gets texts only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from composeplat.cluster.error_text import FREE_DISK, network_error, shorten

_MISSING = re.compile(
    r"not found|manifest unknown|does not exist(?!.*no basic auth)|name unknown|name_unknown", re.IGNORECASE
)
#: Names of images and addresses, which can have any of the words.
_QUOTED = re.compile(r'"[^"\s]*"')
#: The kubelet starts so many pulls a second (five, in bursts of ten), and tries again later by itself.
_THROTTLED = "pull QPS exceeded"


def is_throttled(text: str) -> bool:
    """Whether the kubelet has not asked the registry yet, as it pulls many other images."""
    return _THROTTLED in text


def is_missing(text: str) -> bool:
    """Whether the registry has answered that it has no such image: another try gives the same answer."""
    return bool(_MISSING.search(text))


def telling_error(texts: Iterable[str]) -> str:
    """Return the error that says most; empty without one. A pull that was not tried says least."""
    return max(texts, key=lambda text: (not is_throttled(text), len(text)), default="")


def explain_pull_error(text: str, reason: str) -> tuple[str, str]:
    """Return why an image can't be pulled, and the fix; the fix is empty where it is not known."""
    low = _QUOTED.sub("", text).lower()
    if reason == "InvalidImageName":
        return "the name is invalid", "correct the name"
    if reason == "ErrImageNeverPull":
        return shorten(text), "load it into the nodes; an image of a build: platform deploy --build"
    if re.search(r"rate limit|toomanyrequests|429 too many", low):
        return "the rate limit of its registry is reached", "log in to the registry, which raises it, or wait"
    if is_missing(text):
        return "there is no such image in its registry", "correct the name or the tag, or push the image"
    if re.search(r"no space left on device|disk quota exceeded", low):
        return "the disk of the node is full", FREE_DISK
    if re.search(r"unauthorized|denied|authentication|\b40[13]\b|no basic auth", low):
        return "the registry denied access", "give the cluster the registry's credentials"
    if re.search(r"dial tcp|no such host|connection refused|timeout|unreachable|eof|tls|lookup", low):
        unreachable = f"its registry can't be reached from the cluster{network_error(text)}"
        return unreachable, "check that the registry runs, and its name"
    return shorten(text), ""
