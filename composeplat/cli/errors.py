"""Where exceptions become exit statuses: every command's body runs inside :func:`funnel`.

What the user can fix ends with its message and status; anything else is a bug of this project and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from composeplat import progress
from composeplat.cli.console import show_error
from composeplat.diagnostics import ComposeplatError, Exit


@contextmanager
def funnel(*, as_json: bool = False) -> Iterator[None]:
    with progress.forget_values(), _exit_statuses(as_json=as_json):
        yield


@contextmanager
def _exit_statuses(*, as_json: bool) -> Iterator[None]:
    try:
        yield
    except ComposeplatError as error:
        show_error(error, as_json=as_json)
        raise typer.Exit(int(error.exit_code)) from error
    except KeyboardInterrupt as error:
        raise typer.Exit(int(Exit.INTERRUPTED)) from error
