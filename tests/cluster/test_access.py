"""Which cluster is meant, how it is reached and with what credentials; and the message to it, and what of it."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from composeplat.cluster.access import Access
from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.connection import Connector
from composeplat.cluster.credentials import Credential, static_credentials
from composeplat.cluster.kubeconfig import context_namespace, find_access, read_kubeconfig
from composeplat.diagnostics import MissingPiece
from composeplat.system.proxies import Proxy, parse_proxy
from tests.cluster.objects import Answer, Server, given, no_server, refusal

SERVER = {"server": "https://api.example.com:6443"}
HERE = Access(host="api.example.com", port=6443, context="here")
PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
NO_CLUSTER = "give --local for a cluster on this machine (Linux, as root), or point KUBECONFIG to one of yours"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def config(*, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> dict[str, Any]:
    """A kubeconfig with one context, called here."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "a", "user": "me"}}],
        "clusters": [{"name": "a", "cluster": {**SERVER, **(cluster or {})}}],
        "users": [{"name": "me", "user": user or {}}],
    }


def write(path: Path, written: dict[str, Any]) -> str:
    """Write a kubeconfig: JSON is YAML too."""
    path.write_text(json.dumps(written))
    return str(path)


def found(tmp_path: Path, *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> Access:
    return find_access({}, write(tmp_path / "config", config(cluster=cluster, user=user)))


def credential_of(access: Access) -> Credential:
    return access.credentials.current()


def token_of(access: Access) -> str:
    return credential_of(access).token


def asked_by(access: Access, **credential: Any) -> Access:
    return replace(access, credentials=static_credentials(Credential(**credential)))


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


# the server -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "expected", "address"),
    [
        pytest.param("https://api.example.com:6443", HERE, "https://api.example.com:6443", id="https"),
        pytest.param("https://api.example.com", replace(HERE, port=443), "https://api.example.com:443", id="no-port"),
        pytest.param(
            "http://127.0.0.1:8080",
            Access(host="127.0.0.1", port=8080, plain=True, context="here"),
            "http://127.0.0.1:8080",
            id="http",
        ),
        pytest.param(
            "http://localhost",
            Access(host="localhost", port=80, plain=True, context="here"),
            "http://localhost:80",
            id="http-without-port",
        ),
        pytest.param(
            "https://api.example.com/k8s/clusters/c-1/",
            replace(HERE, port=443, prefix="/k8s/clusters/c-1"),
            "https://api.example.com:443/k8s/clusters/c-1",
            id="path-prefix",
        ),
        pytest.param("https://[fd00::1]:6443", replace(HERE, host="fd00::1"), "https://[fd00::1]:6443", id="version-6"),
        pytest.param(
            "api.example.com:6443", replace(HERE, plain=True), "http://api.example.com:6443", id="without-scheme"
        ),
    ],
)
def test_server(tmp_path: Path, server: str, expected: Access, address: str) -> None:
    """A server's address gives its host, port and path, and whether it is used to in the clear."""
    access = found(tmp_path, cluster={"server": server})

    assert (expected, address) == (access, access.address)


def test_server_with_an_authority_and_without_a_scheme(tmp_path: Path) -> None:
    """It is no HTTPS server, as in kubectl, and gets no credential."""
    cluster = {"server": "10.0.0.1:6443", "certificate-authority": "/etc/ca.crt"}
    access = found(tmp_path, cluster=cluster, user={"token": "secret"})

    assert (access.address, token_of(access)) == ("http://10.0.0.1:6443", "")


@pytest.mark.parametrize("server", ["https://", "ftp://api.example.com", "https://api.example.com:99999", ":6443"])
def test_server_that_is_no_url(tmp_path: Path, server: str) -> None:
    """A server without a host is not this machine."""
    with pytest.raises(MissingPiece) as caught:
        found(tmp_path, cluster={"server": server})

    assert str(caught.value) == f"the server of the kubeconfig's context 'here' is not a URL: '{server}'"


@pytest.mark.parametrize(
    ("cluster", "more"),
    [
        pytest.param(
            {"certificate-authority-data": encoded(f"# Autorité\n{PEM}")},
            {"authority_data": f"# Autorit\n{PEM}"},
            id="authority-with-a-comment",
        ),
        pytest.param({"certificate-authority-data": encoded(PEM)}, {"authority_data": PEM}, id="authority-as-data"),
        pytest.param({"certificate-authority": "/etc/ca.crt"}, {"authority": "/etc/ca.crt"}, id="authority-as-file"),
        pytest.param({"insecure-skip-tls-verify": True}, {"verify": False}, id="insecure"),
        pytest.param({"insecure-skip-tls-verify": False}, {"verify": True}, id="not-insecure"),
        *(
            pytest.param({"insecure-skip-tls-verify": text}, {"verify": True}, id=text)
            for text in ("False", "no", "off")
        ),
        *(pytest.param({"insecure-skip-tls-verify": text}, {"verify": False}, id=text) for text in ("True", "yes")),
        pytest.param({"tls-server-name": "api.internal"}, {"server_name": "api.internal"}, id="server-name"),
    ],
)
def test_trust(tmp_path: Path, cluster: dict[str, Any], more: dict[str, Any]) -> None:
    """What a cluster's entry says of its certificate is kept."""
    assert replace(HERE, **more) == found(tmp_path, cluster=cluster)


def test_authority_beside_the_kubeconfig(tmp_path: Path) -> None:
    """A relative path is relative to the kubeconfig that says it."""
    expected = replace(HERE, authority=str(tmp_path / "pki/ca.crt"))

    assert expected == found(tmp_path, cluster={"certificate-authority": "pki/ca.crt"})


# credentials ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "more"),
    [
        pytest.param({}, {}, id="none"),
        pytest.param({"token": "secret"}, {"token": "secret"}, id="token"),
        pytest.param({"username": "me", "password": "pä:ss"}, {"basic": encoded("me:pä:ss")}, id="basic"),
        pytest.param({"username": "me"}, {"basic": encoded("me:")}, id="no-password"),
        pytest.param(
            {"client-certificate": "/etc/me.crt", "client-key": "/etc/me.key"},
            {"certificate": "/etc/me.crt", "key": "/etc/me.key"},
            id="certificate-by-file",
        ),
        pytest.param(
            {"client-certificate-data": encoded(PEM), "client-key-data": encoded("key")},
            {"certificate_data": PEM, "key_data": "key"},
            id="certificate-as-data",
        ),
        pytest.param(
            {"auth-provider": {"name": "oidc", "config": {"id-token": "jwt", "refresh-token": "r"}}},
            {"token": "jwt"},
            id="openid-connect",
        ),
        pytest.param({"token": "t", "auth-provider": {"name": "gcp"}}, {"token": "t"}, id="token-beside-a-provider"),
    ],
)
def test_credential(tmp_path: Path, user: dict[str, Any], more: dict[str, Any]) -> None:
    """What a user's entry says of its credential is kept."""
    access = found(tmp_path, user=user)

    assert access == HERE
    assert Credential(**more) == replace(credential_of(access), version=None)


@pytest.mark.parametrize(
    ("provider", "output", "hint"),
    [
        (
            {"name": "gcp"},
            "the kubeconfig's auth-provider 'gcp' is not supported",
            "write the kubeconfig again with a current version of your cloud's command line",
        ),
        (
            {"name": "oidc", "config": {"client-id": "shop"}},
            "the kubeconfig's auth-provider 'oidc' has no id-token",
            "log in with kubectl",
        ),
    ],
)
def test_provider_without_a_token(tmp_path: Path, provider: dict[str, Any], output: str, hint: str) -> None:
    """A request without a credential would be refused as if one had expired."""
    with pytest.raises(MissingPiece) as caught:
        found(tmp_path, user={"auth-provider": provider})

    assert (output, hint) == (str(caught.value), caught.value.hint)


