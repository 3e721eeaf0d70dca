"""A credential plugin for tests: gives credentials that an API server takes for three seconds and no longer.

Run as ``python short_lived.py KEYS NAME UID KIND NOTES SAID``, with the folder of the cluster's keys, the name and
number of the service account ``default/NAME``, what is wanted (``token`` or ``certificate``), a file that notes each
run, and for how many seconds it says that they live.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

LIFE = 3
#: An API server takes a token for so long after its end: clocks differ.
_LEEWAY = 60
_ISSUER = "https://kubernetes.default.svc"
_SIZE = 32
_AUTHORITY = """
[ca]
default_ca = short
[short]
database = {folder}/index
new_certs_dir = {folder}
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
[any]
organizationName = supplied
commonName = supplied
"""


def make_token(keys: Path, name: str, uid: str, end: float) -> str:
    """A token of the service account, signed with the cluster's key."""
    claims = {
        "iss": _ISSUER, "aud": [_ISSUER], "sub": f"system:serviceaccount:default:{name}",
        "exp": int(end) - _LEEWAY, "iat": int(end) - 2 * _LEEWAY, "nbf": int(end) - 2 * _LEEWAY,
        "jti": str(time.time_ns()),
        "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": name, "uid": uid}},
    }  # fmt: skip
    text = f"{_encoded(json.dumps({'alg': 'ES256', 'typ': 'JWT'}).encode())}.{_encoded(json.dumps(claims).encode())}"
    signature = _openssl("dgst", "-sha256", "-sign", str(keys / "accounts.key"), given=text.encode())
    return f"{text}.{_encoded(_plain(signature))}"


def make_certificate(keys: Path, name: str, end: float) -> tuple[str, str]:
    """A certificate of the cluster's authority for an administrator, and its key."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "index").touch()
        (folder / "config").write_text(_AUTHORITY.format(folder=folder))
        _openssl(
            "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-subj", f"/O=system:masters/CN={name}", "-keyout", str(folder / "key"), "-out", str(folder / "request"),
        )  # fmt: skip
        _openssl(
            "ca", "-batch", "-notext", "-config", str(folder / "config"), "-in", str(folder / "request"),
            "-out", str(folder / "certificate"), "-cert", str(keys / "ca.crt"), "-keyfile", str(keys / "ca.key"),
            "-startdate", _moment(end - 600), "-enddate", _moment(end),
        )  # fmt: skip
        return (folder / "certificate").read_text(), (folder / "key").read_text()


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y%m%d%H%M%SZ}"


def _openssl(*args: str, given: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *args], input=given, capture_output=True, check=True).stdout


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _plain(signature: bytes) -> bytes:
    """The two numbers of a signature, which openssl gives as DER, one after the other."""
    first = signature[4 : 4 + signature[3]]
    second = signature[6 + signature[3] :]
    return b"".join(number.lstrip(b"\0").rjust(_SIZE, b"\0") for number in (first, second))


def main() -> None:
    keys, name, uid, kind, notes, stated_life = sys.argv[1:]
    end = time.time() + LIFE
    stated_end = datetime.fromtimestamp(int(time.time() + float(stated_life)), UTC)
    status: dict[str, str] = {"expirationTimestamp": stated_end.isoformat()}
    if kind == "token":
        status["token"] = make_token(Path(keys), name, uid, end)
    else:
        status["clientCertificateData"], status["clientKeyData"] = make_certificate(Path(keys), name, end)
    with open(notes, "a", encoding="utf-8") as stream:
        stream.write(f"{time.time()}\n")
    version = json.loads(os.environ["KUBERNETES_EXEC_INFO"])["apiVersion"]
    print(json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status}))


if __name__ == "__main__":
    main()
