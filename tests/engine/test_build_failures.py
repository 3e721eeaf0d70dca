"""From what the provider and BuildKit wrote to why a build failed; the texts are theirs."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from composeplat.compose.model import Build, BuildSecret
from composeplat.engine.build_failures import BuildFailure, confidential, matches, read_failure

RUN = (
    'failed to solve: process "/bin/sh -c for i in 1 2; do echo $i; done; echo \\"no such table\\" >&2; exit 3" did not'
    " complete successfully: exit code: 3\n"
)
SOURCES = (
    "Dockerfile:1\n--------------------\n   1 | >>> FROM busybox:${TAG}\n   2 |     RUN true\n--------------------\n\n"
)
DIAL = "dial tcp 127.0.0.1:5001: connect: connection refused"


def record(message: str, **error: Any) -> dict[str, Any]:
    """A build as ``buildx history inspect`` shows it in the root folder."""
    return {"Name": "web", "Context": "shop/web", "Status": "failed", "Error": {"Message": message, **error}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            RUN,
            BuildFailure(
                message="can't be built: a step ended with exit status 3:"
                ' RUN for i in 1 2; do echo $i; done; echo "no such table" >&2; exit 3',
                step='RUN for i in 1 2; do echo $i; done; echo "no such table" >&2; exit 3',
            ),
            id="a step that fails",
        ),
        pytest.param(
            'failed to solve: process "/bin/sh -c nosuchprog --x" did not complete successfully: exit code: 127\n',
            BuildFailure(
                message="can't be built: a step ended with exit status 127: RUN nosuchprog --x",
                hint="the image has no such program",
                step="RUN nosuchprog --x",
            ),
            id="a program that is not there",
        ),
        pytest.param(
            'Error response from daemon: Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io:'
            " no such host\n",
            BuildFailure(
                message="can't be built: Docker can't start a builder in a container:"
                ' Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io: no such host',
                hint="see what docker buildx create --bootstrap says, or name another builder with --builder",
            ),
            id="an engine that can not have a builder's image",
        ),
        pytest.param(
            "Error response from daemon: failed to create shim task: OCI runtime create failed: runc create failed:"
            " unable to start container process: unable to apply caps: operation not permitted: unknown\n",
            BuildFailure(
                message="can't be built: Docker can't start a builder in a container:"
                " unable to start container process: unable to apply caps: operation not permitted: unknown",
                hint="see what docker buildx create --bootstrap says, or name another builder with --builder",
            ),
            id="an engine that can not run a builder",
        ),
        pytest.param(
            "granting entitlement network.host is not allowed by build daemon configuration\n",
            BuildFailure(
                message="can't be built: the builder does not allow its steps the network 'host'",
                origin=("build", "network"),
                hint='allow it in the builder\'s configuration: insecure-entitlements = ["network.host"];'
                " on the local cluster: platform cluster start --build-network host",
            ),
            id="a network that is not allowed",
        ),
        pytest.param(
            "failed to solve: busybox:9.99: failed to resolve source metadata for docker.io/library/busybox:9.99:"
            " docker.io/library/busybox:9.99: not found\n",
            BuildFailure(
                message="can't be built: there is no image 'docker.io/library/busybox:9.99' to build on",
                hint="correct the name after FROM; for a private image, log in: docker login",
            ),
            id="a base that is not there",
        ),
        pytest.param(
            "failed to solve: localhost:5001/none:1: failed to resolve source metadata for localhost:5001/none:1:"
            f' failed to do request: Head "http://localhost:5001/v2/none/manifests/1": {DIAL}\n',
            BuildFailure(
                message="can't be built on 'localhost:5001/none:1': registry localhost:5001 can't be reached:"
                " connection refused",
                hint="check that it runs and that the name is right",
            ),
            id="a base of a registry that does not run",
        ),
        pytest.param(
            "failed to solve: quay.io/none:1: failed to resolve source metadata for quay.io/none:1: unexpected status"
            " from HEAD request to http://127.0.0.2:5403/v2/none/manifests/1?ns=quay.io: 502 quay.io can't be reached:"
            " dial tcp: lookup quay.io: no such host\n",
            BuildFailure(
                message="can't be built on 'quay.io/none:1': registry quay.io can't be reached: no such host",
                hint="check that it runs and that the name is right",
            ),
            id="a base that the mirror can't pull",
        ),
        pytest.param(
            "failed to solve: quay.io/none:1: failed to resolve source metadata for quay.io/none:1: unexpected status"
            " from HEAD request to http://127.0.0.2:5000/v2/none/manifests/1?ns=quay.io: 503 the rate limit of quay.io"
            " is reached: You have reached your unauthenticated pull rate limit.\n",
            BuildFailure(
                message="can't be built on 'quay.io/none:1': the rate limit of registry quay.io is reached:"
                " You have reached your unauthenticated pull rate limit.",
                hint="log in, for a higher limit: docker login quay.io",
            ),
            id="a rate limit that the mirror names",
        ),
        pytest.param(
            "failed to solve: quay.io/none:1: failed to resolve source metadata for quay.io/none:1: unexpected status"
            " from HEAD request to https://quay.io/v2/none/manifests/1: 429 Too Many Requests\n",
            BuildFailure(
                message="can't be built on 'quay.io/none:1': the rate limit of registry quay.io is reached:"
                " too many requests",
                hint="log in, for a higher limit: docker login quay.io",
            ),
            id="a rate limit without a message",
        ),
        pytest.param(
            "failed to solve: failed to compute cache key: failed to calculate checksum of ref"
            ' eyasngp0drxnqi6tdbxzrvu4s::sup35c1zm96n7kuchnr7l82by: "/missing.txt": not found\n',
            BuildFailure(
                message="can't be built: its context has no 'missing.txt'",
                origin=("build", "context"),
                hint="paths in a Dockerfile are relative to the context, and what .dockerignore names is not there",
            ),
            id="a file that is not in the context",
        ),
        pytest.param(
            'failed to solve: target stage "prod" could not be found\n',
            BuildFailure(
                message="can't be built: the Dockerfile has no stage 'prod'",
                origin=("build", "target"),
                hint="write FROM … AS <name>",
            ),
            id="a stage that is not there",
        ),
        pytest.param(
            "docker-build:index:Image resource 'shop-image/web': property dockerfile.location value {<nil>} has a"
            " problem: dockerfile parse error on line 2: unknown instruction: RUNN (did you mean RUN?)\n",
            BuildFailure(
                message="can't be built: line 2 of the Dockerfile: unknown instruction: RUNN (did you mean RUN?)",
                origin=("build", "dockerfile"),
            ),
            id="a Dockerfile that is none",
        ),
        pytest.param(
            "failed to solve: failed to push localhost:5001/shop/web:1: failed to do request: Head"
            f' "http://localhost:5001/v2/shop/web/blobs/sha256:cd4c443381998d23fefd4067a": {DIAL}\n',
            BuildFailure(
                message="was built, but can't be pushed as 'localhost:5001/shop/web:1': registry localhost:5001"
                " can't be reached: connection refused",
                origin=("image",),
                hint="check that it runs and that the name is right;"
                " 'image' names another registry, or --registry where there is no 'image'",
            ),
            id="a registry that does not run",
        ),
        pytest.param(
            "failed to solve: failed to push shop-web: failed to do request: Head"
            ' "https://registry-1.docker.io/v2/library/shop-web/blobs/sha256:c99698d634e9": dial tcp: lookup'
            " registry-1.docker.io on 192.0.2.53:53: no such host\n",
            BuildFailure(
                message="was built, but can't be pushed as 'shop-web': registry docker.io can't be reached:"
                " no such host",
                origin=("image",),
                hint="check that it runs and that the name is right;"
                " 'image' names another registry, or --registry where there is no 'image'",
            ),
            id="a registry without an address",
        ),
        pytest.param(
            "failed to solve: failed to push localhost:5001/shop/web:1: unexpected status from HEAD request to"
            " http://localhost:5001/v2/shop/web/blobs/sha256:cd4c44338199: 401 Unauthorized\n",
            BuildFailure(
                message="was built, but can't be pushed as 'localhost:5001/shop/web:1': registry localhost:5001"
                " refuses the credentials, or wants some",
                origin=("image",),
                hint="docker login localhost:5001;"
                " 'image' names another registry, or --registry where there is no 'image'",
            ),
            id="credentials that are refused",
        ),
        pytest.param(
            'getting host: error listing credentials - err: exec: "docker-credential-gone": executable file not found'
            " in $PATH, out: ``\n",
            BuildFailure(
                message="can't be built: the credentials of Docker's configuration can't be read:"
                ' exec: "docker-credential-gone": executable file not found in $PATH',
                hint="install that credential helper, or take credsStore out of Docker's config.json",
            ),
            id="a credential helper that is not there",
        ),
        pytest.param(
            "failed to solve: failed to push localhost:5001/shop/web:1: quota exceeded\n",
            BuildFailure(
                message="was built, but can't be pushed as 'localhost:5001/shop/web:1': quota exceeded",
                origin=("image",),
            ),
            id="a registry's own reason",
        ),
        pytest.param(
            'hashing build context: unable to hash build context: could not open "run/app.sock":'
            " open /shop/api/run/app.sock: no such device or address\n",
            BuildFailure(
                message="can't be built: 'run/app.sock' in its context is a socket",
                origin=("build", "context"),
                hint="name it in .dockerignore, or delete it",
            ),
            id="a socket in a context",
        ),
        pytest.param(
            'unable to hash build context: could not open "key": open /shop/api/key: permission denied\n',
            BuildFailure(
                message="can't be built: 'key' in its context can't be read: permission denied",
                origin=("build", "context"),
                hint="name it in .dockerignore, or make it readable",
            ),
            id="a file that can not be read",
        ),
        pytest.param(
            "failed to solve: failed to stat policy file Dockerfile.rego: failed to load cache key:"
            ' repository does not contain ref next, output: ""\n',
            BuildFailure(
                message='can\'t be built: failed to load cache key: repository does not contain ref next, output: ""'
            ),
            id="an address that lacks something",
        ),
        pytest.param(
            'failed to solve: failed to parse stage name "busybox:": invalid reference format\n',
            BuildFailure(message='can\'t be built: failed to parse stage name "busybox:": invalid reference format'),
            id="anything else",
        ),
    ],
)
def test_why_a_build_failed(text: str, expected: BuildFailure) -> None:
    """Each text becomes a sentence about the service, a part of it to look at, and a fix."""
    assert expected == read_failure(text)


def test_the_last_lines_are_those_of_the_history() -> None:
    """BuildKit's history has the step as its author wrote it, and its last lines."""
    found = read_failure(
        'failed to solve: process "/bin/sh -c make" did not complete successfully: exit code: 2',
        record("", Name="[builder 2/3] RUN make", Logs=["cc main.c", "main.c:1: error", ""]),
    )

    assert found.step == "RUN make"
    assert found.lines == ("cc main.c", "main.c:1: error", "")
    assert found.message == "can't be built: a step ended with exit status 2: RUN make"