def test_certificate_beside_the_kubeconfig(tmp_path: Path) -> None:
    """The paths of a client's certificate and key are relative to the kubeconfig."""
    given = credential_of(found(tmp_path, user={"client-certificate": "me.crt", "client-key": "me.key"}))

    assert (str(tmp_path / "me.crt"), str(tmp_path / "me.key")) == (given.certificate, given.key)


@pytest.mark.parametrize("folder", [pytest.param("", id="relative"), pytest.param("/", id="absolute")])
def test_token_file(tmp_path: Path, folder: str) -> None:
    """A token is read from a file, without the newline at its end."""
    (tmp_path / "token").write_text("from-a-file\n")
    path = str(tmp_path / "token") if folder else "token"

    assert token_of(found(tmp_path, user={"tokenFile": path})) == "from-a-file"


def test_token_file_beside_a_token(tmp_path: Path) -> None:
    """The file, which may be renewed, goes before the token, which is used while there is no file."""
    (tmp_path / "token").write_text("from-a-file\n")
    access = found(tmp_path, user={"tokenFile": "token", "token": "written"})
    assert token_of(access) == "from-a-file"

    (tmp_path / "token").unlink()
    assert token_of(found(tmp_path, user={"tokenFile": "token", "token": "written"})) == "written"


IMPERSONATION = {
    "as": "jürgen",
    "as-uid": "7",
    "as-groups": ["dev", "ops"],
    "as-user-extra": {"example.com/team": ["a"]},
}


@pytest.mark.parametrize("kind", ["token", "plugin"])
def test_acting_as_another_user(server: Server, tmp_path: Path, kind: str) -> None:
    """A user that acts as another one does so in every request, so that it has no more rights than kubectl's."""
    user = plugin(program(tmp_path / "give", GIVE)) if kind == "plugin" else {"token": "given"}
    access = found(tmp_path, user={**user, **IMPERSONATION})

    with Api(replace(access, host="127.0.0.1", port=server.port, plain=True)) as api:
        api.get("/version")
        list(api.lines("/log"))

    sent = [
        {name: text for name, text in request.headers.items() if name.startswith("Imp")} for request in server.asked
    ]
    expected = {
        "Impersonate-User": "jürgen".encode().decode("latin-1"),
        "Impersonate-Uid": "7",
        "Impersonate-Group": "dev, ops",
        "Impersonate-Extra-example.com%2Fteam": "a",
    }
    assert sent == [expected, expected]
    assert {request.headers["Authorization"] for request in server.asked} == {"Bearer given"}


@pytest.mark.parametrize("more", [{"as": "jane\n"}, {"as": "jane", "as-groups": ["dev\r"]}])
def test_acting_as_a_user_that_is_no_header(tmp_path: Path, more: dict[str, Any]) -> None:
    """A block of YAML, as after ``as: |``, ends with a line break."""
    with pytest.raises(MissingPiece, match="has a line break, which is invalid in an HTTP header"):
        credential_of(found(tmp_path, user={"token": "given", **more}))


@pytest.mark.parametrize(
    "user",
    [
        {"token": "secret"},
        {"username": "me", "password": "secret"},
        {"tokenFile": "none"},
        {"client-certificate": "none", "client-key": "none"},
        {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "none", "interactiveMode": "Never"}},
    ],
    ids=lambda user: next(iter(user)),
)
def test_a_server_without_tls(server: Server, tmp_path: Path, user: dict[str, Any]) -> None:
    """No credential is sent to it, nor read, as in kubectl; who acts as another user still does."""
    address = f"http://127.0.0.1:{server.port}"

    with Api(found(tmp_path, cluster={"server": address}, user={**user, "as": "eve"})) as api:
        api.get("/version")

    (request,) = server.asked
    assert (request.headers.get("Authorization"), request.headers["Impersonate-User"]) == (None, "eve")


def test_token_file_that_is_not_there(tmp_path: Path) -> None:
    """A token file that can't be read is named."""
    with pytest.raises(MissingPiece) as caught:
        credential_of(found(tmp_path, user={"tokenFile": "none"}))

    path = tmp_path / "none"
    assert f"can't read the token '{path}' that the kubeconfig names: No such file or directory" == str(caught.value)


@pytest.mark.parametrize("key", ["tokenFile", "client-certificate", "client-key", "certificate-authority"])
def test_a_path_with_a_nul(tmp_path: Path, key: str) -> None:
    """No file can have it: the error names the path."""
    part = {key: "a\0b"}
    with pytest.raises(MissingPiece, match=r"^the kubeconfig names a file whose path has a NUL: '.*a.*b'$"):
        found(tmp_path, cluster=part, user=part)


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        pytest.param({"certificate-authority-data": "abc"}, {}, id="authority"),
        pytest.param({}, {"client-certificate-data": "abc"}, id="certificate"),
        pytest.param({}, {"client-key-data": "abc"}, id="key"),
    ],
)
def test_data_that_is_not_base64(tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any]) -> None:
    """A certificate or key that is cut off is reported to be no base64."""
    with pytest.raises(MissingPiece, match=r"^a certificate or key in the kubeconfig is not base64$"):
        found(tmp_path, cluster=cluster, user=user)


def test_secrets_are_not_shown() -> None:
    """What a person prints of an access holds none of its credentials."""
    secret = encoded("a secret")
    credential = Credential(token=secret, basic=secret, certificate_data=secret, key_data=secret)
    proxy = parse_proxy(f"http://me:{secret}@proxy:3128", "the proxy")
    access = replace(HERE, credentials=static_credentials(credential), proxy=proxy)

    assert secret not in f"{access!r} {credential!r}"
    assert proxy.authorization not in repr(access)


# credential programs --------------------------------------------------------------------------------------------------


GIVE = """echo '{"status": {"token": "given"}}'"""


def plugin(command: str | Path, **more: Any) -> dict[str, Any]:
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": str(command), **more}}


def test_program_gives_a_token(tmp_path: Path) -> None:
    """A credential program is run with its arguments and variables, and with those of the environment."""
    text = """printf '{"status": {"token": "%s/%s/%s"}}' "$*" "$CLUSTER" "$HOME\""""
    command = program(tmp_path / "give", text)
    user = plugin(command, args=["get", "--id", 7], env=[{"name": "CLUSTER", "value": "a"}])
    named = write(tmp_path / "config", config(user=user))

    assert token_of(find_access({"HOME": "/home/me"}, named)) == "get --id 7/a//home/me"


def test_a_plugin_gets_the_protocol_version(tmp_path: Path) -> None:
    """A credential program learns the version that is used, and that nobody can answer its questions."""
    output = tmp_path / "told"
    command = program(tmp_path / "give", f"""echo "$KUBERNETES_EXEC_INFO" > '{output}'; {GIVE}""")
    credential_of(found(tmp_path, user=plugin(command)))

    assert json.loads(output.read_text()) == {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }


def test_program_gives_a_certificate(tmp_path: Path) -> None:
    """A credential program may give a certificate and its key, as text."""
    status = {"clientCertificateData": PEM, "clientKeyData": "key"}
    command = program(tmp_path / "give", f"printf %s '{json.dumps({'status': status})}'")

    given = credential_of(found(tmp_path, user=plugin(command)))
    assert Credential(certificate_data=PEM, key_data="key") == given


