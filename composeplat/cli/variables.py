"""``platform variables``: variables kept in a namespace, for everyone who deploys there."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Self

import typer

from composeplat import progress
from composeplat.cli import options as opt
from composeplat.cli.arguments import App
from composeplat.cli.console import table, write_json, write_message, write_output
from composeplat.cli.errors import logged
from composeplat.cli.help_text import Guide, Guided
from composeplat.cli.questions import end_of_input_refuses
from composeplat.diagnostics import ComposeplatError, Exit, printable

if TYPE_CHECKING:
    from composeplat.cluster.variables import StoredVariables

app = App(
    "variables",
    guide=Guide({"What is kept in a namespace": "platform variables list --namespace team-a"}, "variables.md"),
    cls=Guided,
    no_args_is_help=True,
    help="Store variables in a namespace, for everyone who deploys there.",
)

_MASKED = "********"


@app.command(
    "set",
    guide=Guide(
        {
            "A value that may be seen": "platform variables set LOG_LEVEL=debug",
            "A secret, from a file": "platform variables set API_TOKEN --secret < token.txt",
        },
        "variables.md",
    ),
)
def set_command(
    variable: Annotated[
        str, typer.Argument(metavar="NAME[=VALUE]", help="The variable; its value is read from standard input.")
    ],
    secret: Annotated[bool, typer.Option("--secret", help="Never show the value; it can't be given as VALUE.")] = False,
    namespace: opt.Namespace = "",
    kubeconfig: opt.Kubeconfig = "",
    context: opt.Context = "",
    local: opt.Local = False,
) -> None:
    """Set a variable. The value comes from standard input, or, where it is no secret, as NAME=VALUE."""
    from composeplat.cluster.variables import set_variable
    from composeplat.compose.variables import looks_secret

    with _logged("set"):
        name, given, text = variable.partition("=")
        _check_name(name)
        confidential = secret or looks_secret(name)
        if given and confidential:
            why = "--secret" if secret else "its name"
            raise _UsageError(
                f"the value of {name} is a secret by {why}, and a command line can be seen by others",
                f"give it on standard input: platform variables set {name} --secret < FILE",
            )
        with _Place(namespace, kubeconfig, context, local=local) as place:
            value = text if given else _read_value(name, hidden=confidential)
            _check_value(name, value)
            set_variable(place.api, place.namespace, name, value, confidential=confidential)
        write_message(f"set {name} in namespace {place.namespace}; the next deploy uses it\n")


@app.command(
    "unset",
    guide=Guide({"Two at once": "platform variables unset LOG_LEVEL API_TOKEN --namespace team-a"}, "variables.md"),
)
def unset(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The variables.")],
    namespace: opt.Namespace = "",
    kubeconfig: opt.Kubeconfig = "",
    context: opt.Context = "",
    local: opt.Local = False,
) -> None:
    """Remove variables. One that is not there is an error, and then none is removed."""
    from composeplat.cluster.variables import (
        list_variables,
        unset_variables,
    )

    with _logged("unset"), _Place(namespace, kubeconfig, context, local=local) as place:
        known = list_variables(place.api, place.namespace).names
        missing = [name for name in names if name not in known]
        if missing:
            raise ComposeplatError(
                f"there is no variable '{printable(missing[0])}' in namespace '{place.namespace}'",
                f"variables are: {', '.join(known) or '(none)'}",
            )
        unset_variables(place.api, place.namespace, names)
        write_message(f"removed {', '.join(names)} from namespace {place.namespace}\n")


@app.command(
    "list",
    guide=Guide(
        {"Those of the namespace that a deploy from here would use": "platform variables list"}, "variables.md"
    ),
)
def list_all(
    namespace: opt.Namespace = "",
    kubeconfig: opt.Kubeconfig = "",
    context: opt.Context = "",
    local: opt.Local = False,
    as_json: opt.Json = False,
) -> None:
    """Print the variables of a namespace; the values of secret ones are hidden."""
    from composeplat.cluster.variables import SECRET_NAME, list_variables

    with _logged("list", is_kept=False), _Place(namespace, kubeconfig, context, local=local) as place:
        stored = list_variables(place.api, place.namespace)
        rows = _rows(stored)
        if as_json:
            data = {
                "schema": "platform/variables/1",
                "namespace": place.namespace,
                "object": f"Secret/{SECRET_NAME}",
                "variables": rows,
            }
            write_json(data)
        elif rows:
            write_output(table([("NAME", "VALUE"), *((str(row["name"]), str(row["value"])) for row in rows)]))
        else:
            write_message(f"namespace {place.namespace} has no variables\n")
        for name in sorted(stored.not_text):
            fix = f"to remove it: platform variables unset {name}"
            write_message(f"{printable(name)} is not UTF-8 text, so nothing uses it; {fix}\n")


def _rows(stored: StoredVariables) -> list[dict[str, object]]:
    return [
        {
            "name": name,
            "value": stored.values[name] if name in stored.shown else _MASKED,
            "secret": name not in stored.shown,
        }
        for name in stored.names
    ]


def _logged(command: str, *, is_kept: bool = True) -> AbstractContextManager[object]:
    """Run a command with a log, which has no values: neither are they arguments in it, nor are bodies of requests."""
    return logged(f"variables {command}", {}, as_json=False, debug=False, is_kept=is_kept)


class _UsageError(ComposeplatError):
    exit_code = Exit.USAGE


class _Place:
    """The namespace of the options, and a connection to its cluster."""

    def __init__(self, namespace: str, kubeconfig: str, context: str, *, local: bool) -> None:
        from composeplat.cluster.api import Api
        from composeplat.compose.load.variables import namespace_of
        from composeplat.compose.options import SETTINGS
        from composeplat.engine.target import find_target
        from composeplat.names import is_dns_label

        local = opt.is_local(local=local, kubeconfig=kubeconfig, context=context)
        progress.hide(())
        request = opt.make_request(None, None, kubeconfig=kubeconfig, context=context)
        self._target = target = find_target(os.environ, kubeconfig=kubeconfig, context=context, local=local)
        request = replace(
            request,
            namespace=namespace,
            context_namespace=target.namespace or ("" if local else request.context_namespace),
        )
        self.namespace = namespace_of(request)
        if not is_dns_label(self.namespace):
            raise _UsageError(f"--namespace (or PLATFORM_NAMESPACE) must be {SETTINGS['namespace'].requirement}")
        self.api = Api(target.access)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        from composeplat.cluster.api import ApiError

        self.api.close()
        if isinstance(error, ApiError) and not error.status:
            from composeplat.cli.operations import with_hint

            raise with_hint(error, self._target) from error


def _check_name(name: str) -> None:
    from composeplat.compose.variables import NOT_STORED, is_variable_name

    if not is_variable_name(name):
        raise _UsageError(
            f"'{printable(name)}' can't be a variable's name", "letters, digits and '_', no digit in front"
        )
    if NOT_STORED.match(name):
        reason = (
            "it is always the environment's name"
            if name == "PLATFORM_NAME"
            else "it selects the namespace or the files"
        )
        raise _UsageError(f"{name} can't be stored in a namespace: {reason}")


def _check_value(name: str, value: str) -> None:
    if "\0" in value:
        raise ComposeplatError(f"the value of {name} has a NUL in it, which no variable can hold")
    try:
        value.encode()
    except UnicodeEncodeError:
        # An argument with other bytes. Not chained: the cause holds the value.
        raise ComposeplatError(f"the value of {name} is not UTF-8 text") from None


def _read_value(name: str, *, hidden: bool) -> str:
    """Read the value from standard input, without the last newline; a terminal does not show a typed secret."""
    stream = sys.stdin
    if stream is None:
        raise ComposeplatError(f"the value of {name} is read from standard input, which is closed")
    if stream.isatty():
        with end_of_input_refuses(f"no value was given: {name} was not changed", hidden=hidden):
            return str(typer.prompt(f"Value of {name}", hide_input=hidden, default="", show_default=False, err=True))
    try:
        text = stream.buffer.read().decode("utf-8")
    except UnicodeDecodeError:
        # Not chained: the cause holds the value, which may be a secret.
        raise ComposeplatError(f"the value of {name} is not UTF-8 text") from None
    return text.removesuffix("\n").removesuffix("\r")