def test_at_most_twenty_lines() -> None:
    """Of a step that says much, the last lines are kept."""
    logs = [str(number) for number in range(100)]

    assert read_failure(RUN, record("", Logs=logs)).lines == tuple(logs[80:])


def test_lines_of_the_dockerfile_where_no_step_ran() -> None:
    """Where nothing has run yet, the lines of the Dockerfile that are to blame are shown."""
    sources = base64.b64encode(SOURCES.encode()).decode()

    found = read_failure('failed to solve: failed to parse stage name "busybox:"', record("", Sources=sources))

    assert found.lines == ("Dockerfile:1", "   1 | >>> FROM busybox:${TAG}", "   2 |     RUN true")


def test_an_image_without_a_shell() -> None:
    """A step in an image from nothing fails for want of a shell, which its text does not say."""
    line = (
        'runc run failed: unable to start container process: exec: "/bin/sh": stat /bin/sh: no such file or directory'
    )

    found = read_failure(
        'failed to solve: process "/bin/sh -c true" did not complete successfully: exit code: 1',
        record("", Name="[1/1] RUN true", Logs=[line]),
    )

    assert found.hint == "the image has no such program; one made FROM scratch has not even a shell"


def test_a_builder_that_does_not_answer() -> None:
    """The builder is named where it is known."""
    assert read_failure("context deadline exceeded\n", builder="mine").message == (
        "can't be built: the builder 'mine' does not answer: context deadline exceeded"
    )