@pytest.mark.parametrize(
    "command", [pytest.param("./bin/give", id="beside-the-kubeconfig"), pytest.param("give", id="on-the-path")]
)
def test_where_a_program_is_looked_for(tmp_path: Path, command: str) -> None:
    """A command with a slash lies beside the kubeconfig, one without on the path of the environment."""
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin" / "give", GIVE)
    named = write(tmp_path / "config", config(user=plugin(command)))

    assert token_of(find_access({"PATH": f"{tmp_path}/bin"}, named)) == "given"


def test_a_program_beside_a_kubeconfig_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of the kubeconfig, such as ``KUBECONFIG=config``, may have no folder."""
    program(tmp_path / "give", GIVE)
    write(tmp_path / "config", config(user=plugin("./give")))
    monkeypatch.chdir(tmp_path)

    assert token_of(find_access({"KUBECONFIG": "config", "PATH": "/bin"})) == "given"


VERSION = "client.authentication.k8s.io/v1beta1"


@pytest.mark.parametrize(
    ("text", "output"),
    [
        pytest.param("exit 1", "failed with exit status 1", id="fails"),
        pytest.param(f"{GIVE}; exit 3", "failed with exit status 3", id="fails-after-a-token"),
        pytest.param("echo >&2 log; echo >&2 in; exit 1", "failed with exit status 1: in", id="fails-with-a-word"),
        pytest.param("echo log in", "gave no ExecCredential: its output is not JSON", id="no-json"),
        pytest.param("echo '[]'", "gave no credential: its output has no 'status'", id="a-list"),
        pytest.param("echo '{}'", "gave no credential: its output has no 'status'", id="no-status"),
        pytest.param("kill -9 $$", "was ended by signal 9", id="killed"),
        pytest.param(
            """echo '{"status": {}}'""",
            "gave no credential: its status has neither a token nor a certificate",
            id="empty-status",
        ),
        pytest.param(
            """echo '{"status": {"clientCertificateData": "PEM"}}'""",
            "gave no credential: a certificate and its key must come together",
            id="no-key",
        ),
        pytest.param(
            """echo '{"apiVersion": "v9", "status": {"token": "given"}}'""",
            f"gave an ExecCredential of version 'v9', not '{VERSION}'",
            id="other-version",
        ),
        pytest.param(
            """echo '{"status": {"token": "given", "expirationTimestamp": "soon"}}'""",
            "gave an invalid expirationTimestamp: 'soon'",
            id="no-moment",
        ),
    ],
)
def test_program_gives_nothing(tmp_path: Path, text: str, output: str) -> None:
    """A credential plugin that gives no credential is named, with why, and with what to try."""
    command = program(tmp_path / "give", text)

    with pytest.raises(MissingPiece) as caught:
        credential_of(found(tmp_path, user=plugin(command, args=["--id", "7"])))

    expected = f"the kubeconfig's credential plugin '{command}' {output}"
    assert (expected, f"try: {command} --id 7", 4) == (str(caught.value), caught.value.hint, caught.value.exit_code)


def test_secrets_of_a_program_are_not_shown(tmp_path: Path) -> None:
    """A secret among the arguments of a credential plugin is not in the error."""
    args = ["get-token", "--client-secret=s3cret", "--password", "s3cret", "--server-id", "7"]
    with pytest.raises(MissingPiece) as caught:
        credential_of(found(tmp_path, user=plugin("./give", args=args)))

    hint = f"try: {tmp_path / 'give'} get-token --client-secret=**** --password **** --server-id 7"
    assert caught.value.hint == hint


def test_program_that_is_not_installed(tmp_path: Path) -> None:
    """A credential plugin that is not there has the kubeconfig's own hint."""
    with pytest.raises(MissingPiece, match=r"credential plugin '.*/give' can't be run: no such file") as caught:
        credential_of(found(tmp_path, user=plugin("./give", installHint="install give")))

    assert caught.value.hint == "install give"


@pytest.mark.parametrize(
    ("more", "output"),
    [
        pytest.param(
            {"apiVersion": "client.authentication.k8s.io/v1alpha1"},
            "has apiVersion 'client.authentication.k8s.io/v1alpha1', which is not supported",
            id="version",
        ),
        pytest.param({"interactiveMode": "Maybe"}, "has interactiveMode 'Maybe'", id="mode"),
        pytest.param({"args": "get-token"}, "has 'args', which must be a list", id="arguments"),
        pytest.param({"env": {"A": "b"}}, "has 'env', which must be a list", id="environment"),
    ],
)
def test_plugin_that_is_not_understood(tmp_path: Path, more: dict[str, Any], output: str) -> None:
    """An entry that asks for another protocol than there is, is refused before the plugin is run."""
    with pytest.raises(MissingPiece) as caught:
        found(tmp_path, user=plugin("give", **more))

    assert output in str(caught.value)


def test_plugin_that_must_ask_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin that must ask the user can't be run without a terminal, and says so."""
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(MissingPiece, match=r"'give' needs a terminal to ask for your login, and there is none$"):
        credential_of(found(tmp_path, user=plugin("give", interactiveMode="Always")))


def test_plugin_learns_of_the_cluster(tmp_path: Path) -> None:
    """A plugin that asks for the cluster is reported where it is, and what the kubeconfig has for the plugin."""
    output = tmp_path / "told"
    command = program(tmp_path / "give", f"""echo "$KUBERNETES_EXEC_INFO" > '{output}'; {GIVE}""")
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "here"}}
    cluster = {"tls-server-name": "api.internal", "extensions": [extension]}
    credential_of(found(tmp_path, cluster=cluster, user=plugin(command, provideClusterInfo=True)))

    expected = {**SERVER, "tls-server-name": "api.internal", "config": {"audience": "here"}}
    assert expected == json.loads(output.read_text())["spec"]["cluster"]


def test_plugin_learns_of_an_authority_in_a_file(tmp_path: Path) -> None:
    """A plugin gets the authority as data, also if the kubeconfig names a file."""
    output = tmp_path / "told"
    (tmp_path / "ca.crt").write_text(PEM)
    command = program(tmp_path / "give", f"""echo "$KUBERNETES_EXEC_INFO" > '{output}'; {GIVE}""")
    cluster = {"certificate-authority": "ca.crt"}
    credential_of(found(tmp_path, cluster=cluster, user=plugin(command, provideClusterInfo=True)))

    expected = {**SERVER, "certificate-authority-data": encoded(PEM)}
    assert expected == json.loads(output.read_text())["spec"]["cluster"]


# several files and contexts -------------------------------------------------------------------------------------------


def test_files_over_one_another(tmp_path: Path) -> None:
    """Of several files the first that has a context, a cluster or a user holds, and the parts may lie in several."""
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    first = {
        "current-context": "here",
        "users": [{"name": "me", "user": {"token": "first"}}],
        "clusters": [{"name": "b", "cluster": {"server": "https://b.example.com"}}],
    }
    second = config(cluster={"certificate-authority": "ca.crt"}, user={"token": "second"})
    third = {**config(cluster={"server": "https://third.example.com"}), "current-context": "there"}
    paths = [
        write(tmp_path / "first/config", first),
        str(tmp_path / "none"),
        write(tmp_path / "second/config", second),
        write(tmp_path / "third", third),
    ]

    access = find_access({"KUBECONFIG": ":".join(paths)})
    assert replace(HERE, authority=str(tmp_path / "second/ca.crt")) == access
    assert token_of(access) == "first"


def test_named_file_goes_before_the_environments(tmp_path: Path) -> None:
    """--kubeconfig names the one file that counts."""
    named = write(tmp_path / "named", config(user={"token": "named"}))
    other = write(tmp_path / "other", config(user={"token": "other"}))
    read = read_kubeconfig({"KUBECONFIG": other}, named)

    assert [Path(named)] == read.paths
    assert {"me": ({"token": "named"}, tmp_path)} == read.users


