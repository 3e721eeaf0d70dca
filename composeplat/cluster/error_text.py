"""The text of an error that the cluster reports: the part that is shown to people.

Owns how much is shown, and which part of a chain of errors is the reason. Must not know the subject of the error.
"""

from __future__ import annotations

import re

from composeplat.diagnostics import printable, truncate

#: The fix for a full disk of a node.
FREE_DISK = "free space there; of the local cluster: platform cluster prune --all"
#: The errors of Go's network, at the end of a chain of errors.
_NETWORK_ERROR = re.compile(
    r"lookup \S+(?: on \S+)?: no such host|connection refused|connection reset by peer|network is unreachable"
    r"|no route to host|i/o timeout|TLS handshake timeout|x509: [^\"\n]+"
)

_MAX_BODY_BYTES = 16 * 1024
_MARKUP = re.compile(r"<(style|script)\b.*?</\1>|<[^>]*>", re.IGNORECASE | re.DOTALL)


def network_error(text: str) -> str:
    """Return the reason why a connection failed, to follow a message; empty if it is not a known one."""
    found = _NETWORK_ERROR.findall(text)
    return f": {shorten(found[-1], 150)}" if found else ""


def shorten(text: str, limit: int = 300) -> str:
    """Put a text on one line, cut to a length that fits a message."""
    return truncate(" ".join(text.split()), limit)


def body_text(body: bytes) -> str:
    """Return the text of a response that is not an API server's, such as a page of a proxy in front of it."""
    text = body[:_MAX_BODY_BYTES].decode("utf-8", "replace")
    return printable(shorten(_MARKUP.sub(" ", text) if "<html" in text.lower() else text))
