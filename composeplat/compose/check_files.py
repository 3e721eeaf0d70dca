"""Rules for configs and secrets: references, paths in containers, and owners that files in a pod can't have.

Owns these rules, which only full mode has something for.
Must not read nodes, as :mod:`composeplat.compose.check`, from which it is apart for its size.
"""

from __future__ import annotations

from composeplat.compose.file_model import FileKind, FileMount
from composeplat.compose.model import Project, Service
from composeplat.compose.origins import Checker, file_mount_path
from composeplat.diagnostics import PathKey

_OTHERS_READ, _GROUP_READS = 0o004, 0o040


def check_files(checker: Checker) -> None:
    project = checker.project
    for service in project.services.values():
        taken = {mount.target: "a volume" for mount in service.mounts}
        group = service.file_group
        for index, mount in enumerate(service.file_mounts):
            path = file_mount_path(service.name, index)
            _check_reference(checker, mount, path)
            if mount.target in taken:
                message = f"would be at '{mount.target}', where the service has {taken[mount.target]}"
                checker.add("conflicting-keys", path, message, "give one of them another path")
            _check_owner(checker, service, mount, path, group)
    _check_unused(checker, project)


def _check_reference(checker: Checker, mount: FileMount, path: PathKey) -> None:
    declared = checker.project.file_objects(mount.kind)
    section = mount.kind.section
    if not checker.is_undefined(section, mount.source, declared):
        return
    places = (path, (*checker.origins.written_at(path), "source"))
    shown = checker.shown(mount.source, *places)
    name = "NAME" if checker.is_hidden(*places) else mount.source
    hint = checker.report.near(mount.source, declared) or f"declare it: {section}: {{{name}: {{file: ./FILE}}}}"
    message = f"names a {mount.kind} that the top-level '{section}' does not declare: {shown}"
    checker.add(f"undefined-{mount.kind}", path, message, hint)


def _check_owner(checker: Checker, service: Service, mount: FileMount, path: PathKey, group: int | None) -> None:
    """Report owners that the file does not get, and a file that the service's user can't read."""
    written_at = checker.origins.written_at(path)
    if mount.uid:
        uid = checker.plain(str(mount.uid), (*written_at, "uid"))
        message = f"has a uid of {uid}, which has no effect: files of a pod belong to root"
        checker.add("no-effect", path, message, f"let a group read it: gid: '{uid}', mode: 0440")
    if mount.gid and mount.gid != group:
        why = (
            "the service keeps data, whose group would change with it" if service.keeps_data else "a pod has one group"
        )
        gid = checker.plain(str(mount.gid), (*written_at, "gid"))
        message = f"has a gid of {gid}, which has no effect: {why}"
        checker.add("no-effect", path, message, "let all read it: mode: 0444")
    if not can_read(service, mount.mode):
        shown = shown_user(checker, service)
        mode = checker.plain(f"{mount.mode:04o}", (*written_at, "mode"))
        message = f"has mode {mode} and belongs to root, so that user {shown} of the service can't read it"
        checker.add("unreadable-mount", path, message, f"let a group read it: gid: '{shown}', mode: 0440")


def can_read(service: Service, mode: int) -> bool:
    """Check that the user of a service can read a file of root; one that only the image knows counts as root."""
    user = service.user
    if user is None or not user.uid or service.file_group is not None or mode & _OTHERS_READ:
        return True
    # Images that are made for any user let it read by the group of root.
    return bool(mode & _GROUP_READS) and (user.gid == 0 or 0 in service.container.groups)


def shown_user(checker: Checker, service: Service) -> str:
    """Return the number of a service's user, as the file has it."""
    number = service.user.uid if service.user is not None else None
    return checker.plain(str(number), ("services", service.name, "user"))


def _check_unused(checker: Checker, project: Project) -> None:
    used = {(found.kind, found.name) for found in project.mounted_files}
    used |= {
        (FileKind.SECRET, name)
        for service in project.services.values()
        for name in (secret.source for secret in (service.build.secrets if service.build is not None else ()))
    }
    for kind in FileKind:
        for name in project.file_objects(kind):
            if (kind, name) not in used:
                message = "is used by no service, and not created"
                checker.add(f"unused-{kind}", (kind.section, name), message, at_key=True)
