"""The cause of a failed build: from the texts of Pulumi's provider and BuildKit to a message, log lines and a fix.

Owns the patterns of BuildKit's and registries' errors. Pure, so that it is tested with recorded texts.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from composeplat.cluster.error_text import shorten
from composeplat.compose.model import Build
from composeplat.registry.image_reference import ImageReference
from composeplat.system.records import record

#: So many of a step's last lines are kept.
_MAX_LINES = 20
_NOT_FOUND = 127
_KILLED = 137
_MIN_HIDDEN_LENGTH = 4
_REFUSED = re.compile(
    r"\b401\b|\b403\b|unauthorized|denied|forbidden|no basic auth|insufficient_scope|authorization failed",
    re.IGNORECASE,
)
#: As the registry says it, and as the local cluster's mirror does.
_RATE_LIMIT = re.compile(r"\b(?:429 Too Many Requests|503 the rate limit of \S+ is reached)\W*(?P<message>.*)")
_EMPTY_PREFIXES = re.compile(
    r"^(?:rpc error: code = \w+ desc = |failed to solve: |error: |ERROR: |failed to stat policy file \S+: )+"
)
_CONFIDENTIAL = re.compile(r"token|secret|passw|pwd|key|cred|auth", re.IGNORECASE)


@record(kw_only=True)
class BuildFailure:
    """Why a build failed, and what shows it."""

    message: str
    """Continues a sentence that names the service."""
    origin: tuple[str, ...] = ("build",)
    """The part of the service to look at."""
    hint: str = ""
    step: str = ""
    """The step as the Dockerfile has it: ``RUN make``."""
    lines: tuple[str, ...] = ()
    """The last lines of the step."""
    has_subject: bool = False
    """The message is a sentence of its own."""


_FOREIGN_PROCESSOR = (
    "the builder can't run programs of another processor: install an emulator for it on the builder's machine"
    " (qemu-user, binfmt_misc), name a builder with that processor (--builder), or write another platform into the file"
)


def read_failure(
    text: str, record: Mapping[str, Any] | None = None, *, hidden: Iterable[str] = (), builder: str = ""
) -> BuildFailure:
    """Read the provider's text; ``record`` is what BuildKit's history says of the build, with the step's last lines.

    ``hidden`` are values that are not to be shown.
    """
    error = (record or {}).get("Error") or {}
    plain = _plain(text)
    for pattern, make in _READERS:
        found = pattern.search(plain)
        if found:
            failure = make(found)
            break
    else:
        failure = BuildFailure(message=f"can't be built: {shorten(plain)}")
    if builder and failure.message.startswith(_BUILDER):
        failure = replace(failure, message=failure.message.replace(_BUILDER, f"{_BUILDER} '{builder}'", 1))
    step = _step(error) or failure.step
    lines = tuple(str(line).rstrip() for line in error.get("Logs") or ())[-_MAX_LINES:] or _source(error)
    if step and failure.step:
        failure = replace(failure, message=failure.message.replace(failure.step, shorten(step), 1))
    if any("exec format error" in line for line in (plain, *lines)):
        failure = replace(failure, hint=_FOREIGN_PROCESSOR)
    if any("exec: " in line and "no such file or directory" in line for line in lines[-1:]):
        failure = replace(failure, hint="the image has no such program; one made FROM scratch has not even a shell")
    return _mask(replace(failure, step=step, lines=lines), hidden)


def confidential(build: Build, secrets: Iterable[str] = ()) -> tuple[str, ...]:
    """List the confidential inputs of a build: arguments with a confidential name, and secrets."""
    values = [value for name, value in build.args.items() if _CONFIDENTIAL.search(name)]
    whole = [*(secret.value for secret in build.secrets if secret.value is not None), *secrets]
    # A step prints each line of a secret on its own line; and of a line with a name in front (TOKEN=…) it may print
    # only the value.
    parts = {part.strip() for text in whole for line in text.splitlines() for part in (line, line.partition("=")[2])}
    return tuple(value for value in sorted({*values, *whole, *parts}) if len(value) >= _MIN_HIDDEN_LENGTH)


def matches(record: Mapping[str, Any], text: str, context: str) -> bool:
    """Return whether a build in BuildKit's history, as seen from the root folder, is the build of a text."""
    message = str((record.get("Error") or {}).get("Message") or "")
    place = str(record.get("Context") or "")
    return bool(message) and message in text and (not place or context in (place, f"/{place}"))