def test_context(tmp_path: Path) -> None:
    """--context chooses another context than the current one."""
    written = config()
    written["contexts"].append({"name": "there", "context": {"cluster": "b", "user": "me"}})
    written["clusters"].append({"name": "b", "cluster": {"server": "https://b.example.com"}})

    expected = Access(host="b.example.com", port=443, context="there")
    assert expected == find_access({}, write(tmp_path / "config", written), "there")


def test_context_without_a_user(tmp_path: Path) -> None:
    """A context may name no user, or one that nobody describes: then there is no credential."""
    assert find_access({}, write(tmp_path / "config", {**config(user={"token": "t"}), "users": []})) == HERE


# what is missing ------------------------------------------------------------------------------------------------------


def test_no_kubeconfig(tmp_path: Path) -> None:
    """Where no file names a context, the files that were looked at are named."""
    with pytest.raises(MissingPiece) as caught:
        find_access({"KUBECONFIG": f"{tmp_path}/a:{tmp_path}/b"})

    output = f"no cluster is configured: '{tmp_path}/a' or '{tmp_path}/b' names none"
    assert (output, NO_CLUSTER, 4) == (str(caught.value), caught.value.hint, caught.value.exit_code)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            b"contexts: [", " is invalid in line 1: not YAML: did not find expected node content", id="no-yaml"
        ),
        pytest.param(b"# caf\xe9", " is invalid in line 1: a byte here is not UTF-8 text", id="no-text"),
        pytest.param(None, " is a folder, not a file", id="folder"),
    ],
)
def test_kubeconfig_that_can_not_be_read(tmp_path: Path, text: bytes | None, problem: str) -> None:
    """A file that is there and can't be read is not reported as one without a cluster."""
    path = tmp_path / "bad"
    path.mkdir() if text is None else path.write_bytes(text)
    with pytest.raises(MissingPiece) as caught:
        find_access({"KUBECONFIG": f"{tmp_path}/none:{path}"})
    with pytest.raises(MissingPiece) as caught_beside:
        find_access({"KUBECONFIG": f"{path}:{write(tmp_path / 'good', config())}"}, context="there")

    assert f"no cluster is configured: '{path}'{problem}" == str(caught.value)
    expected = f"there is no context 'there' in the kubeconfig; contexts are: here; '{path}'{problem}"
    assert expected == str(caught_beside.value)


def test_no_home() -> None:
    """Where there is no place for a kubeconfig either, it is named in general."""
    with pytest.raises(MissingPiece, match=r"^no cluster is configured: a kubeconfig names none$"):
        find_access({})


@pytest.mark.parametrize(
    ("current", "context", "output"),
    [
        pytest.param("here", "nowhere", "there is no context 'nowhere'", id="asked-for"),
        pytest.param("nowhere", "", "there is no context 'nowhere'", id="current"),
        pytest.param("", "", "no context is chosen", id="none-chosen"),
    ],
)
def test_unknown_context(tmp_path: Path, current: str, context: str, output: str) -> None:
    """A context that is not there is named, with those that are."""
    written = {**config(), "current-context": current}
    written["contexts"].append({"name": "aside", "context": {}})

    with pytest.raises(MissingPiece) as caught:
        find_access({}, write(tmp_path / "config", written), context)

    assert f"{output} in the kubeconfig; contexts are: aside, here" == str(caught.value)
    assert caught.value.hint == "choose one with --context"


@pytest.mark.parametrize(
    "clusters",
    [
        pytest.param([], id="no-such-cluster"),
        pytest.param([{"name": "a", "cluster": {"insecure-skip-tls-verify": True}}], id="no-server"),
    ],
)
def test_no_server(tmp_path: Path, clusters: list[dict[str, Any]]) -> None:
    """A context whose cluster has no server is named."""
    with pytest.raises(MissingPiece) as caught:
        find_access({}, write(tmp_path / "config", {**config(), "clusters": clusters}))

    output = "the kubeconfig's context 'here' names no cluster with a server"
    assert (output, NO_CLUSTER) == (str(caught.value), caught.value.hint)


def test_within_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod without a kubeconfig has the access of its service account."""
    monkeypatch.setattr("composeplat.cluster.kubeconfig._IN_CLUSTER", tmp_path)
    (tmp_path / "token").write_text("of-the-pod\n")
    environment = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "6443"}

    access = find_access(environment)
    assert replace(HERE, host="10.96.0.1", authority=str(tmp_path / "ca.crt"), context="") == access
    assert token_of(access) == "of-the-pod"


@pytest.mark.parametrize(
    ("variables", "written", "expected"),
    [({}, "team\n", "team"), ({"POD_NAMESPACE": "named"}, "team", "named"), ({}, "", ""), ({}, None, "")],
)
def test_namespace_within_a_pod(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    written: str | None,
    expected: str,
) -> None:
    """It is that of the pod without a kubeconfig, and for a context that names none, as for kubectl."""
    monkeypatch.setattr("composeplat.cluster.kubeconfig._IN_CLUSTER", tmp_path)
    if written is not None:
        (tmp_path / "namespace").write_text(written)
    environment = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", **variables}

    within = read_kubeconfig(environment)
    assert (within.namespace(), within.namespaces()) == (expected, (expected or "default",))
    assert context_namespace(environment) == expected
    kubeconfig = write(tmp_path / "config", config())
    assert context_namespace({**environment, "KUBECONFIG": kubeconfig}) == expected
    assert context_namespace(environment, kubeconfig) == expected
    assert context_namespace(variables) == ""


@pytest.mark.parametrize("namespace", ["own", "default"])
def test_namespace_of_a_context_within_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, namespace: str) -> None:
    """A context's own namespace goes before that of the pod, also if it is the usual one."""
    monkeypatch.setattr("composeplat.cluster.kubeconfig._IN_CLUSTER", tmp_path)
    (tmp_path / "namespace").write_text("team")
    written = config()
    written["contexts"][0]["context"]["namespace"] = namespace

    environment = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBECONFIG": write(tmp_path / "config", written)}
    assert context_namespace(environment) == namespace


def test_a_kubeconfig_that_is_named_within_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistyped path does not lead to the cluster of the pod."""
    monkeypatch.setattr("composeplat.cluster.kubeconfig._IN_CLUSTER", tmp_path)

    with pytest.raises(MissingPiece, match=f"^the kubeconfig '{tmp_path}/typo' does not exist$"):
        find_access({"KUBERNETES_SERVICE_HOST": "10.96.0.1"}, str(tmp_path / "typo"))


def test_kubeconfig_within_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kubeconfig goes before the service account of the pod."""
    monkeypatch.setattr("composeplat.cluster.kubeconfig._IN_CLUSTER", tmp_path)
    environment = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}

    assert find_access(environment, write(tmp_path / "config", config())) == HERE


# what is asked of a server --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"token": "secret"}, "Bearer secret", id="token"),
        pytest.param({"basic": encoded("me:pass")}, "Basic bWU6cGFzcw==", id="basic"),
        pytest.param({"token": "secret", "basic": encoded("me:pass")}, "Bearer secret", id="token-before-basic"),
    ],
)
def test_authorization(server: Server, more: dict[str, Any], expected: str | None) -> None:
    """A token or a password goes with every request."""
    with Api(asked_by(server.access, **more)) as api:
        api.get("/version")

    assert [expected] == [request.headers.get("Authorization") for request in server.asked]


