"""The settings that the local cluster runs with, for the commands that come after its start.

Owns their file, which ends with the run, and the comparison with the settings that another start asks for.
Must not know the ports: they outlive a run.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from composeplat.diagnostics import ComposeplatError
from composeplat.local.layout import IMAGE_CACHE_BYTES, OWN_NETWORK, Layout
from composeplat.system.atomic import write_private
from composeplat.system.records import record


@record(kw_only=True)
class Settings:
    build_network: str = OWN_NETWORK
    egress: bool = True
    image_cache: int = IMAGE_CACHE_BYTES
    disk_limit: int = 0


def note_settings(layout: Layout) -> None:
    settings = Settings(
        build_network=layout.build_network,
        egress=layout.egress,
        image_cache=layout.image_cache or IMAGE_CACHE_BYTES,
        disk_limit=layout.disk_limit,
    )
    write_private(layout.settings_file, json.dumps(asdict(settings)))


def read_settings(layout: Layout) -> Settings:
    """Return the settings of the running cluster; the usual ones if no cluster runs, or the file can't be read."""
    try:
        return Settings(**json.loads(layout.settings_file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return Settings()


def check_same_settings(layout: Layout, title: str) -> None:
    """Raise an error if the running cluster has other settings; a limit that is not given may be any.

    The machine's network is given when it is asked for, and no longer than that.
    """
    running = read_settings(layout)
    if (layout.build_network, layout.egress) != (running.build_network, running.egress):
        raise ComposeplatError(
            f"{title} is running with another network for builds or pods", "stop it, then start it with this"
        )
    for option, limit, present in (
        ("--image-cache", layout.image_cache, running.image_cache),
        ("--disk-limit", layout.disk_limit, running.disk_limit),
    ):
        if limit not in (0, present):
            raise ComposeplatError(f"{title} is running with another {option}", "stop it, then start it with this")
