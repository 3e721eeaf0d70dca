"""The message for a service that can't be selected, as a command names it."""

from __future__ import annotations

from collections.abc import Collection

from composeplat.compose.options import hint_of_file
from composeplat.diagnostics import ComposeplatError, near


def no_such_service(name: str, known: Collection[str], providers: Collection[str]) -> ComposeplatError:
    """Make the error for a name that is not that of a service with pods."""
    listed = f"services are: {', '.join(sorted(known))}"
    if name in providers:
        return ComposeplatError(f"service '{name}' has no pods: its provider gives it, outside of the cluster", listed)
    file = hint_of_file(name)
    found = f"{file};" if file else near(name, known)
    return ComposeplatError(f"there is no service '{name}'", " ".join(filter(None, [found, listed])))
