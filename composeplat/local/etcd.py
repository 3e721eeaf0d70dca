"""How etcd is run and reached, as arguments: over TLS, with the API server's certificate only.

Pure. It holds every Secret of the cluster, and on loopback any user of the machine could ask it otherwise.
"""

from __future__ import annotations

from composeplat.local.layout import Layout

#: The names of the certificates in the folder of keys.
AUTHORITY, SERVER, CLIENT = "etcd-ca", "etcd", "api-to-etcd"


def etcd_arguments(layout: Layout, *, client_port: int, peer_port: int) -> tuple[str, ...]:
    """The arguments of the one etcd of a cluster."""
    keys = layout.keys
    client, peer = (f"https://127.0.0.1:{port}" for port in (client_port, peer_port))
    tls = (
        f"cert-file={keys / SERVER}.crt",
        f"key-file={keys / SERVER}.key",
        "client-cert-auth",
        f"trusted-ca-file={keys / AUTHORITY}.crt",
    )
    return (
        f"--data-dir={layout.folder / 'etcd'}",
        "--name=local",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=local={peer}",
        *(f"--{flag}" for flag in tls),
        *(f"--peer-{flag}" for flag in tls),
        f"--quota-backend-bytes={layout.etcd_limit}",
        "--log-level=warn",
    )


def api_server_arguments(layout: Layout, *, client_port: int) -> tuple[str, ...]:
    """The arguments by which the API server reaches it."""
    keys = layout.keys
    return (
        f"--etcd-servers=https://127.0.0.1:{client_port}",
        f"--etcd-cafile={keys / AUTHORITY}.crt",
        f"--etcd-certfile={keys / CLIENT}.crt",
        f"--etcd-keyfile={keys / CLIENT}.key",
    )
