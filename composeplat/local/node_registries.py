"""Where the node pulls the images of a registry from, as containerd reads it: a file for each registry.

Pure. It is apart from the other files of containerd, as these files are the same for each of its versions.
"""

from __future__ import annotations

from pathlib import Path

from composeplat.local.layout import MIRROR_PORT, REGISTRY_PORT, Layout


def node_registries(layout: Layout) -> dict[Path, str]:
    """Return the files: path -> text. Every registry is reached through the mirror, but the cluster's own.

    Not by ``localhost``, which is ``::1`` first: there a pod with the node's network could listen.
    """
    mirror, own = f"http://127.0.0.1:{MIRROR_PORT}", f"http://127.0.0.1:{REGISTRY_PORT}"
    hosts = {
        "_default": _hosts(mirror),
        "docker.io": _hosts(mirror, first=own),
        # An image is pushed by the registry's port on this machine, and pulled by the port inside the cluster.
        f"localhost:{layout.host_ports.registry}": _hosts(own),
    }
    return {layout.etc / "hosts" / registry / "hosts.toml": text for registry, text in hosts.items()}


def _hosts(server: str, first: str = "") -> str:
    """Make one file; some versions of containerd read none without a table of hosts."""
    table = f'[host."{first}"]\n  capabilities = ["pull", "resolve"]' if first else "[host]"
    return f'server = "{server}"\n{table}\n'