def test_values_that_are_not_to_be_seen() -> None:
    """Secrets and arguments that are called so are shown neither in a step nor in its lines."""
    build = Build(
        args={"API_TOKEN": "abcdef", "MODE": "production", "KEY": "abc"},
        secrets=(BuildSecret(name="file", file="/x"), BuildSecret(name="b", variable="B", value="ghijkl")),
    )
    hidden = confidential(build)
    assert hidden == ("abcdef", "ghijkl")

    found = read_failure(
        'failed to solve: process "/bin/sh -c curl abcdef" did not complete successfully: exit code: 2',
        record("", Name="[2/2] RUN curl abcdef", Logs=["no ghijkl"]),
        hidden=hidden,
    )

    assert (found.step, found.lines) == ("RUN curl [secret]", ("no [secret]",))
    assert found.message == "can't be built: a step ended with exit status 2: RUN curl [secret]"


def test_secrets_of_several_lines() -> None:
    """A secret of a file is hidden line by line, and so is what is behind a name in it; short words stay."""
    hidden = confidential(Build(), ["//r.example.com/:_authToken=t0ken-1\nalways-auth=yes\n"])
    text = "//r.example.com/:_authToken=t0ken-1"
    lines = [text, "the token is t0ken-1", "always-auth=yes", "yes"]

    found = read_failure(RUN, record("", Name="RUN x", Logs=lines), hidden=hidden)

    assert found.lines == ("[secret]", "the token is [secret]", "[secret]", "yes")


@pytest.mark.parametrize(
    ("message", "context", "expected"),
    [
        pytest.param("exit code: 3", "/shop/web", True, id="the same"),
        pytest.param("exit code: 4", "/shop/web", False, id="another error"),
        pytest.param("exit code: 3", "/shop/api", False, id="another context"),
        pytest.param("", "/shop/web", False, id="no error"),
    ],
)
def test_which_build_of_the_history_it_is(message: str, context: str, *, expected: bool) -> None:
    """A build in the history is known by its context and its error."""
    assert expected == matches(record(message), RUN, context)