# what BuildKit writes -------------------------------------------------------------------------------------------------

_BUILDER = "can't be built: the builder"


def _plain(text: str) -> str:
    """One line, without what only says that something failed."""
    return _EMPTY_PREFIXES.sub("", " ".join(text.split()))


def _step(error: Mapping[str, Any]) -> str:
    """``[builder 2/3] RUN make`` is known to its author as ``RUN make``."""
    return re.sub(r"^\[[^\]]*\] ", "", str(error.get("Name") or ""))


def _source(error: Mapping[str, Any]) -> tuple[str, ...]:
    """The lines of the Dockerfile that BuildKit points at."""
    try:
        text = base64.b64decode(str(error.get("Sources") or ""), validate=True).decode(errors="replace")
    except ValueError:
        return ()
    return tuple(line.rstrip() for line in text.splitlines() if line.strip() and not set(line.strip()) <= {"-"})


def _of_process(found: re.Match[str]) -> BuildFailure:
    command = found["command"].replace('\\"', '"').replace("\\\\", "\\")
    step = f"RUN {re.sub(r'^/bin/sh -c ', '', command)}"
    status = int(found["status"])
    hints = {_NOT_FOUND: "the image has no such program", _KILLED: "killed, probably out of memory"}
    message = f"can't be built: a step ended with exit status {status}: {shorten(step)}"
    return BuildFailure(message=message, step=shorten(step), hint=hints.get(status, ""))


def _of_copy(found: re.Match[str]) -> BuildFailure:
    path = found["path"].lstrip("/")
    return BuildFailure(
        message=f"can't be built: its context has no '{path}'",
        origin=("build", "context"),
        hint="paths in a Dockerfile are relative to the context, and what .dockerignore names is not there",
    )


def _of_file(found: re.Match[str]) -> BuildFailure:
    """The provider opens each file of a context, for its hash; BuildKit itself leaves sockets out."""
    is_socket = found["why"] == "no such device or address"
    why = "is a socket" if is_socket else f"can't be read: {found['why']}"
    return BuildFailure(
        message=f"can't be built: '{found['path']}' in its context {why}",
        origin=("build", "context"),
        hint="name it in .dockerignore, or delete it" if is_socket else "name it in .dockerignore, or make it readable",
    )


def _of_base(found: re.Match[str]) -> BuildFailure:
    failure = _of_registry(found["image"], found["why"], "pulled from")
    if re.search(r": not found\b", found["why"]) or re.search(r"does not exist", found["why"]):
        return BuildFailure(
            message=f"can't be built: there is no image '{found['image']}' to build on",
            hint="correct the name after FROM; for a private image, log in: docker login",
        )
    return replace(failure, message=f"can't be built on '{found['image']}': {failure.message}")


def _of_push(found: re.Match[str]) -> BuildFailure:
    failure = _of_registry(found["image"], found["why"], "pushed to")
    return replace(failure, message=f"was built, but can't be pushed as '{found['image']}': {failure.message}")


def _of_registry(image: str, why: str, verb: str) -> BuildFailure:
    """What a registry, or the way to it, says no with."""
    host = ImageReference.parse(image).registry
    origin = ("image",) if verb == "pushed to" else ("build",)
    other = "; 'image' names another registry, or --registry where there is no 'image'" if verb == "pushed to" else ""
    if limit := _RATE_LIMIT.search(why):
        message = f"the rate limit of registry {host} is reached: {shorten(limit['message']) or 'too many requests'}"
        return BuildFailure(message=message, origin=origin, hint=f"log in, for a higher limit: docker login {host}")
    if _REFUSED.search(why):
        message = f"registry {host} refuses the credentials, or wants some"
        return BuildFailure(message=message, origin=origin, hint=f"docker login {host}{other}")
    if "server gave HTTP response to HTTPS client" in why:
        message = f"registry {host} speaks plain HTTP, and the builder wants HTTPS"
        return BuildFailure(message=message, origin=origin, hint="allow it in the configuration of the builder")
    if "x509" in why or "tls:" in why:
        message = f"registry {host} shows a certificate that the builder does not trust"
        return BuildFailure(message=message, origin=origin, hint="give its authority to the builder's configuration")
    if re.search(
        r"no such host|connection refused|timeout|timed out|unreachable|deadline exceeded|reset by peer|EOF", why
    ):
        reason = why.rpartition(": ")[2]
        message = f"registry {host} can't be reached: {reason}"
        return BuildFailure(
            message=message, origin=origin, hint=f"check that it runs and that the name is right{other}"
        )
    return BuildFailure(message=shorten(why), origin=origin)


