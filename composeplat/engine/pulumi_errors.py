"""Why Pulumi failed, as a sentence with a fix.

Owns the patterns of Pulumi's output, of its Kubernetes provider's errors, and of the errors of each kind of state
backend: a table, since each release may change their words.
Must not know the operation, nor act: whether to run again is the caller's decision.
"""

from __future__ import annotations

import re

from composeplat.cluster.error_text import shorten
from composeplat.diagnostics import ComposeplatError, MissingPiece
from composeplat.engine.backend_url import URL_VARIABLE
from composeplat.engine.own_processes import is_locked_out
from composeplat.system.records import record

FULL_DISK, FREE_SPACE = "the state can't be written: the disk is full", "free some space, then run this again"
#: An error that a component raised as ``pulumi.RunError``, which Pulumi writes twice.
_OF_OUR_PROGRAM = re.compile(r"(?P<why>.+) an unhandled error occurred: (?P=why)")
_MAX_QUOTED_CHARS = 600
#: The start of a stack trace of Go. It is bounded, as the log of a build can have the word any number of times.
_PANIC = r"panic: (.{1,500}?) (?:\[signal [^]]{1,200}\] )?goroutine \d+ "
_NO_LOGIN = "no login for the state backend was found"
_AGAIN = "then run this again: what was done is recorded, or found by its labels"


class Busy(ComposeplatError):
    """Another operation is running on the same stack."""


#: The provider's error for a request that the API server did not answer; a refused request has no URL in it.
_NO_ANSWER = re.compile(
    r'"https?://[^"\s]*/(?:api|apis|openapi|version)(?:[/?][^"\s]*)?": (?!context canceled|tls: failed|x509)'
    r"|Kubernetes cluster is unreachable: (?!.*(?:x509|Unauthorized|load Kubernetes client))"
    r"|Please retry\. Original error: "
    r"|the server is currently unable to handle the request|unable to return a response in the time allotted"
    # By the API server itself, when it has too much to do.
    r"|Timeout: request did not complete within requested timeout"
    r"|etcdserver: |Too Many Requests"
    # Several API servers that count for one quota at once.
    r"|Operation cannot be fulfilled on resourcequotas? "
    # Said by one that has just begun, too, and does not know yet which are taken.
    r"|failed to allocate a serviceIP",
)


#: The provider's error for a credential that the API server did not accept; registries have another error.
_REFUSED = re.compile(
    r"(?:Kubernetes API server|Preview failed|Kubernetes cluster is unreachable): (?!.*admission webhook)"
    r"(?:.*: )?Unauthorized"
    r"|the server has asked for the client to provide credentials"
)


#: The builder's error for a push whose layers the registry had, and deleted before it got the image's manifest.
_LOST_LAYERS = re.compile(r"failed to push \S+: .*(?:blob unknown to registry|MANIFEST_BLOB_UNKNOWN)")


#: The provider's error for an object: its kind, its name in the state without the service's, and the reason.
_REFUSED_OBJECT = re.compile(
    r'resource "urn:[^"]*:(\w+)::[^":]*?([^"/:]+)" was not successfully \w+ by the Kubernetes API server: '
    r'(.*?)(?=\s*(?:[Pp]review failed|update failed|resource "urn:|$))'
)

#: What the API server says of objects, or one of its webhooks in any words.
_OF_API_SERVER = re.compile(
    r"(?:was not successfully \w+ by the Kubernetes API server|Preview failed): "
    r'.*?(?=\s*(?:preview failed|update failed|resource "urn:|$))'
)


def is_refused(output: str) -> bool:
    """Return whether Pulumi failed because its credential had expired: the next run gets a new one."""
    return _REFUSED.search(output) is not None


def broke_off(output: str) -> bool:
    """Return whether Pulumi failed because the cluster did not answer: another run may continue once it does."""
    return _NO_ANSWER.search(output) is not None


def has_lost_layers(output: str) -> bool:
    """Return whether a push failed because a registry cleaned up meanwhile: the next one sends these layers."""
    return _LOST_LAYERS.search(output) is not None


@record
class _Row:
    """A failure: how Pulumi words it, and the message, in which ``{0}`` is the part of its words in parentheses."""

    pattern: str
    message: str
    hint: str = ""
    kind: type[ComposeplatError] = MissingPiece


