"""A deployed environment as a folder of plain Pulumi: its project, its configuration and a program of five lines.

Pure: texts by file name, and the variables that plain Pulumi is to be run with.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from composeplat import __version__
from composeplat.compose.load import Loaded
from composeplat.compose.request import Request
from composeplat.compose.settings import Settings

PROGRAM = '''\
"""A Compose file as a Pulumi program."""

from pathlib import Path

from composeplat.components.program import declare_configured

declare_configured(Path(__file__).parent)
'''


def ejected_files(
    request: Request, loaded: Loaded, folder: Path, *, definition: list[str], builder: str, cluster: str, salt: str
) -> dict[str, str]:
    settings = loaded.settings
    project = {
        "name": settings.environment,
        "description": f"The Compose environment {settings.environment}.",
        "runtime": "python",
    }
    config = _configuration(settings, builder, cluster)
    if loaded.root.allow_outside:
        config["composeplat:allowOutside"] = True
    config["composeplat:files"] = [_relative(path, folder) for path in definition]
    if request.env_files:
        config["composeplat:envFiles"] = [_relative(str(request.folder / one), folder) for one in request.env_files]
    stack = {**({"encryptionsalt": salt} if salt else {}), "config": config}
    return {
        "Pulumi.yaml": _yaml(project),
        f"Pulumi.{settings.namespace}.yaml": _yaml(stack),
        "__main__.py": PROGRAM,
        "requirements.txt": f"composeplat=={__version__}\n",
    }


def _configuration(settings: Settings, builder: str, cluster: str) -> dict[str, object]:
    said = {
        "domain": settings.domain, "registry": settings.registry, "ingressClass": settings.ingress_class,
        "gateway": settings.gateway, "tlsSecret": settings.tls_secret, "tlsIssuer": settings.tls_issuer,
        "builder": builder, "cluster": cluster, "pullSecret": settings.pull_secret,
        "podSecurity": settings.pod_security,
    }  # fmt: skip
    return {f"composeplat:{key}": value for key, value in said.items() if value}


def _relative(path: str, folder: Path) -> str:
    return os.path.relpath(path, folder)


def _yaml(value: object) -> str:
    """JSON is YAML, and needs no writer."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
