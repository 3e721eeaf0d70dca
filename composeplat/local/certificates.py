"""The local cluster's certificates and tokens, made once with openssl and kept.

Nothing here leaves the machine: the authority signs for this cluster and for endpoints below ``localhost`` alone.
They are valid from a fixed day in the past, as a machine's clock may be ahead when they are made, and is then set back.
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from composeplat.diagnostics import MissingPiece
from composeplat.local import etcd, metrics
from composeplat.local.layout import API_SERVICE, CLUSTER_DOMAIN, NODE, NODE_ADDRESS, Layout
from composeplat.system.atomic import write_private

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_REQUEST = ("req", "-new", "-config", "config", *_NEW_KEY, "-out", "request")
_VALIDITY = ("-startdate", "20200101000000Z", "-days", "3650")
_EXTENSIONS = ("-extfile", "extensions", "-extensions", "added")
_SIGN = ("ca", "-batch", "-notext", "-config", "config", "-in", "request", *_VALIDITY, *_EXTENSIONS)
#: Of openssl, whose ``req -x509`` can't choose the first day; it keeps notes of what it signs in its folder.
_CONFIG = """\
[ca]
default_ca = own
[own]
database = index
new_certs_dir = .
rand_serial = yes
unique_subject = no
default_md = sha256
preserve = yes
policy = any
[any]
commonName = supplied
organizationName = optional
[req]
distinguished_name = name
[name]
"""
_API_NAMES = (
    "DNS:localhost",
    "DNS:kubernetes",
    "DNS:kubernetes.default",
    "DNS:kubernetes.default.svc",
    f"DNS:kubernetes.default.svc.{CLUSTER_DOMAIN}",
    "IP:127.0.0.1",
    f"IP:{API_SERVICE}",
    f"IP:{NODE_ADDRESS}",
)


def make_certificates(layout: Layout, environment: Mapping[str, str]) -> None:
    """Make what is not there yet; a half-made file is made again, as each is put in place whole."""
    layout.keys.mkdir(parents=True, exist_ok=True)
    layout.keys.chmod(0o700)
    openssl = shutil.which("openssl", path=environment.get("PATH"))
    if openssl is None:
        raise MissingPiece("openssl is needed to make the local cluster's certificates", "install the package openssl")
    folder = _KeyFolder(layout.keys, openssl, environment)
    folder.make_authority("ca", "local cluster")
    folder.make_certificate("api", "/CN=kube-apiserver", "serverAuth", ",".join(_API_NAMES))
    folder.make_certificate("api-to-kubelet", "/O=system:masters/CN=api-to-kubelet", "clientAuth")
    folder.make_authority(etcd.AUTHORITY, "local cluster's etcd")
    # It asks itself, too.
    folder.make_certificate(
        etcd.SERVER, "/CN=etcd", "serverAuth,clientAuth", "DNS:localhost,IP:127.0.0.1", by=etcd.AUTHORITY
    )
    folder.make_certificate(etcd.CLIENT, "/CN=kube-apiserver", "clientAuth", by=etcd.AUTHORITY)
    folder.make_authority(metrics.AUTHORITY, "local cluster's front proxy")
    folder.make_certificate(metrics.PROXY, f"/CN={metrics.PROXY_USER}", "clientAuth", by=metrics.AUTHORITY)
    folder.make_certificate(metrics.SERVER, f"/CN={metrics.METRICS_SERVER}", "serverAuth", f"DNS:{metrics.HOST}")
    folder.make_certificate(metrics.KUBELET, "/CN=kubelet", "serverAuth", f"DNS:{NODE},IP:{NODE_ADDRESS}")
    folder.make_key("accounts")
    token = layout.keys / "token"
    if not token.exists():
        write_private(token, secrets.token_hex(24))
    write_private(layout.keys / "tokens.csv", f'{token.read_text().strip()},admin,admin,"system:masters"\n')
    layout.ingress.mkdir(parents=True, exist_ok=True)
    for name in ("ca.crt", "ca.key"):
        write_private(layout.ingress / name, (layout.keys / name).read_text())


class _KeyFolder:
    def __init__(self, folder: Path, openssl: str, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.openssl = openssl
        self.environment = environment

    def make_authority(self, name: str, subject: str) -> None:
        extensions = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign"]
        self._request(name, f"/CN={subject}", extensions, "-selfsign", "-keyfile", f"{self.folder / name}.key.new")

    def make_certificate(self, name: str, subject: str, usage: str, names: str = "", by: str = "ca") -> None:
        extensions = ["basicConstraints=critical,CA:FALSE", f"extendedKeyUsage={usage}"]
        if names:
            extensions.append(f"subjectAltName={names}")
        authority = ("-cert", f"{self.folder / by}.crt", "-keyfile", f"{self.folder / by}.key")
        self._request(name, subject, extensions, *authority)

    def _request(self, name: str, subject: str, extensions: list[str], *authority: str) -> None:
        """Make a key and its certificate, unless both exist."""
        certificate, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        if certificate.exists() and key.exists():
            return
        with tempfile.TemporaryDirectory(dir=self.folder) as notes:
            texts = {"config": _CONFIG, "index": "", "extensions": "\n".join(["[added]", *extensions, ""])}
            for file, text in texts.items():
                write_private(Path(notes) / file, text)
            self._run(*_REQUEST, "-subj", subject, "-keyout", f"{key}.new", folder=notes)
            self._run(*_SIGN, *authority, "-out", f"{certificate}.new", folder=notes)
        self._place(key, certificate)

    def make_key(self, name: str) -> None:
        key = self.folder / f"{name}.key"
        if not key.exists():
            self._run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{key}.new")
            self._place(key)

    def _place(self, *paths: Path) -> None:
        for path in paths:
            staged = path.with_name(f"{path.name}.new")
            staged.chmod(0o600)
            staged.replace(path)

    def _run(self, *args: str, folder: str | None = None) -> None:
        command = [self.openssl, *args]
        done = subprocess.run(
            command, cwd=folder, env=dict(self.environment), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise MissingPiece(f"openssl could not make a certificate: {done.stderr.strip()[-300:]}")