#: The first row that fits is the cause.
_STATE_FAILURES = (
    _Row(
        r"incorrect passphrase|passphrase must be set",
        "the state is encrypted with another passphrase",
        "set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE to the one it was made with",
    ),
    _Row(
        r"unable to read PULUMI_CONFIG_PASSPHRASE_FILE: (.*)",
        "the passphrase of the state can't be read: {0}",
    ),
    _Row(
        r'performing HTTP request: \w+ "(https?://[^/"]+)[^"]*": (.*)',
        "Pulumi's service at {0}, which keeps the state, can't be reached: {1}",
        "check the network and PULUMI_BACKEND_URL; without it and PULUMI_ACCESS_TOKEN the state is kept in files here",
    ),
)
_BACKEND_FAILURES = (
    _Row(r"no space left on device|XMinioStorageFull", FULL_DISK, FREE_SPACE, ComposeplatError),
    _Row(
        r"pq: ((?:password|\S+) authentication failed for user \S+|role \S+ does not exist|no pg_hba\.conf entry[^(]*)",
        "the state backend refused the login: {0}",
        "correct the user and the password in PULUMI_BACKEND_URL, or set PGPASSWORD",
    ),
    _Row(
        r'pq: (database "[^"]*" does not exist)',
        "the state backend can't be used: {0}",
        "create it: createdb; or correct PULUMI_BACKEND_URL",
    ),
    _Row(
        r"pq: (SSL is not enabled on the server)",
        "the state backend can't be used: {0}",
        "enable it there, or, on a network that you trust, add ?sslmode=disable to PULUMI_BACKEND_URL",
    ),
    _Row(
        r"pq: (permission denied[^(]*?)(?: \(|$)",
        "the state backend can't be used: {0}",
        "let this user create a table in that database, and read and write it",
    ),
    _Row(
        r"unable to open state directory [^:]*(?:\w+:///[^:]*)?: stat ([^:]+): no such file or directory",
        "the folder of the state does not exist: {0}",
        "create it, or correct PULUMI_BACKEND_URL",
    ),
    _Row(
        r"pq: (cannot execute [A-Z ]+ in a read-only transaction)",
        "the state can't be written: {0}",
        "let this user write in the database; a standby of PostgreSQL is read-only",
    ),
    _Row(
        r"NoSuchBucket|googleapi: Error 404: (?:The specified bucket does not exist|Not Found)",
        "the bucket of the state does not exist",
        "create it, or correct PULUMI_BACKEND_URL",
    ),
    _Row(
        r"ERROR CODE: ContainerNotFound",
        "the storage container of the state does not exist",
        "create it: az storage container create; or correct PULUMI_BACKEND_URL",
    ),
    _Row(
        r"(?:api error )?(?:InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken): ([^.]*)",
        "the state backend refused the login: {0}",
        "correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or log in again with the tool of the cloud",
    ),
    _Row(
        r"(?:api error )?AccessDenied: ([^.]*)",
        "the state backend refused the request: {0}",
        "let this user list, read, write and delete the objects of the bucket",
    ),
    _Row(
        r"get identity: get credentials: |no valid credential sources",
        _NO_LOGIN,
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or log in with the tool of the cloud",
    ),
    _Row(
        r"unable to find gcp credentials",
        _NO_LOGIN,
        "gcloud auth application-default login; or set GOOGLE_APPLICATION_CREDENTIALS to the path of a key file",
    ),
    _Row(
        r"unable to parse credentials from \$GOOGLE_CREDENTIALS",
        "the login for the state backend can't be read: GOOGLE_CREDENTIALS is not the JSON of a key file",
        "set it to the content of the file, not to its path",
    ),
    _Row(
        r"(?:oauth2: (?:cannot fetch token: )?|googleapi: Error 401: )(.*?)(?: Response: |$)",
        "the state backend refused the login: {0}",
        "log in again: gcloud auth application-default login",
    ),
    _Row(
        r"googleapi: Error 403: (.*)",
        "the state backend refused the request: {0}",
        "let this user list, read, write and delete the objects of the bucket: roles/storage.objectAdmin",
    ),
    _Row(
        r"DefaultAzureCredential: failed to acquire a token",
        _NO_LOGIN,
        "az login; or set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN",
    ),
    _Row(
        r"azureblob: Options.AccountName is required",
        "the storage account of the state backend is not known",
        "set AZURE_STORAGE_ACCOUNT, or add ?storage_account=NAME to PULUMI_BACKEND_URL",
    ),
    _Row(
        r"azblob.NewSharedKeyCredential: decode account key: ",
        "the login for the state backend can't be read: AZURE_STORAGE_KEY is not base64",
        "az storage account keys list --account-name NAME",
    ),
    _Row(
        r"RESPONSE 40[13]: \d+ (Server failed to authenticate[^.]*)",
        "the state backend refused the login: {0}",
        "correct AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or log in again: az login",
    ),
    _Row(
        r"RESPONSE 403: \d+ (.*?)\.? ERROR CODE: Authorization",
        "the state backend refused the request: {0}",
        "let this user list, read, write and delete the blobs of the container: role Storage Blob Data Contributor",
    ),
    _Row(
        r"(?:Invalid region|missing (?:\S+ )?region|not resolve endpoint).*",
        "the region of the state's bucket is not known",
        "add ?region=REGION to PULUMI_BACKEND_URL, or set AWS_REGION",
    ),
    _Row(
        r'blob \([^"]*(?:"[^"]*"\) )?\(?code=\w+\): \w+ "[^"]*": (.*)',
        "the state backend can't be reached: {0}",
        "check that it runs, and PULUMI_BACKEND_URL; " + _AGAIN,
    ),
    _Row(
        r"(?:failed to ping PostgreSQL|request send failed|failed to connect to PostgreSQL)[:,] (?:.*: )?"
        r"(dial \S+:? .*?|.*?(?:EOF|i/o timeout|connection reset by peer|broken pipe|deadline exceeded))(?: \(|$)",
        "the state backend can't be reached: {0}",
        "check that it runs, and PULUMI_BACKEND_URL; " + _AGAIN,
    ),
    _Row(
        # Pulumi's writer for Azure does, if a write fails as it begins.
        _PANIC + r"(?=.{1,4000}/backend/diy\.)",
        "the state backend failed, and Pulumi crashed: {0}",
        "check that it runs, " + _AGAIN,
    ),
    _Row(
        r"failed to save snapshot|failed to load checkpoint|pq: (?:the database system|terminating connection)"
        r"|driver: bad connection|api error (?:ServiceUnavailable|SlowDown|InternalError|XMinioServerNotInitialized)",
        "the state backend stopped answering: {text}",
        "check that it runs, " + _AGAIN,
    ),
    _Row(
        # A registry answers "401 Unauthorized".
        r"PULUMI_ACCESS_TOKEN|must be logged in|\[401\] Unauthorized",
        "the state backend requires a login",
        "pulumi login, or set PULUMI_ACCESS_TOKEN",
    ),
    _Row(
        # Neither a socket, nor a program, nor a kubeconfig is the state.
        r"^(?!.*(?:dial unix|fork/exec|kubeconfig|\.kube/)).*(?:permission denied|read-only file system)",
        "the state can't be written: {text}",
        kind=ComposeplatError,
    ),
)