def test_prefix(server: Server) -> None:
    """The path of a server's address goes before every path."""
    with Api(replace(server.access, prefix="/k8s/c-1")) as api:
        api.get("/version")

    assert server.paths == ["/k8s/c-1/version"]


def test_items(server: Server) -> None:
    """A list gives its items; one without any is empty."""
    server.answers = {"/api/v1/pods": given({"kind": "Pod"}), "/api/v1/secrets": Answer(b'{"items": null}')}

    with Api(server.access) as api:
        assert api.items("/api/v1/pods") == [{"kind": "Pod"}]
        assert api.items("/api/v1/secrets") == []


def test_object_metadata(server: Server) -> None:
    """Of objects whose content does not matter, the metadata alone is asked for; others ask for whole objects."""
    server.otherwise = given({"metadata": {"name": "a"}})

    with Api(server.access) as api:
        assert api.object_metadata("/api/v1/secrets") == [{"metadata": {"name": "a"}}]
        api.items("/api/v1/secrets")

    assert [request.headers["Accept"] for request in server.asked] == [
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
        "application/json",
    ]


def test_text(server: Server) -> None:
    """A body that is no JSON is given as text, whatever bytes it has."""
    server.otherwise = Answer(b"ok \xff")

    with Api(server.access) as api:
        assert api.text("/readyz") == "ok �"


MANIFEST = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "team"}}
DEPLOYMENTS = "/apis/apps/v1/namespaces/team/deployments"
PATCH, POST = "application/apply-patch+yaml", "application/json"


def test_changes(server: Server) -> None:
    """Each way to change an object has its own method, path and kind of body; a try does everything but keep it."""
    with Api(server.access) as api:
        api.apply(MANIFEST)
        api.apply(MANIFEST, dry_run=True)
        api.create(MANIFEST)
        api.create(MANIFEST, dry_run=True)
        api.patch(f"{DEPLOYMENTS}/web", {"spec": {}})
        api.delete(f"{DEPLOYMENTS}/web")

    assert [
        (request.method, request.path, request.headers["Content-Type"], json.loads(request.body))
        for request in server.asked
    ] == [
        ("PATCH", f"{DEPLOYMENTS}/web?fieldManager=composeplat&force=true", PATCH, MANIFEST),
        ("PATCH", f"{DEPLOYMENTS}/web?fieldManager=composeplat&force=true&dryRun=All", PATCH, MANIFEST),
        ("POST", f"{DEPLOYMENTS}?fieldValidation=Strict", POST, MANIFEST),
        ("POST", f"{DEPLOYMENTS}?fieldValidation=Strict&dryRun=All", POST, MANIFEST),
        ("PATCH", f"{DEPLOYMENTS}/web", "application/merge-patch+json", {"spec": {}}),
        ("DELETE", f"{DEPLOYMENTS}/web", POST, {"propagationPolicy": "Background"}),
    ]


def test_deleting_a_missing_object(server: Server) -> None:
    """What is gone already need not be deleted; another refusal counts."""
    server.answers = {"/gone": refusal(404, "not found"), "/kept": refusal(403, "forbidden: kept")}

    with Api(server.access) as api:
        api.delete("/gone")
        with pytest.raises(ApiError, match=r"^forbidden: kept$"):
            api.delete("/kept")

    assert server.paths == ["/gone", "/kept"]


def test_watch(server: Server) -> None:
    """A watch gives the events that follow a version, until the server ends it."""
    server.otherwise = Answer(b'{"type": "ADDED"}\n{"type": "DELETED"}\n')

    with Api(server.access) as api:
        assert list(api.watch("/api/v1/pods", "17", seconds=5)) == [{"type": "ADDED"}, {"type": "DELETED"}]

    assert server.paths == ["/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=17&timeoutSeconds=5"]


# how a server fails ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("context", "who"),
    [pytest.param("here", "context 'here'", id="context"), pytest.param("", "the kubeconfig", id="no-context")],
)
def test_unauthorized(server: Server, context: str, who: str) -> None:
    """Credentials that are not accepted are reported as what is missing, with where they come from."""
    server.otherwise = refusal(401, "Unauthorized")

    with Api(replace(server.access, context=context)) as api, pytest.raises(ApiError) as caught:
        api.get("/version")

    output = f"the API server at http://127.0.0.1:{server.port} does not accept the credentials of {who}"
    assert (output, 401, 4) == (str(caught.value), caught.value.status, caught.value.exit_code)
    assert caught.value.hint == "credentials are sent to an https:// server only"


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        pytest.param(refusal(403, "pods is forbidden"), "pods is forbidden", id="status-object"),
        pytest.param(Answer(b" no such page\n", 404), "{server} answered 404: no such page", id="text"),
        pytest.param(Answer(b'["no"]', 400), '{server} answered 400: ["no"]', id="other-json"),
        pytest.param(Answer(b"", 500), "the API server answered 500", id="nothing"),
        pytest.param(refusal(500, ""), "the API server answered 500", id="no-message"),
        pytest.param(
            Answer(b"<!DOCTYPE html>\n<HTML><style>a {}</style><h1>502 Bad\n Gateway</h1><p>\x1b[0mnginx</HTML>", 502),
            "{server} answered 502: 502 Bad Gateway \\x1b[0mnginx",
            id="page",
        ),
        pytest.param(Answer(b"x" * 100_000, 403), "{server} answered 403: " + "x" * 299 + "…", id="long-text"),
    ],
)
def test_refused(server: Server, answer: Answer, output: str) -> None:
    """A refusal has the server's own words, where it has any; words that are no API server's name the server."""
    server.otherwise = answer
    output = output.replace("{server}", f"the server at {server.access.address}")

    with Api(server.access) as api, pytest.raises(ApiError) as caught:
        api.get("/version")

    assert (output, answer.status, 1) == (str(caught.value), caught.value.status, caught.value.exit_code)


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda api: api.get("/api/v1/pods"), id="get"),
        pytest.param(lambda api: api.items("/api/v1/pods"), id="items"),
        pytest.param(lambda api: list(api.watch("/api/v1/pods", "1")), id="watch"),
    ],
)
def test_redirected(server: Server, ask: Callable[[Api], object]) -> None:
    """A server that redirects is no API server: its empty response is no empty list."""
    server.otherwise = Answer(b"", 302, location="https://login.example.com/?to=api")

    with Api(server.access) as api, pytest.raises(ApiError) as caught:
        ask(api)

    output = f"the server at {server.access.address} is not an API server: it redirects to {server.otherwise.location}"
    assert (output, 302, 4) == (str(caught.value), caught.value.status, caught.value.exit_code)


def test_watch_refused(server: Server) -> None:
    """A watch is refused as anything else is."""
    server.otherwise = refusal(410, "too old resource version")

    with Api(server.access) as api, pytest.raises(ApiError, match=r"^too old resource version$"):
        list(api.watch("/api/v1/pods", "1"))


def test_unreachable() -> None:
    """A server that does not answer is reported as what is missing, with its address."""
    with no_server() as access, Api(replace(access, prefix="/k8s")) as api, pytest.raises(ApiError) as caught:
        api.get("/version")

    output = f"the API server at http://127.0.0.1:{access.port}/k8s can't be reached: connection refused"
    assert (output, 0, 4) == (str(caught.value), caught.value.status, caught.value.exit_code)


