"""Servers with the protocols of the clouds' storage: Google's as fake-gcs-server has it, and Azure's as Azurite has it.

Owns how each is started, and how an object gets there without Pulumi. Both are for ``make endurance`` alone: they are
built, or downloaded, when the first test needs them.
"""

from __future__ import annotations

import base64
import hmac
import http.client
import os
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Self
from urllib.parse import quote, urlencode

import pytest

from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import Tool
from tests.conftest import ROOT
from tests.node_packages import node_modules
from tests.state_servers import PASSWORD, StateServer, ask

FAKE_GCS_SERVER = Tool(
    name="fake-gcs-server",
    version="1.56.1",
    module=ROOT / "tests" / "fake_gcs_server",
    package="github.com/fsouza/fake-gcs-server",
    build_minutes=2,
)
_STORAGE_VERSION = "2025-05-05"
"""Of Azure's protocol."""


class Google(StateServer):
    """A server with the protocol of Google Cloud Storage. It accepts every login."""

    bucket = "state"

    @property
    def url(self) -> str:
        return f"gs://{self.bucket}"

    @property
    def variables(self) -> dict[str, str]:
        return {"STORAGE_EMULATOR_HOST": f"127.0.0.1:{self.port}", "GOOGLE_OAUTH_ACCESS_TOKEN": PASSWORD}

    def _launch(self) -> subprocess.Popen[bytes]:
        # A folder is a bucket.
        (self.folder / "data" / self.bucket).mkdir(parents=True, exist_ok=True)
        program, address = Toolchain(os.environ).need(FAKE_GCS_SERVER).path, f"127.0.0.1:{self.port}"
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [program, "-scheme", "http", "-host", "127.0.0.1", "-port", str(self.port), "-public-host", address,
                 "-filesystem-root", self.folder / "data"],
                env={"PATH": os.defpath}, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def put(self, key: str, content: bytes) -> None:
        query = urlencode({"uploadType": "media", "name": key})
        ask(self.port, "POST", f"/upload/storage/v1/b/{self.bucket}/o?{query}", content)


class Azure(StateServer):
    """A server with the protocol of Azure's Blob Storage."""

    account, container = "platform", "state"
    key = base64.b64encode(PASSWORD.encode() * 4).decode()

    @property
    def url(self) -> str:
        return self.url_of(self.container)

    def url_of(self, container: str) -> str:
        return f"azblob://{container}?protocol=http&domain=127.0.0.1:{self.port}"

    @property
    def variables(self) -> dict[str, str]:
        return {"AZURE_STORAGE_ACCOUNT": self.account, "AZURE_STORAGE_KEY": self.key}

    def _launch(self) -> subprocess.Popen[bytes]:
        program = node_modules(ROOT / "tests" / "azurite") / "azurite" / "dist" / "src" / "blob" / "main.js"
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                ["node", program, "--blobHost", "127.0.0.1", "--blobPort", str(self.port), "--silent",
                 "--skipApiVersionCheck", "--disableTelemetry", "--location", self.folder / "data"],
                env={**os.environ, "AZURITE_ACCOUNTS": f"{self.account}:{self.key}"},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def start(self) -> Self:
        super().start()
        self._request("", {"restype": "container"}, accepted=(http.client.CREATED, http.client.CONFLICT))
        return self

    def put(self, key: str, content: bytes) -> None:
        self._request(f"/{key}", {}, content, {"x-ms-blob-type": "BlockBlob"})

    def _request(
        self, path: str, query: Mapping[str, str], content: bytes = b"", headers: Mapping[str, str] | None = None,
        accepted: tuple[int, ...] = (http.client.CREATED,),
    ) -> None:  # fmt: skip
        """Put something into the container, with a signature by the account's key."""
        now = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        signed = {**(headers or {}), "x-ms-date": now, "x-ms-version": _STORAGE_VERSION}
        lines = "".join(f"{name}:{value}\n" for name, value in sorted(signed.items()))
        place = f"/{self.account}/{self.container}{quote(path)}"
        resource = f"/{self.account}{place}" + "".join(f"\n{name}:{value}" for name, value in query.items())
        text = f"PUT\n\n\n{len(content) or ''}\n\n\n\n\n\n\n\n\n{lines}{resource}"
        signature = base64.b64encode(hmac.digest(base64.b64decode(self.key), text.encode(), "sha256")).decode()
        login = {"Authorization": f"SharedKey {self.account}:{signature}"}
        target = f"{place}?{urlencode(query)}" if query else place
        ask(self.port, "PUT", target, content, {**signed, **login}, accepted)


@pytest.fixture(scope="module")
def google() -> Iterator[Google]:
    with Google() as server:
        yield server


@pytest.fixture(scope="module")
def azure() -> Iterator[Azure]:
    with Azure() as server:
        yield server
