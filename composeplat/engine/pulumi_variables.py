"""The variables of Pulumi's process that are the same for each of its commands.

Owns which of the user's variables Pulumi gets, and in which form. Must not know a stack, a cluster or a backend.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from composeplat.engine.backend import DataFolder
from composeplat.engine.pulumi_flags import FLAG_PREFIX, PATH_PLUGINS

_PATHS = (
    "PULUMI_CONFIG_PASSPHRASE_FILE",
    "DOCKER_CONFIG",
    "BUILDX_CONFIG",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
)
#: Those of certificates and logins for backends and registries; a value that is no path of a file stays as it is.
_PATHS_OF_FILES = (
    "AWS_CA_BUNDLE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AZURE_CLIENT_CERTIFICATE_PATH",
    "AZURE_FEDERATED_TOKEN_FILE",
    "PGPASSFILE",
    "PGSSLCERT",
    "PGSSLKEY",
    "PGSSLROOTCERT",
    "SSL_CERT_FILE",
)
_NOT_PASSED = ("PULUMI_K8S_", FLAG_PREFIX)


def passed_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the user's variables for Pulumi, except flags of its commands and settings of the provider."""
    passed = {key: value for key, value in environment.items() if not key.startswith(_NOT_PASSED)}
    # Pulumi runs in another folder, so relative paths have to become absolute.
    passed.update({key: os.path.abspath(passed[key]) for key in _PATHS if passed.get(key)})
    passed.update({key: os.path.abspath(passed[key]) for key in _PATHS_OF_FILES if os.path.isfile(passed.get(key, ""))})
    return passed


def program_variables(program: Path, data_folder: DataFolder, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make Pulumi work as part of this program."""
    return {
        "PATH": f"{program.parent}{os.pathsep}{environment.get('PATH', '')}",
        "PULUMI_HOME": str(data_folder.pulumi),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        # A provider on PATH, of another version, would come before the one in Pulumi's home.
        PATH_PLUGINS: "true",
        "PULUMI_AUTOMATION_API": "true",
        # Without it there is no flag for a log of events.
        "PULUMI_DEBUG_COMMANDS": "true",
        # For a provenance that builds here don't have, git would be run in each build context, with the configuration
        # that is there: it may name programs, and a context may be a stranger's.
        "BUILDX_GIT_INFO": "false",
    }