@pytest.mark.parametrize("host", ["api..example.com", "api example.com", "a" * 64])
@pytest.mark.parametrize("is_proxy", [False, True])
def test_a_host_that_can_not_be_one(host: str, *, is_proxy: bool) -> None:
    """A typo in the name of a server or proxy is no crash."""
    proxy = Proxy(host=host, port=3128) if is_proxy else None
    with Api(Access(host="api.example.com" if is_proxy else host, port=6443, proxy=proxy)) as api:
        with pytest.raises(ApiError, match=r"can't be reached.*: the host name is invalid$") as caught:
            api.get("/version")
        with pytest.raises(ApiError, match=r"can't be reached.*: the host name is invalid$"):
            list(api.lines("/log"))

    assert caught.value.exit_code == 4


def test_watch_unreachable() -> None:
    """A watch can't reach such a server either."""
    with (
        no_server() as access,
        Api(access) as api,
        pytest.raises(ApiError, match=r"can't be reached: connection refused$"),
    ):
        list(api.watch("/api/v1/pods", "1"))


# connections ----------------------------------------------------------------------------------------------------------


def test_connection_is_kept(server: Server) -> None:
    """Requests share one connection, even after a refusal."""
    server.answers = {"/no": refusal(404, "no")}

    with Api(server.access) as api:
        api.get("/a")
        with pytest.raises(ApiError):
            api.get("/no")
        api.get("/b")

    assert len({request.connection for request in server.asked}) == 1
    assert server.paths == ["/a", "/no", "/b"]


def test_kept_connection_was_closed(server: Server) -> None:
    """A connection that the server closed meanwhile is opened again, without a word."""
    server.answers = {"/a": Answer(b"{}", hangs_up=True), "/b": Answer(b'{"b": 1}')}

    with Api(server.access) as api:
        api.get("/a")
        assert api.get("/b") == {"b": 1}

    assert len({request.connection for request in server.asked}) == 2
    assert server.paths == ["/a", "/b"]


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take no time between one try and the next."""
    monkeypatch.setattr("composeplat.cluster.api._FIRST_PAUSE_S", 0.0)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("kept", [False, True])
def test_connection_that_breaks(server: Server, *, kept: bool) -> None:
    """A request that may be made twice is made again where the connection breaks, be it new or kept."""
    with Api(server.access) as api:
        if kept:
            api.get("/a")
        server.first = [Answer(silent=True)] * 4
        assert api.get("/b") == {}

    assert server.paths == ["/a"] * kept + ["/b"] * 5


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("kept", [False, True])
def test_connections_that_always_break(server: Server, *, kept: bool) -> None:
    """After five tries a cluster whose connections break is out of reach."""
    server.answers = {"/b": Answer(silent=True)}

    with Api(server.access) as api:
        if kept:
            api.get("/a")
        with pytest.raises(ApiError, match=r"can't be reached: the connection ended without a response$"):
            api.get("/b")

    assert server.paths == ["/a"] * kept + ["/b"] * 5


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{}",
            "the connection ended in the middle of a response",
            id="cut-off",
        ),
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", "it does not answer with HTTP", id="ssh"),
        pytest.param(b"HTTP/1.1 200 OK\r\nA: " + b"a" * 70_000, "it does not answer with HTTP", id="long-line"),
    ],
)
def test_responses_that_are_none(sent: bytes, reason: str) -> None:
    """What comes instead of a response, or is the half of one, has a message of its own."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _sending(sent)) as other:
        thread = threading.Thread(target=other.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            access = Access(host="127.0.0.1", port=other.server_address[1], plain=True)
            with Api(access) as api, pytest.raises(ApiError, match=rf"can't be reached: {reason}$"):
                api.get("/a")
        finally:
            other.shutdown()
            thread.join()


def _sending(sent: bytes) -> type[socketserver.BaseRequestHandler]:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            self.request.sendall(sent)

    return Handler


@pytest.mark.usefixtures("soon")
def test_requests_that_are_not_repeated(server: Server) -> None:
    """To create an object twice is not the same as once: over a new connection it is tried one time."""
    server.otherwise = Answer(silent=True)
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}

    with Api(server.access) as api, pytest.raises(ApiError, match=r"can't be reached"):
        api.create(manifest)

    assert server.paths == ["/api/v1/namespaces?fieldValidation=Strict"]


