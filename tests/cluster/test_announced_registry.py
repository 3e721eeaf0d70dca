"""The registry that a local cluster announces: what is read, and what is never taken."""

from __future__ import annotations

import pytest

from composeplat.cluster.announced_registry import is_near, parse_hosting

WITH_HELP = """\
# where images go
host: "localhost:5001"
hostFromContainerRuntime: "registry:5000"
hostFromClusterNetwork: "registry:5000"
help: "https://example.com/local-registry"
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (WITH_HELP, "localhost:5001"),
        ("host: localhost:5001", "localhost:5001"),
        ("host: '127.0.0.1:5001'  # ours\n", "127.0.0.1:5001"),
        ("host: k3d-registry.localhost:12345\n", "k3d-registry.localhost:12345"),
        ('host: "[::1]:5001"', "[::1]:5001"),
        ("host: registry.example.com:443", ""),
        ("host: 10.0.0.1:5000", ""),
        ("host: localhost", ""),
        ("host: localhost:5001/path", ""),
        ("host: localhost:5001\nhost: localhost:5002", ""),
        ("host: [localhost:5001]", ""),
        ("help: 'host: localhost:5001'", ""),
        ("host: evil.example.com:1 localhost:5001", ""),
        ("", ""),
        (None, ""),
        ({"host": "localhost:5001"}, ""),
    ],
)
def test_parse_hosting(text: object, expected: str) -> None:
    """Only a registry on this machine is taken; a text that says anything else names none."""
    assert parse_hosting(text) == expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("0.0.0.0", True),  # noqa: S104 -- as k3d writes it
        ("[::1]", True),
        ("192.168.49.2", True),
        ("kubernetes.docker.internal", True),
        ("localhost", True),
        ("8.8.8.8", False),
        ("api.example.com", False),
        ("localhost.example.com", False),
    ],
)
def test_is_near(host: str, *, expected: bool) -> None:
    """A cluster elsewhere is not asked: its answer would cost time, and count for nothing."""
    assert is_near(host) is expected
