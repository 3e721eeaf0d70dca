"""Where exceptions become exit statuses: every command's body runs inside :func:`funnel`.

What the user can mend ends with its message and status; anything else is our mistake and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from composeplat.cli.console import show_error
from composeplat.diagnostics import ComposeplatError, Exit


@contextmanager
def funnel(*, as_json: bool = False) -> Iterator[None]:
    try:
        yield
    except ComposeplatError as error:
        show_error(error, as_json=as_json)
        raise typer.Exit(int(error.exit_code)) from None
    except KeyboardInterrupt:
        raise typer.Exit(int(Exit.INTERRUPTED)) from None
