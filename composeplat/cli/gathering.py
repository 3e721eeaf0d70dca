"""Gathering the facts for a check: the definition, what registries say about its images, and what a cluster offers.

Owns which of them are asked. None of them has to answer: what could not be asked is a note.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from composeplat import progress
from composeplat.cli.hidden_values import hide_secrets_of
from composeplat.cli.operations import ClusterAnswer, ask_cluster, for_target, load_plan
from composeplat.cli.selection import Choice, request_for
from composeplat.cluster.api import Api
from composeplat.cluster.capabilities import Capabilities, read_capabilities
from composeplat.compatibility.check import make_check
from composeplat.compatibility.findings import Check
from composeplat.compatibility.image_rules import ImageAnswers
from composeplat.compose.init_jobs import without_init_jobs
from composeplat.compose.load import Loaded
from composeplat.compose.load.base_images import check_base_images
from composeplat.compose.load.build_inputs import check_builds
from composeplat.compose.load.line_ends import check_built_scripts
from composeplat.compose.load.variables import namespace_of
from composeplat.compose.options import UNKNOWN_DOMAIN, Request
from composeplat.compose.origins import Checker
from composeplat.diagnostics import ComposeplatError, MissingPiece
from composeplat.engine.target import Target, find_target
from composeplat.plan import Plan
from composeplat.registry.image_config import read_images
from composeplat.system.records import record

_IMAGES_TIMEOUT_S = 5.0
#: Any other separator may be in the name of a folder.
_IN_NO_PATH = "\0"
_ON_DISK: Mapping[str, bytes] = {}


@record
class Gathered:
    loaded: Loaded
    plan: Plan
    images: ImageAnswers
    check: Check
    is_offline: bool = False


def gather(
    choice: Choice,
    *,
    offline: bool = False,
    asks_cluster: bool = True,
    images: ImageAnswers | None = None,
    files: tuple[str, ...] = (),
    contents: Mapping[str, bytes] = _ON_DISK,
) -> Gathered:
    """Read the definition, and ask the registries and the cluster; nothing is changed.

    With ``images``, these are the answers of registries. Numbers of users are asked for nevertheless: they belong to
    the definition.
    With ``files``, these are read in place of those of the options or of ``COMPOSE_FILE``; ``contents`` has those that
    are not on the disk.
    """
    request = replace(request_for(choice), contents=contents)
    if request.files and files:
        request = replace(request, files=files)
    elif files:
        named = {"COMPOSE_FILE": _IN_NO_PATH.join(files), "COMPOSE_PATH_SEPARATOR": _IN_NO_PATH}
        request = replace(request, shell={**request.shell, **named})
    target, note = _find_cluster(choice) if asks_cluster and not offline else (None, "")
    answer = ClusterAnswer()
    offered = Capabilities(notes=(note,) if note else ())
    if target is None:
        request = replace(request, default_domain=request.default_domain or UNKNOWN_DOMAIN)
    else:
        request = for_target(request, target)
        answer, offered = _ask_cluster(request, target)
    loaded, plan = load_plan(answer.complete(request), offline=offline)
    hide_secrets_of(loaded, plan, answer.variables, target)
    services = without_init_jobs(loaded.project).services.values()
    builds = {service.name: service.build for service in services if service.build}
    check_builds(builds, loaded.origins, loaded.report)
    checker = Checker(loaded.project, loaded.origins, loaded.report)
    check_base_images(checker, loaded.root)
    check_built_scripts(checker, loaded.root)
    if offline:
        offered = replace(offered, notes=("images and the cluster were not asked: --offline",))
    if images is None:
        images = {} if offline else _ask_registries(loaded)
    return Gathered(loaded, plan, images, make_check(loaded, plan, images, offered), is_offline=offline)


def _find_cluster(choice: Choice) -> tuple[Target | None, str]:
    try:
        return find_target(os.environ, kubeconfig=choice.kubeconfig, context=choice.context, local=choice.local), ""
    except MissingPiece as error:
        return None, f"no cluster was asked: {error}"


def _ask_cluster(request: Request, target: Target) -> tuple[ClusterAnswer, Capabilities]:
    with progress.step("asking the cluster", is_transient=True):
        answer = ask_cluster(request, target)
        if answer.error is not None:
            return answer, Capabilities(notes=(f"no cluster was asked: {answer.error}",))
        try:
            with Api(target.access) as api:
                return answer, read_capabilities(api, namespace_of(request))
        except ComposeplatError as error:
            return ClusterAnswer(), Capabilities(notes=(f"no cluster was asked: {error}",))


def _ask_registries(loaded: Loaded) -> ImageAnswers:
    """Read the images of services that are not built, with the timeout for all of them together."""
    services = loaded.project.services.values()
    wanted = dict.fromkeys(service.image for service in services if service.is_pulled)
    with progress.step("reading the images", is_transient=True):
        return read_images(wanted, os.environ, loaded.settings.logins, timeout=_IMAGES_TIMEOUT_S)
