"""Checks of the sizes that Kubernetes limits, and of host content.

Owns these limits. They are checked here because the API server would refuse an object only during a deploy.
"""

from __future__ import annotations

from collections.abc import Mapping

from composeplat.compose.model import Service
from composeplat.compose.origins import Checker, mount_path
from composeplat.diagnostics import PathKey
from composeplat.plan.images import carries_content_in_image, host_mounts, unmountable_file

_MAX_SECRET_BYTES = 1_000_000
_MAX_ANNOTATIONS_BYTES = 256 * 1024


def check_limits(checker: Checker, service: Service) -> None:
    path = ("services", service.name)
    size = sum(len(name) + len(value.encode()) for name, value in service.variables.items())
    if size > _MAX_SECRET_BYTES:
        message = f"is {size // 1000} kB in all; a Kubernetes Secret holds at most {_MAX_SECRET_BYTES // 1000} kB"
        checker.add("invalid-value", (*path, "environment"), message, "mount large values as files")
    check_annotations(checker, path, {**service.labels, **service.annotations})
    _report_host_content(checker, service)


def check_annotations(checker: Checker, path: PathKey, annotations: Mapping[str, str]) -> None:
    """Check the size of what becomes annotations of the object at a path."""
    size = sum(len(name) + len(value.encode()) for name, value in annotations.items())
    if size > _MAX_ANNOTATIONS_BYTES:
        most = _MAX_ANNOTATIONS_BYTES // 1024
        message = f"has labels and annotations of {-(-size // 1024)} KiB; Kubernetes allows {most} KiB"
        checker.add("invalid-value", path, message, "shorten them", at_key=True)


def _report_host_content(checker: Checker, service: Service) -> None:
    if carries_content_in_image(service):
        file = unmountable_file(service)
        why = f"with '{file}', which no pod can mount as it has a colon" if file else "too large for a Secret"
        message = f"has host content {why}: it goes into an image made from the service's own"
        checker.add("derived-image", ("services", service.name, "volumes"), message)
    mounts = host_mounts(service)
    for index, mount in enumerate(service.mounts):
        if mount in mounts and mount.read_only and mount.content is not None and mount.content.files == ():
            path = mount_path(service.name, index)
            is_covered = mount.content.has_hidden
            folder = "a folder whose entries are all covered by other mounts" if is_covered else "an empty folder"
            checker.add("not-deployed", path, f"is {folder}, and nothing is mounted")