def explain(output: str, url_name: str = URL_VARIABLE) -> ComposeplatError:
    """Explain a failure of Pulumi in a sentence; a hint names where the URL of the backend was given."""
    text = _as_line(output)
    if own := _OF_OUR_PROGRAM.fullmatch(text):
        return ComposeplatError(own["why"])
    return (
        _explain_by(_STATE_FAILURES, text)
        or _explain_lock(text)
        or _explain_cluster(text)
        or _explain_by(_BACKEND_FAILURES, _OF_API_SERVER.sub("", text), url_name)
        or _explain_refusal(text)
        or ComposeplatError(_quote(text))
    )


def _quote(text: str) -> str:
    """Quote the end of an output, which has the error; before a stack trace, the error is its first line."""
    if panic := re.search(_PANIC, text):
        return f"Pulumi crashed: {shorten(panic[1], _MAX_QUOTED_CHARS)}"
    return f"Pulumi failed: {text[-_MAX_QUOTED_CHARS:]}"


def _explain_refusal(text: str) -> ComposeplatError | None:
    """Explain that the API server refused objects, as a policy or a webhook does; none if it did not."""
    found = dict.fromkeys(f"{kind} '{name}': {reason}" for kind, name, reason in _REFUSED_OBJECT.findall(text))
    shown = shorten("; ".join(found), _MAX_QUOTED_CHARS)
    return ComposeplatError(f"the API server refuses {shown}") if found else None


def _as_line(output: str) -> str:
    """Join the lines of an output, without the warnings of the clouds' libraries."""
    lines = (line.strip().removeprefix("error: ") for line in output.splitlines() if not line.startswith("SDK "))
    return " ".join(line for line in lines if line)


def _explain_by(rows: tuple[_Row, ...], text: str, url_name: str = URL_VARIABLE) -> ComposeplatError | None:
    for row in rows:
        found = re.search(row.pattern, text)
        if found:
            message = row.message.format(*found.groups(), text=text[: _MAX_QUOTED_CHARS // 2])
            return row.kind(message, row.hint.replace(URL_VARIABLE, url_name))
    return None


def _explain_lock(text: str) -> ComposeplatError | None:
    """Explain that the stack is locked: by whom, and how a lock is removed that was left."""
    if not is_locked_out(text) and "ConcurrentUpdate" not in text:
        return None
    holder = re.search(r"created by (\S+) \(pid (\d+)\) at (\S+)", text)
    who = f" by {holder[1]}, process {holder[2]}, since {holder[3]}" if holder else ""
    fix = "platform state unlock" if holder else "pulumi cancel"
    return Busy(f"the stack is locked{who}", f"wait until that has ended; if it is gone for good: {fix}")


def _explain_cluster(text: str) -> MissingPiece | None:
    """Explain a failure of the cluster in a sentence; none if the cluster is not the cause."""
    if is_refused(text):
        return MissingPiece(
            "the cluster does not accept the credentials that the kubeconfig gives Pulumi", "kubectl auth whoami"
        )
    if broke_off(text):
        return MissingPiece(
            f"the cluster stopped answering: {text[-_MAX_QUOTED_CHARS:]}", "check that it answers, then run this again"
        )
    return None