@pytest.mark.usefixtures("soon")
def test_an_object_is_not_created_twice(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is slow, as with a webhook, may have processed a request, also over a connection that was kept."""
    monkeypatch.setattr("composeplat.cluster.api._TIMEOUT_S", 0.1)
    release: Queue[dict[str, Any] | None] = Queue()
    server.answers = {"/api/v1/namespaces": Answer(events=release)}
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}

    with Api(server.access) as api:
        api.get("/a")
        with pytest.raises(ApiError, match=r"does not answer"):
            api.create(manifest)
    for _ in range(2):
        release.put(None)

    assert server.paths == ["/a", "/api/v1/namespaces?fieldValidation=Strict"]


@pytest.mark.usefixtures("soon")
def test_server_that_starts_again(server: Server) -> None:
    """A server that has answered before, and is not there now, may be starting again: it is given some tries."""
    tries: list[float] = []
    elsewhere: list[Connector] = []

    class Watched(Api):
        def _connect(self, credential: Credential, timeout: float) -> http.client.HTTPConnection:
            tries.append(timeout)
            return (
                elsewhere[0].connect(credential, timeout=timeout)
                if elsewhere
                else super()._connect(credential, timeout)
            )

    with no_server() as access, Watched(server.access) as api:
        api.get("/a")
        api.close()
        elsewhere.append(Connector(access))
        with pytest.raises(ApiError, match=r"can't be reached: connection refused$"):
            api.get("/b")

    assert len(tries) == 1 + 5


def test_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that takes a connection and does not answer is reported as that, after a time, and not asked again."""
    monkeypatch.setattr("composeplat.cluster.api._TIMEOUT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        access = Access(host="127.0.0.1", port=listening.getsockname()[1], plain=True)
        with Api(access) as api, pytest.raises(ApiError) as caught:
            api.get("/version")

    assert f"{access.address} does not answer: no data within 0 s" in str(caught.value)
    assert (caught.value.status, caught.value.exit_code) == (0, 4)


@pytest.mark.parametrize("status", [429, 503])
def test_busy_server(server: Server, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    """A server that is too busy is asked again when it says, also for what must not be done twice."""
    pauses: list[float] = []
    monkeypatch.setattr("composeplat.cluster.api.time.sleep", pauses.append)
    server.first = [Answer(b"", status, retry_after=after) for after in ("1", "3", "600")]
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}

    with Api(server.access) as api:
        assert api.create(manifest) == {}

    assert pauses == [1.0, 3.0, 10.0]
    assert len(server.paths) == 4


@pytest.mark.parametrize(
    "reason", ["leader changed", "no leader", "request timed out, possibly due to previous leader failure"]
)
def test_server_whose_storage_elects_a_leader(server: Server, monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    """It is asked again after a second, but for what must not be done twice."""
    pauses: list[float] = []
    monkeypatch.setattr("composeplat.cluster.api.time.sleep", pauses.append)
    ill = refusal(500, f"etcdserver: {reason}")
    server.first = [ill, ill, Answer(), ill]
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}

    with Api(server.access) as api:
        assert api.get("/a") == {}
        with pytest.raises(ApiError, match=f"^etcdserver: {reason}$"):
            api.create(manifest)

    assert pauses == [1.0, 1.0]


@pytest.mark.parametrize("after", ["", "soon"])
@pytest.mark.parametrize("status", [429, 503])
def test_busy_server_that_sends_no_delay(
    server: Server, monkeypatch: pytest.MonkeyPatch, after: str, status: int
) -> None:
    """It is asked again for what it only has to read, and for nothing else."""
    pauses: list[float] = []
    monkeypatch.setattr("composeplat.cluster.api.time.sleep", pauses.append)
    busy = Answer(b"<html>busy</html>", status, retry_after=after)
    server.first = [busy, busy, Answer(), busy, busy]

    with Api(server.access) as api:
        assert api.get("/a") == {}
        for change in (api.delete, lambda path: api.patch(path, {})):
            with pytest.raises(ApiError, match="busy"):
                change("/b")

    assert pauses == [1.0, 1.0]


@pytest.mark.parametrize("path", ["/api/v1/namespaces/a/pods/b:80/proxy/", "/apis/metrics.k8s.io/v1beta1"])
def test_busy_program_behind_the_server(server: Server, path: str) -> None:
    """What a pod or an API of others answers is an answer, and may be the same for good."""
    server.otherwise = refusal(503, "the server is currently unable to handle the request")

    with Api(server.access) as api, pytest.raises(ApiError, match="unable to handle"):
        api.get(path)

    assert server.paths == [path]


@pytest.mark.parametrize(
    ("answer", "seconds", "message"),
    [
        pytest.param(Answer(b"", 429, retry_after="7"), 28.0, "the API server answered 429", id="busy"),
        pytest.param(refusal(503, "ill"), 4.0, "ill", id="ill"),
        pytest.param(refusal(500, "etcdserver: no leader"), 9.0, "etcdserver: no leader", id="no-leader"),
    ],
)
def test_server_that_stays_busy(
    server: Server, monkeypatch: pytest.MonkeyPatch, answer: Answer, seconds: float, message: str
) -> None:
    """After half a minute a busy server is busy, or after five seconds; after ten, its storage gets no leader."""
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr("composeplat.cluster.api.time.sleep", sleep)
    monkeypatch.setattr("composeplat.cluster.api.time.monotonic", lambda: now)
    server.otherwise = answer

    with Api(server.access) as api, pytest.raises(ApiError, match=f"^{message}$"):
        api.get("/a")

    assert now == seconds


@pytest.mark.usefixtures("soon")
def test_after_a_failure(server: Server) -> None:
    """After a failure the next request begins again."""
    server.answers = {"/a": Answer(silent=True)}

    with Api(server.access) as api:
        with pytest.raises(ApiError):
            api.get("/a")
        assert api.get("/b") == {}


# certificates ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a server's certificate, a user's, and another authority's, each with its key."""
    folder = tmp_path_factory.mktemp("keys")
    for name, names in (
        ("server", "DNS:api.internal"),
        ("user", "DNS:user"),
        ("second", "DNS:second"),
        ("other", "DNS:other"),
    ):
        subprocess.run(
            [
                "openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                "-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName={names}",
                "-addext", "keyUsage=critical,digitalSignature,keyCertSign",
                "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt",
            ],
            check=True, capture_output=True,
        )  # fmt: skip
    return folder


@pytest.fixture
def secure(keys: Path) -> Iterator[Server]:
    """A server whose certificate is for api.internal, and which takes a user's certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keys / "server.crt", keys / "server.key")
    for name in ("user", "second"):
        context.load_verify_locations(keys / f"{name}.crt")
    context.verify_mode = ssl.CERT_OPTIONAL
    with Server(tls=context) as server:
        yield server


@pytest.mark.parametrize("form", [pytest.param("file", id="by-file"), pytest.param("data", id="as-data")])
def test_authority(secure: Server, keys: Path, form: str) -> None:
    """A server is trusted whose certificate the authority signed, for the name that is reported."""
    path = keys / "server.crt"
    more: dict[str, Any] = {"authority": str(path)} if form == "file" else {"authority_data": path.read_text()}

    with Api(replace(secure.access, server_name="api.internal", **more)) as api:
        api.get("/version")

    assert secure.paths == ["/version"]


def test_unauthorized_with_tls(secure: Server, keys: Path) -> None:
    """Credentials that a server was sent and does not accept, which most often expired, have a fix of their own."""
    secure.otherwise = refusal(401, "Unauthorized")
    access = replace(secure.access, server_name="api.internal", authority=str(keys / "server.crt"))

    with Api(access) as api, pytest.raises(ApiError, match="does not accept the credentials") as caught:
        api.get("/version")

    assert caught.value.hint == "they may have expired: log in to the cluster again, or get a new kubeconfig"


def test_authority_as_data_beside_a_file(secure: Server, keys: Path, tmp_path: Path) -> None:
    """Data goes before a file, which may be another machine's."""
    text = (keys / "server.crt").read_text()
    access = replace(secure.access, server_name="api.internal", authority=str(tmp_path / "none"), authority_data=text)

    with Api(access) as api:
        api.get("/version")

    assert secure.paths == ["/version"]


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate without key identifiers, by an authority that another one has signed."""
    folder = tmp_path_factory.mktemp("chain")
    new_key = ("-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
    authority = "basicConstraints=critical,CA:TRUE\n"
    leaf = "subjectAltName=DNS:api.internal\nsubjectKeyIdentifier=none\nauthorityKeyIdentifier=none\n"
    for name, by, extensions in (("root", "root", authority), ("middle", "root", authority), ("leaf", "middle", leaf)):
        (folder / "extensions").write_text(extensions)
        signer = ["-signkey", "root.key"] if name == by else ["-CA", f"{by}.crt", "-CAkey", f"{by}.key"]
        request = [
            "openssl",
            "req",
            "-new",
            *new_key,
            "-subj",
            f"/CN={name}",
            "-keyout",
            f"{name}.key",
            "-out",
            "request",
        ]
        sign = ["openssl", "x509", "-req", "-in", "request", "-days", "2", "-extfile", "extensions", *signer]
        for command in (request, [*sign, "-set_serial", "7", "-out", f"{name}.crt"]):
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("is_strict", [pytest.param(False, id="python-3.12"), pytest.param(True, id="python-3.13")])
def test_certificate_that_kubectl_accepts(chain: Path, monkeypatch: pytest.MonkeyPatch, *, is_strict: bool) -> None:
    """Kubernetes' clients want no key identifiers, and trust an authority that another one has signed."""
    make = ssl.create_default_context

    def make_as_version(**more: Any) -> ssl.SSLContext:
        made = make(**more)
        made.verify_flags |= ssl.VERIFY_X509_STRICT if is_strict else ssl.VerifyFlags(0)
        return made

    monkeypatch.setattr("ssl.create_default_context", make_as_version)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain / "leaf.crt", chain / "leaf.key")
    with Server(tls=context) as server:
        trusting = replace(server.access, server_name="api.internal", authority=str(chain / "middle.crt"))
        with Api(trusting) as api:
            api.get("/version")
        other = replace(trusting, authority=str(chain / "leaf.key"), authority_data=(chain / "root.crt").read_text())
        with (
            Api(other) as api,
            pytest.raises(ApiError, match="not accepted: unable to get local issuer"),
        ):
            api.get("/version")

    assert server.paths == ["/version"]


def test_untrusted(secure: Server, keys: Path) -> None:
    """A server whose certificate another authority signed is not asked."""
    access = replace(secure.access, server_name="api.internal", authority=str(keys / "other.crt"))

    with (
        Api(access) as api,
        pytest.raises(ApiError, match=r"not accepted: self-signed certificate$") as caught,
    ):
        api.get("/version")

    assert (caught.value.status, caught.value.exit_code, secure.paths) == (0, 4, [])
    assert "'certificate-authority-data' in the kubeconfig" in caught.value.hint


def test_certificate_for_another_name(secure: Server, keys: Path) -> None:
    """A server whose certificate is for another name than its address is not asked."""
    access = replace(secure.access, authority=str(keys / "server.crt"))

    with Api(access) as api, pytest.raises(ApiError, match=r": certificate is not valid for '127.0.0.1'$") as caught:
        api.get("/version")

    assert secure.paths == []
    assert "set 'tls-server-name' in the kubeconfig" in caught.value.hint


def test_expired_certificate(tmp_path: Path) -> None:
    """The message says so, and the fix names the clock too."""
    for command in (
        "ecparam -genkey -name prime256v1 -noout -out key",
        "req -new -key key -subj /CN=server -out request",
        "x509 -req -in request -signkey key -days -1 -out crt",
    ):
        subprocess.run(["openssl", *command.split()], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    with Server(tls=context) as server:
        access = replace(server.access, server_name="server", authority=str(tmp_path / "crt"))
        with Api(access) as api, pytest.raises(ApiError, match=r"not accepted: certificate has expired$") as caught:
            api.get("/version")

    assert caught.value.hint == "renew the certificate of the API server, or check the clock of this machine"


def test_https_to_a_server_without_tls(server: Server) -> None:
    access = Access(host="127.0.0.1", port=server.port)
    with Api(access) as api, pytest.raises(ApiError, match=r"reached: it does not answer with TLS$") as caught:
        api.get("/version")

    assert caught.value.hint == "check 'server' in the kubeconfig: that of a server without TLS begins with http://"


@pytest.mark.parametrize("name", [pytest.param("", id="address"), pytest.param("elsewhere", id="another-name")])
def test_insecure(secure: Server, name: str) -> None:
    """A server that is not to be verified is asked, anyone who signed its certificate and whatever its name."""
    with Api(replace(secure.access, verify=False, server_name=name)) as api:
        api.get("/version")

    assert secure.paths == ["/version"]


@pytest.mark.parametrize("key_form", [pytest.param("file", id="key-by-file"), pytest.param("data", id="key-as-data")])
@pytest.mark.parametrize("form", [pytest.param("file", id="by-file"), pytest.param("data", id="as-data")])
def test_client_certificate(secure: Server, keys: Path, form: str, key_form: str) -> None:
    """A user's certificate is shown to the server; it and its key may be in different forms."""
    certificate, key = keys / "user.crt", keys / "user.key"
    first: dict[str, Any] = (
        {"certificate": str(certificate)} if form == "file" else {"certificate_data": certificate.read_text()}
    )
    second: dict[str, Any] = {"key": str(key)} if key_form == "file" else {"key_data": key.read_text()}
    access = asked_by(replace(secure.access, verify=False), **first, **second)

    with Api(access) as api:
        api.get("/version")

    assert [request.who for request in secure.asked] == ["user"]


@pytest.mark.parametrize("which", ["authority", "certificate", "key"])
def test_certificate_that_is_not_there(secure: Server, keys: Path, tmp_path: Path, which: str) -> None:
    """A certificate that can't be read ends a request before it is made; the message names the file."""
    missing = str(tmp_path / "none")
    files = {"certificate": str(keys / "user.crt"), "key": str(keys / "user.key")}
    if which == "authority":
        access = replace(secure.access, authority=missing)
    else:
        access = asked_by(secure.access, **{**files, which: missing})

    with Api(access) as api, pytest.raises(ApiError) as caught:
        api.get("/version")

    output = f"can't read '{missing}', which the kubeconfig names: no such file or directory"
    assert (output, 4, []) == (str(caught.value), caught.value.exit_code, secure.paths)
    assert caught.value.hint == "copy the file there, or correct its path in the kubeconfig"


def test_certificate_that_is_none(secure: Server) -> None:
    """A certificate that can't be used is the kubeconfig's fault, and not the cluster's."""
    access = asked_by(secure.access, certificate_data="none", key_data="none")
    with Api(access) as api, pytest.raises(ApiError, match="can't use the certificates") as caught:
        api.get("/version")

    assert caught.value.hint == "get a new kubeconfig, or check the certificates and the key in it"


def test_key_that_is_encrypted(keys: Path, tmp_path: Path) -> None:
    """As for kubectl, it can't be used: the library would take its passphrase from what is piped into a command."""
    encrypt = ("openssl", "pkey", "-in", str(keys / "user.key"), "-aes256", "-passout", "pass:abcd")
    subprocess.run([*encrypt, "-out", str(tmp_path / "key")], check=True, capture_output=True)
    connect = f"""
from composeplat.cluster.access import Access
from composeplat.cluster.api import Api
from composeplat.cluster.credentials import Credential, static_credentials
credentials = static_credentials(Credential(certificate={str(keys / "user.crt")!r}, key={str(tmp_path / "key")!r}))
Api(Access(host="127.0.0.1", port=1, credentials=credentials)).get("/version")
"""
    done = subprocess.run(
        [sys.executable, "-c", connect],
        input="abcd\n",
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )

    assert "can't use the certificates that the kubeconfig names: the client's key is encrypted" in done.stderr
    assert "pass phrase" not in done.stderr


@pytest.fixture
def rotating(secure: Server, keys: Path, tmp_path: Path) -> tuple[Access, Path]:
    """A kubeconfig whose certificate and key are files, with those of the user in them."""
    put_certificate(tmp_path, keys, "user")
    files = {"client-certificate": "client.crt", "client-key": "client.key"}
    address = f"https://127.0.0.1:{secure.port}"
    access = found(tmp_path, cluster={"server": address, "insecure-skip-tls-verify": True}, user=files)
    return access, tmp_path


def put_certificate(folder: Path, keys: Path, name: str) -> None:
    for kind in ("crt", "key"):
        aside = folder / f"aside.{kind}"
        aside.write_bytes((keys / f"{name}.{kind}").read_bytes())
        aside.replace(folder / f"client.{kind}")


def test_certificate_that_is_rotated(secure: Server, keys: Path, rotating: tuple[Access, Path]) -> None:
    """A client's certificate was read once; a new one on disk is shown from the next request on."""
    access, folder = rotating
    with Api(access) as api:
        api.get("/version")
        api.get("/version")
        put_certificate(folder, keys, "second")
        api.get("/version")

    assert [request.who for request in secure.asked] == ["user", "user", "second"]
    assert len({request.connection for request in secure.asked}) == 2


def test_certificate_that_is_half_rotated(secure: Server, keys: Path, rotating: tuple[Access, Path]) -> None:
    """A certificate whose key does not exist yet leaves the one before."""
    access, folder = rotating
    with Api(access) as api:
        api.get("/version")
        (folder / "client.crt").write_bytes((keys / "second.crt").read_bytes())
        api.get("/version")
        put_certificate(folder, keys, "second")
        api.get("/version")

    assert [request.who for request in secure.asked] == ["user", "user", "second"]


def test_certificates_of_a_plugin(secure: Server, keys: Path, tmp_path: Path) -> None:
    """A plugin's certificate is renewed before it ends, as its token is."""
    for name in ("user", "second"):
        status = {
            "clientCertificateData": (keys / f"{name}.crt").read_text(),
            "clientKeyData": (keys / f"{name}.key").read_text(),
            "expirationTimestamp": "2020-01-01T00:00:00Z",
        }
        (tmp_path / f"{name}.json").write_text(json.dumps({"status": status}))
    command = program(tmp_path / "give", f"cd '{tmp_path}'; cat user.json; mv -f second.json user.json 2>&- || true")
    address = f"https://127.0.0.1:{secure.port}"
    access = found(tmp_path, cluster={"server": address, "insecure-skip-tls-verify": True}, user=plugin(command))
    with Api(access) as api:
        api.get("/version")
        time.sleep(1.1)
        api.get("/version")

    assert [request.who for request in secure.asked] == ["user", "second"]
