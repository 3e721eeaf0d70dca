"""Errors of state backends, as Pulumi words them, and the messages for them."""

from __future__ import annotations

import time

import pytest

from composeplat.diagnostics import ComposeplatError, MissingPiece
from composeplat.engine.pulumi_errors import explain, is_refused

BLOB = 'error: read ".pulumi/meta.yaml": blob (key ".pulumi/meta.yaml") (code=Unknown): '
READ = f"{BLOB}operation error S3: GetObject, "
GET = f'{BLOB}Get "https://storage.googleapis.com/state/.pulumi%2Fmeta.yaml"'
OPEN = 'error: unable to open state database "postgres://me:****@db/state": '
AGAIN = "then run this again: what was done is recorded, or found by its labels"
REACH = f"check that it runs, and PULUMI_BACKEND_URL; {AGAIN}"
GOOGLE_LOGIN = "log in again: gcloud auth application-default login"
TRACE = "panic: runtime error: invalid memory address\n[signal SIGSEGV: code=0x1 pc=0x1d]\n\ngoroutine 51 [running]:\n"
KEYS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or log in with the tool of the cloud"


@pytest.mark.parametrize(
    ("output", "message", "hint"),
    [
        pytest.param(
            "SDK 2026/11/25 WARN falling back to IMDSv1\n"
            f"{READ}get identity: get credentials: failed to refresh cached credentials, no EC2 IMDS role found\n",
            "no login for the state backend was found",
            KEYS,
            id="no-credentials",
        ),
        pytest.param(
            f'{GET}: oauth2: "invalid_grant" "Token has been expired or revoked."',
            'the state backend refused the login: "invalid_grant" "Token has been expired or revoked."',
            GOOGLE_LOGIN,
            id="google-expired",
        ),
        pytest.param(
            f"{GET}: oauth2: cannot fetch token: 400 Bad Request Response: {{}}",
            "the state backend refused the login: 400 Bad Request",
            GOOGLE_LOGIN,
            id="google-no-token",
        ),
        pytest.param(
            f"{BLOB}googleapi: Error 401: Invalid Credentials, authError",
            "the state backend refused the login: Invalid Credentials, authError",
            GOOGLE_LOGIN,
            id="google-refused-login",
        ),
        pytest.param(
            f"{BLOB}googleapi: Error 403: ann does not have storage.objects.list access., forbidden",
            "the state backend refused the request: ann does not have storage.objects.list access., forbidden",
            "let this user list, read, write and delete the objects of the bucket: roles/storage.objectAdmin",
            id="google-access-denied",
        ),
        pytest.param(
            f"{BLOB}googleapi: Error 404: The specified bucket does not exist., notFound",
            "the bucket of the state does not exist",
            "create it, or correct PULUMI_BACKEND_URL",
            id="google-no-bucket",
        ),
        pytest.param(
            f"{BLOB}GET https://team.blob.core.windows.net/state\n{'-' * 80}\nRESPONSE 403: 403 This request is not"
            " authorized to perform this operation using this permission.\n"
            f"ERROR CODE: AuthorizationPermissionMismatch\n{'-' * 80}",
            "the state backend refused the request: This request is not authorized to perform this operation using this"
            " permission",
            "let this user list, read, write and delete the blobs of the container: role Storage Blob Data Contributor",
            id="azure-access-denied",
        ),
        pytest.param(
            f"{READ}https response error StatusCode: 403, RequestID: 1, api error AccessDenied: Access Denied.",
            "the state backend refused the request: Access Denied",
            "let this user list, read, write and delete the objects of the bucket",
            id="access-denied",
        ),
        pytest.param(
            f"{READ}resolve auth scheme: endpoint rule error, Invalid region: region was not a valid DNS name.",
            "the region of the state's bucket is not known",
            "add ?region=REGION to PULUMI_BACKEND_URL, or set AWS_REGION",
            id="no-region",
        ),
        pytest.param(
            f'{READ}https response error StatusCode: 0, request send failed, Get "http://h:1/x": dial tcp: lookup h on'
            " 10.0.0.1:53: no such host",
            "the state backend can't be reached: dial tcp: lookup h on 10.0.0.1:53: no such host",
            REACH,
            id="no-host",
        ),
        pytest.param(
            f"{OPEN}failed to ping PostgreSQL: dial tcp 127.0.0.1:1: connect: connection refused",
            "the state backend can't be reached: dial tcp 127.0.0.1:1: connect: connection refused",
            REACH,
            id="no-server",
        ),
        pytest.param(
            f"{OPEN}failed to create table pulumi_state: pq: permission denied for schema public (42501)",
            "the state backend can't be used: permission denied for schema public",
            "let this user create a table in that database, and read and write it",
            id="no-table",
        ),
        pytest.param(
            f"{OPEN}failed to ping PostgreSQL: pq: the database system is starting up (57P03)",
            "the state backend stopped answering: unable to open state database"
            ' "postgres://me:****@db/state": failed to ping PostgreSQL: pq: the database system is starting up (57P03)',
            f"check that it runs, {AGAIN}",
            id="starting",
        ),
        pytest.param(
            f"@ updating....{TRACE}\tgocloud.dev/blob/azureblob/azureblob.go:1088 +0x115\n"
            "github.com/pulumi/pulumi/pkg/v3/backend/diy.(*diyBackend).saveCheckpoint(0x12, {0x47, 0x12})\n",
            "the state backend failed, and Pulumi crashed: runtime error: invalid memory address",
            f"check that it runs, {AGAIN}",
            id="panic-as-it-writes",
        ),
        pytest.param(
            'error: unable to open state directory "file:///mnt/x?a=b": stat /mnt/x: no such file or directory',
            "the folder of the state does not exist: /mnt/x",
            "create it, or correct PULUMI_BACKEND_URL",
            id="no-folder",
        ),
    ],
)
def test_backends(output: str, message: str, hint: str) -> None:
    """What a backend refuses is one message with a hint, and status 4."""
    error = explain(output)

    assert (type(error), str(error), error.hint) == (MissingPiece, message, hint)


