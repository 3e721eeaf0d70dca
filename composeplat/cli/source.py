"""Where a definition comes from: the identity of its project, and who deploys it from which commit.

Owns reading the system for it: the user, the name of the machine and its id.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

from composeplat.compose.load.repository import Repository, find_repository
from composeplat.compose.project_id import Machine, project_id
from composeplat.engine.backend import find_data_folder
from composeplat.engine.deployer import Deployer, find_deployer
from composeplat.engine.provenance import Claim
from composeplat.system.machine import user_name
from composeplat.system.records import record


@record
class Source:
    folder: Path
    """With links resolved."""
    repository: Repository | None


def find_source(folder: Path) -> Source:
    real = Path(os.path.realpath(folder))
    return Source(real, find_repository(real))


def claim_of(source: Source, environment: Mapping[str, str], *, name_from_folder: bool) -> Claim:
    """Identify the project by its repository, else by this machine and its path."""
    repository = source.repository or Repository(source.folder)
    machine = Machine(id=find_data_folder(environment).machine_id(), host=socket.gethostname())
    project = project_id(source.folder, machine, work_tree=repository.work_tree, remote=repository.remote)
    return Claim(project=project, name_from_folder=name_from_folder)


def deployer_of(source: Source, environment: Mapping[str, str]) -> Deployer:
    work_tree = source.repository.work_tree if source.repository is not None else None
    return find_deployer(environment, work_tree, user_name(), socket.gethostname())
