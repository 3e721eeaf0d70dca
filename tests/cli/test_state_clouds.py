"""States in the storage of Google and Azure: what is wrong with a login or a place, and that no secret shows.

The servers are for ``make endurance`` alone; without them, only what Pulumi says before it asks one is tried.
"""

from __future__ import annotations

import pytest

from tests.cli.test_state import AGAIN, HIDDEN, NAME, NAMESPACE, NOWHERE, Machine, check_a_halted_server, files, machine
from tests.cloud_servers import Azure, Google, azure, google
from tests.conftest import for_endurance
from tests.state_servers import PASSWORD, StateServer, lock_of_another

__all__ = ["azure", "files", "google", "machine"]
pytestmark = pytest.mark.timeout(300)

SIGNATURE = "a+signature/that-nobody-may-read"
AZURE = {"AZURE_STORAGE_ACCOUNT": "platform"}
_NO_LOGIN = "no login for the state backend was found"
_UNREADABLE = "the login for the state backend can't be read: "
_NO_SERVER = (
    f"the state backend can't be reached: dial tcp {NOWHERE}: connect: connection refused",
    f"check that it runs, and PULUMI_BACKEND_URL; {AGAIN}",
)
UNUSABLE = {
    "no-login-google": (
        "gs://state", {}, _NO_LOGIN,
        "gcloud auth application-default login; or set GOOGLE_APPLICATION_CREDENTIALS to the path of a key file",
    ),
    "a-path-as-the-login": (
        "gs://state", {"GOOGLE_CREDENTIALS": "/home/ann/key.json"},
        _UNREADABLE + "GOOGLE_CREDENTIALS is not the JSON of a key file",
        "set it to the content of the file, not to its path",
    ),
    "no-login-azure": (
        "azblob://state", AZURE, _NO_LOGIN, "az login; or set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN",
    ),
    "no-account": (
        "azblob://state", {}, "the storage account of the state backend is not known",
        "set AZURE_STORAGE_ACCOUNT, or add ?storage_account=NAME to PULUMI_BACKEND_URL",
    ),
    "an-account-key-that-is-none": (
        "azblob://state", {**AZURE, "AZURE_STORAGE_KEY": "%"},
        _UNREADABLE + "AZURE_STORAGE_KEY is not base64", "az storage account keys list --account-name NAME",
    ),
}  # fmt: skip
#: Messages of servers, with a part of their URL or their variables.
REFUSED = {
    "no-bucket": (
        Google, "gs://nothing", {}, "the bucket of the state does not exist",
        "create it, or correct PULUMI_BACKEND_URL",
    ),
    "no-container": (
        Azure, "azblob://nothing", {}, "the storage container of the state does not exist",
        "create it: az storage container create; or correct PULUMI_BACKEND_URL",
    ),
    "wrong-key": (
        Azure, "azblob://state", {"AZURE_STORAGE_KEY": "bm90LXRoZS1rZXk="},
        "the state backend refused the login: Server failed to authenticate the request",
        "correct AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or log in again: az login",
    ),
}  # fmt: skip


@pytest.fixture
def server(request: pytest.FixtureRequest) -> StateServer:
    found: StateServer = request.getfixturevalue(request.param)
    return found


def logs(machine: Machine) -> str:
    return "".join(path.read_text() for path in (machine.data / "logs").iterdir())


@pytest.mark.parametrize("case", UNUSABLE)
def test_a_login_that_can_not_be_used(machine: Machine, case: str) -> None:
    """What is missing or wrong is one message with a hint for that cloud."""
    url, variables, message, hint = UNUSABLE[case]
    shown = machine.state("show", PULUMI_BACKEND_URL=url, **variables)

    assert shown.status == 4
    assert shown.stderr.startswith(f"error: {message}\n  hint: {hint}\n")


@pytest.mark.parametrize(
    "login",
    [
        {**AZURE, "AZURE_STORAGE_SAS_TOKEN": "sv=2025-05-05&sp=rwdl&sig=a%2Bsignature%2Fthat-nobody-may-read"},
        *for_endurance(
            {**AZURE, "AZURE_STORAGE_SAS_TOKEN": f"sig={SIGNATURE}&sv=2025-05-05"},
            {**AZURE, "AZURE_STORAGE_CONNECTION_STRING": (
                f"BlobEndpoint=http://{NOWHERE}/;SharedAccessSignature=sv=2025-05-05&sig={SIGNATURE}"
            )},
        ),
    ],
)  # fmt: skip
def test_a_signature_in_a_url(machine: Machine, login: dict[str, str]) -> None:
    """Azure's signature is a parameter of each request's URL, which its errors quote: no message and no log has it."""
    url = f"azblob://state?protocol=http&domain={NOWHERE}&localemu=true"
    machine.variables = {"PULUMI_BACKEND_URL": url, **login}
    shown = machine.state("show", "--debug")

    message, hint = _NO_SERVER
    assert f"error: {message}\n  hint: {hint}\n" in shown.stderr
    assert shown.status == 4
    assert "that-nobody-may-read" not in shown.stdout + shown.stderr + logs(machine)


@pytest.mark.endurance
@pytest.mark.parametrize("case", REFUSED)
def test_a_place_that_can_not_be_used(machine: Machine, case: str, google: Google, azure: Azure) -> None:
    """A missing place and a wrong login are one message with a hint."""
    kind, url, variables, message, hint = REFUSED[case]
    server = google if kind is Google else azure
    _, mark, query = server.url.partition("?")
    machine.variables = {**server.variables, "PULUMI_BACKEND_URL": url + mark + query, **variables}
    shown = machine.state("show", "--debug")

    assert f"error: {message}\n  hint: {hint}\n" in shown.stderr
    assert shown.status == 4


@pytest.mark.endurance
def test_move_from_cloud_to_cloud(machine: Machine, files: str, google: Google, azure: Azure) -> None:
    """A state moves from files to Google, to Azure and back, with its secrets encrypted everywhere."""
    team = {"PULUMI_CONFIG_PASSPHRASE": "the team's"}
    machine.variables = {**google.variables, **azure.variables}
    machine.fill(files)
    ours = machine.plain(files)

    for source, target in ((files, google.url), (google.url, azure.url), (azure.url, files)):
        machine.state("move", source, target, "--yes", **team).assert_success()
        assert machine.plain(source, "the team's") is None
        assert machine.plain(target, "the team's") == ours
    assert not [server for server in (google, azure) if HIDDEN.encode() in server.stored()]
    assert PASSWORD not in logs(machine)


@pytest.mark.endurance
@pytest.mark.parametrize("server", ["google", "azure"], indirect=True)
def test_the_lock_of_another_machine(machine: Machine, server: StateServer) -> None:
    """The holder of a lock is named, and the lock is removed when the user says so."""
    machine.variables = {**server.variables, "PULUMI_BACKEND_URL": server.url}
    machine.fill(server.url)
    server.put(*lock_of_another(f"{NAME}/{NAMESPACE}"))
    changed = machine.state("passphrase")
    removed = machine.state("unlock", "--yes").assert_success()
    machine.state("passphrase").assert_success()

    assert changed.status == 1
    assert "error: the stack is locked by ann@desk, process 4711" in changed.stderr
    assert "locked by ann@desk, process 4711" in removed.stderr
    machine.store(server.url).remove()


@pytest.mark.endurance
@pytest.mark.parametrize("kind", [Google, Azure])
def test_a_server_that_is_halted(machine: Machine, kind: type[StateServer]) -> None:
    """A server that accepts connections and answers nothing ends a command after half a minute."""
    check_a_halted_server(machine, kind)