def test_a_full_disk_of_the_backend() -> None:
    """A server without space is reported as a full disk."""
    error = explain(
        f"{READ}https response error StatusCode: 507, api error XMinioStorageFull: Storage backend is full."
    )

    assert (type(error), str(error)) == (ComposeplatError, "the state can't be written: the disk is full")


def test_a_panic() -> None:
    """Of a stack trace, which can be longer than a message, the first line is the error."""
    error = explain(f"@ updating....{TRACE}" + "main.main()\n\tmain.go:1 +0x1\n" * 50)

    assert (type(error), str(error)) == (ComposeplatError, "Pulumi crashed: runtime error: invalid memory address")


@pytest.mark.parametrize("line", ["panic: x\n", "panic: x goroutine 1 x\n", "panic: x [signal \n"])
def test_many_panics(line: str) -> None:
    """A build can print the word any number of times: the time grows with the output, and not with its square."""

    def count(times: int) -> float:
        began = time.process_time()
        explain(line * times)
        return time.process_time() - began

    assert count(16_000) < 40 * max(count(1_000), 0.01)


def refused(kind: str, name: str, reason: str) -> str:
    urn = f"urn:pulumi:team::demo::composeplat:index:ComposeStack$kubernetes:apps/v1:{kind}::{name}"
    return f'Preview failed: resource "{urn}" was not successfully created by the Kubernetes API server: {reason}\n'


def test_what_a_policy_refuses() -> None:
    """Each object is named as in the cluster, with the reason of the policy, and nothing of Pulumi around it."""
    deployment = refused("Deployment", "demo-workload/web", "deployments.apps is forbidden: every one needs an owner")
    service = refused("Service", "demo-service/web", "no ports")
    error = explain(f"{deployment}{service}{service}preview failed\n")

    assert type(error) is ComposeplatError
    assert str(error) == (
        "the API server refuses Deployment 'web': deployments.apps is forbidden: every one needs an owner;"
        " Service 'web': no ports"
    )


@pytest.mark.parametrize(
    "reason",
    [
        "admission webhook \"a.b\" denied the request: permission denied for image 'nginx'",
        'admission webhook "a.b" denied the request: no space left on device quota of team',
        'admission webhook "a.b" denied the request: AccessDenied: no signature',
        'admission webhook "a.b" denied the request: an author must be logged in',
        'admission webhook "a.b" denied the request: image not verified: Unauthorized',
    ],
    ids=["permission", "space", "access", "login", "credentials"],
)
def test_a_message_of_a_webhook(reason: str) -> None:
    """It is no failure of the state's backend or of a credential, although these have the same texts."""
    assert not is_refused(f"Preview failed: {reason}")
    assert str(explain(refused("Deployment", "demo-workload/web", reason))) == (
        f"the API server refuses Deployment 'web': {reason}"
    )
    assert str(explain(f"error: Preview failed: {reason}\n")) == f"Pulumi failed: Preview failed: {reason}"


def test_a_backend_that_fails_beside_a_refusal() -> None:
    """It is the cause of a run that ends: the next run reports what was refused."""
    text = refused("Deployment", "demo-workload/web", "no") + "error: update failed\nerror: no space left on device\n"

    assert str(explain(text)) == "the state can't be written: the disk is full"
