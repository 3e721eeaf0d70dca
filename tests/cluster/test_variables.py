"""Variables that are kept in a namespace: the form of their Secret, and what happens when several change it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from composeplat.cluster.api import Api, ApiError
from composeplat.cluster.variables import StoredVariables, list_variables, read_variables, set_variable, unset_variables
from tests.cluster.objects import NAMESPACE, Answer, Server, refusal

PATH = f"/api/v1/namespaces/{NAMESPACE}/secrets/platform-variables"
SHOWN = "dev.platform.com/shown-variables"
MISSING = refusal(404, "not found")


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def secret(shown: str | None = "A", **data: str) -> Answer:
    annotations = {} if shown is None else {"annotations": {SHOWN: shown}}
    return Answer(json.dumps({"metadata": {"resourceVersion": "7", **annotations}, "data": data}).encode())


@pytest.fixture
def api(server: Server) -> Iterator[Api]:
    with Api(server.access) as api:
        yield api


def sent(server: Server) -> list[tuple[str, str, Any]]:
    return [
        (request.method, request.path.partition("?")[0], json.loads(request.body))
        for request in server.asked
        if request.body
    ]


def test_read(server: Server, api: Api) -> None:
    """One question gives all; what no annotation names is confidential, what is no text is no variable."""
    server.otherwise = secret("A,GONE", A=coded("1"), B=coded("zwei"), C=coded("ü"), BAD="gA==", WORSE="x")
    stored = read_variables(api, NAMESPACE)
    assert stored == StoredVariables({"A": "1", "B": "zwei", "C": "ü"}, frozenset({"A"}), frozenset({"BAD", "WORSE"}))
    assert stored.confidential == ("zwei", "ü")
    assert server.paths == [PATH]


def test_made_by_hand(server: Server, api: Api) -> None:
    """In a Secret without our annotation all is confidential."""
    server.otherwise = secret(None, A=coded("1"))
    assert read_variables(api, NAMESPACE) == StoredVariables({"A": "1"}, frozenset())


@pytest.mark.parametrize("status", [pytest.param(404, id="missing"), pytest.param(403, id="forbidden")])
def test_none(server: Server, api: Api, status: int) -> None:
    """Where there are none, or none may be read, there are none."""
    server.otherwise = refusal(status, "no")
    assert read_variables(api, NAMESPACE) == StoredVariables()


def test_a_failed_read_is_an_error(server: Server, api: Api) -> None:
    """A deploy without the variables would be another one."""
    server.otherwise = refusal(500, "etcd is ill")
    with pytest.raises(ApiError, match="etcd is ill"):
        read_variables(api, NAMESPACE)


def test_a_forbidden_request(server: Server, api: Api) -> None:
    """A request for Secrets is refused with a message."""
    server.otherwise = refusal(403, "secrets is forbidden")
    with pytest.raises(ApiError, match="secrets is forbidden"):
        list_variables(api, NAMESPACE)


def test_values_are_not_in_its_text() -> None:
    """A traceback with it shows nothing."""
    assert "hunter2" not in repr(StoredVariables({"A": "hunter2"}))


def test_the_first_variable(server: Server, api: Api) -> None:
    """Namespace and Secret are made where they are missing, with labels that name no environment."""
    server.answers = {PATH: MISSING}
    server.first = [MISSING, MISSING]
    set_variable(api, NAMESPACE, "A", "1", confidential=False)
    labels = {"app.kubernetes.io/managed-by": "composeplat"}
    metadata = {"name": "platform-variables", "namespace": NAMESPACE, "labels": labels, "annotations": {SHOWN: "A"}}
    assert sent(server) == [
        ("POST", "/api/v1/namespaces",
         {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}),
        ("POST", f"/api/v1/namespaces/{NAMESPACE}/secrets",
         {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": {"A": coded("1")}}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("act", "data", "shown"),
    [
        pytest.param(
            lambda api: set_variable(api, NAMESPACE, "B", "2", confidential=False), {"B": coded("2")}, "A,B", id="plain"
        ),
        pytest.param(
            lambda api: set_variable(api, NAMESPACE, "A", "2", confidential=True), {"A": coded("2")}, "", id="secret"
        ),
        pytest.param(lambda api: unset_variables(api, NAMESPACE, ["A"]), {"A": None}, "", id="unset"),
    ],
)
def test_a_change(
    server: Server, api: Api, act: Callable[[Api], None], data: dict[str, str | None], shown: str
) -> None:
    """It is of the version that was read, so that no change of another is lost."""
    server.otherwise = secret(A=coded("1"))
    act(api)
    change = {"metadata": {"resourceVersion": "7", "annotations": {SHOWN: shown}}, "data": data}
    assert sent(server) == [("PATCH", PATH, change)]


def test_a_namespace_that_another_run_creates(server: Server, api: Api) -> None:
    """The variable is stored in it."""
    server.answers = {PATH: MISSING, "/api/v1/namespaces": refusal(409, "namespaces already exists")}
    server.first = [MISSING, MISSING]
    set_variable(api, NAMESPACE, "A", "1", confidential=False)
    assert [path for _, path, _ in sent(server)] == ["/api/v1/namespaces", f"/api/v1/namespaces/{NAMESPACE}/secrets"]


def test_two_at_once(server: Server, api: Api) -> None:
    """The one that comes later begins again, with what the other has set."""
    server.first = [secret(A=coded("1")), refusal(409, "it was changed"), secret("A,C", A=coded("1"), C=coded("3"))]
    set_variable(api, NAMESPACE, "B", "2", confidential=False)
    assert [body["metadata"]["annotations"][SHOWN] for _, _, body in sent(server)] == ["A,B", "A,B,C"]


@pytest.mark.parametrize("before", [[], [secret(A=coded("1"))]], ids=["before it is read", "before it is changed"])
def test_a_secret_that_is_deleted_while_a_variable_is_removed(server: Server, api: Api, before: list[Answer]) -> None:
    """The variable is gone, and the Secret is not made again."""
    server.first = [*before, MISSING]
    server.otherwise = MISSING
    unset_variables(api, NAMESPACE, ["A"])
    assert [request.method for request in server.asked if request.method == "POST"] == []


def test_a_secret_that_is_deleted_while_a_variable_is_set(server: Server, api: Api) -> None:
    """It is made again, with the variable."""
    server.first = [secret(A=coded("1")), MISSING, MISSING]
    set_variable(api, NAMESPACE, "B", "2", confidential=False)
    method, path, body = sent(server)[-1]
    assert (method, path, body["data"]) == ("POST", f"/api/v1/namespaces/{NAMESPACE}/secrets", {"B": coded("2")})


def test_a_secret_that_always_changes(server: Server, api: Api) -> None:
    """It is not tried for ever."""
    server.answers = {PATH: secret(A=coded("1"))}
    server.first = [secret(A=coded("1")), refusal(409, "it was changed")] * 10
    with pytest.raises(ApiError, match="it was changed"):
        set_variable(api, NAMESPACE, "B", "2", confidential=False)