def _of_property(found: re.Match[str]) -> BuildFailure:
    """The provider's own look at what it is given."""
    message = re.sub(r"^dockerfile parse error on line (\d+): ", r"line \1 of the Dockerfile: ", found["why"])
    keys = {"dockerfile": "dockerfile", "context": "context", "cacheFrom": "cache_from", "cacheTo": "cache_to"}
    key = re.match(r"\w*", found["property"])
    name = key[0] if key else ""
    return BuildFailure(message=f"can't be built: {shorten(message)}", origin=("build", keys.get(name, name)))


def _of_target(found: re.Match[str]) -> BuildFailure:
    message = f"can't be built: the Dockerfile has no stage '{found['target']}'"
    return BuildFailure(message=message, origin=("build", "target"), hint="write FROM … AS <name>")


def _of_builder(found: re.Match[str]) -> BuildFailure:
    return BuildFailure(
        message=f"{_BUILDER} does not answer: {shorten(found[0])}",
        hint="check that it runs: docker buildx ls; or name another one with --builder",
        has_subject=True,
    )


def _of_engine(found: re.Match[str]) -> BuildFailure:
    """Docker's own builder can't push; the provider then starts another one in a container."""
    why = re.sub(r"^.*\b(?:runc create failed|create shim task): ", "", found["why"])
    return BuildFailure(
        message=f"can't be built: Docker can't start a builder in a container: {shorten(why)}",
        hint="see what docker buildx create --bootstrap says, or name another builder with --builder",
    )


def _of_network(found: re.Match[str]) -> BuildFailure:
    return BuildFailure(
        message=f"can't be built: the builder does not allow its steps the network '{found['network']}'",
        origin=("build", "network"),
        hint=f'allow it in the builder\'s configuration: insecure-entitlements = ["network.{found["network"]}"];'
        " on the local cluster: platform cluster start --build-network host",
    )


def _of_credentials(found: re.Match[str]) -> BuildFailure:
    return BuildFailure(
        message=f"can't be built: the credentials of Docker's configuration can't be read: {shorten(found['why'])}",
        hint="install that credential helper, or take credsStore out of Docker's config.json",
    )


_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], BuildFailure]], ...] = (
    (re.compile(r"^failed to push (?P<image>\S+): (?P<why>.*)"), _of_push),
    (re.compile(r"failed to resolve source metadata for (?P<image>\S+): (?P<why>.*)"), _of_base),
    (re.compile(r"(?P<image>\S+): failed to (?:copy|do request|fetch \S+): (?P<why>.*)"), _of_base),
    (re.compile(r'^process "(?P<command>.*)" did not complete successfully: exit code: (?P<status>\d+)'), _of_process),
    (re.compile(r'unable to hash build context: could not open "(?P<path>.*?)": open .*: (?P<why>[^:]+)$'), _of_file),
    (re.compile(r'failed to calculate checksum of ref \S+ "(?P<path>[^"]*)": not found'), _of_copy),
    (re.compile(r'target stage "?(?P<target>[^"\s]+)"? could not be found'), _of_target),
    (re.compile(r"^Error response from daemon: (?P<why>.*)"), _of_engine),
    (re.compile(r"granting entitlement network\.(?P<network>\w+) is not allowed"), _of_network),
    (re.compile(r"error listing credentials - err: (?P<why>.*?)(?:, out: .*)?$"), _of_credentials),
    (re.compile(r"property (?P<property>[\w.\[\]]+) value .*? has a problem: (?P<why>.*)"), _of_property),
    (
        re.compile(
            r"^(?:context deadline exceeded|(?:new builder|loading nodes|creating builder|booting builder): .*"
            r"|.*Cannot connect to the Docker daemon.*|listing workers.*|failed to dial.*)$"
        ),
        _of_builder,
    ),
)


def _mask(failure: BuildFailure, hidden: Iterable[str]) -> BuildFailure:
    def clean(text: str) -> str:
        for value in sorted(hidden, key=len, reverse=True):
            text = text.replace(value, "[secret]")
        return text

    hidden = tuple(hidden)
    return replace(
        failure,
        message=clean(failure.message),
        step=clean(failure.step),
        hint=clean(failure.hint),
        lines=tuple(clean(line) for line in failure.lines),
    )
