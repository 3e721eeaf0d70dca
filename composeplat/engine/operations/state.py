"""Move the state of an environment to another backend, change its passphrase, and remove a lock that was left.

Each can be killed at any moment: the state is at least in one place, whole, and the same command continues.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from composeplat import progress
from composeplat.diagnostics import ComposeplatError
from composeplat.engine.backend_url import URL_VARIABLE
from composeplat.engine.moved_mark import forget_begun, forget_moved, is_begun, mark_begun, mark_moved, read_moved
from composeplat.engine.passphrase import Passphrase, salt_of
from composeplat.engine.pulumi_errors import Busy
from composeplat.engine.state_store import Deployment, StateStore, WrongPassphrase
from composeplat.system.records import record

_COMPARED = ("resources", "pending_operations")


def is_same(first: Deployment, second: Deployment) -> bool:
    """Return whether two plain deployments have the same resources, with their secrets."""
    return all((first.get(part) or []) == (second.get(part) or []) for part in _COMPARED)


def no_state(store: StateStore) -> ComposeplatError:
    """Return the error of a backend that has no state of an environment, with the place that it was moved to."""
    moved = read_moved(store.folder)
    if moved:
        return ComposeplatError(
            f"the state of {store.what} was moved to {moved}", f"set {URL_VARIABLE} to that backend"
        )
    return ComposeplatError(f"{store.what} has no state in {store.backend.shown}", "platform deploy")


# moving ---------------------------------------------------------------------------------------------------------------


@record(kw_only=True)
class MovePreview:
    """What a move will do."""

    resources: int
    reencrypts: bool
    is_continued: bool
    """The target has the state already, from a move that was interrupted."""


@dataclass(kw_only=True)
class Move:
    """The move of a state from one backend to another, while both of its locks on this machine are held."""

    source: StateStore
    target: StateStore
    passphrases: Sequence[Passphrase]
    """Those that the source may have."""
    passphrase: Passphrase
    """That of the target."""
    keep: bool = False
    """Whether the source keeps its state."""
    _encrypted: Deployment = field(default_factory=dict)
    _plain: Deployment = field(default_factory=dict)
    _is_there: bool = False

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        if self.source.folder == self.target.folder:
            raise ComposeplatError("both backends are the same: there is nothing to move")
        with self.source.lock("state move"), self.target.lock("state move"):
            yield

    def read(self) -> MovePreview | None:
        """Read both states, and refuse a move that can't be made; none if a former move has done all of it."""
        encrypted, there = self.source.read(), self.target.read()
        if encrypted is None:
            if there is not None:
                if is_begun(self.target.folder, self.source.backend.url):
                    # It ended after the removal, before the note of it.
                    self._note_moved()
                return None
            raise no_state(self.source)
        self._encrypted = encrypted
        if encrypted.get("secrets_providers") and not salt_of(encrypted):
            kind = encrypted["secrets_providers"].get("type")
            raise ComposeplatError(
                f"the state in {self.source.backend.shown} is encrypted by '{kind}', not with a passphrase",
                "move it with Pulumi: pulumi stack migrate",
            )
        found, self._plain = self.source.open(self.passphrases)
        self.source.check_unlocked(encrypted)
        self._check_target(there)
        return MovePreview(
            resources=len(self._plain.get("resources") or ()),
            reencrypts=found.text != self.passphrase.text,
            is_continued=self._is_there and bool((there or {}).get("resources")),
        )

    def _check_target(self, there: Deployment | None) -> None:
        self._is_there = there is not None
        if not (there or {}).get("resources") or is_begun(self.target.folder, self.source.backend.url):
            return
        with contextlib.suppress(WrongPassphrase):
            if is_same(self.target.read(self.passphrase) or {}, self._plain):
                return
        raise ComposeplatError(
            f"{self.target.what} has a state in {self.target.backend.shown} already, another one",
            "nothing was changed; look at each with 'platform state show', and remove one that nobody needs",
        )

    def run(self) -> None:
        """Write the target, compare it with the source, and only then remove the source."""
        mark_begun(self.target.folder, self.source.backend.url)
        if not self._is_there:
            with progress.step("creating the stack in the target"):
                self.target.create(self.passphrase)
        with progress.step("writing the state"):
            self.target.write(self._plain, self.passphrase, self.target.new_salt(self.passphrase))
        with progress.step("comparing both states"):
            if not is_same(self.target.read(self.passphrase) or {}, self._plain):
                raise ComposeplatError("the written state differs from the source, which stays as it was")
            if self.source.read() != self._encrypted:
                raise Busy(
                    f"the state in {self.source.backend.shown} has changed meanwhile, so it stays",
                    "run this again when nobody deploys: the target gets the new state",
                )
        self.target.forget_copies()
        forget_moved(self.target.folder)
        if not self.keep:
            with progress.step("removing the state from the source"):
                self.source.remove()
            self._note_moved()
        forget_begun(self.target.folder)

    def _note_moved(self) -> None:
        mark_moved(self.source.folder, self.target.backend.shown)
        self.source.forget_copies()
        forget_begun(self.target.folder)


# the passphrase -------------------------------------------------------------------------------------------------------


class PassphraseOutcome(StrEnum):
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    """It had the new passphrase already."""


def change_passphrase(
    store: StateStore, find_old: Callable[[], Sequence[Passphrase]], new: Passphrase, *, is_ours: bool
) -> PassphraseOutcome:
    """Encrypt a state with a new passphrase. One of ours is in the stack's folder, from now on.

    The old passphrases are found after an interrupted change was resolved, which decides on them.
    """
    with store.lock("state passphrase"):
        encrypted = store.read()
        if encrypted is None:
            raise no_state(store)
        if message := store.resolve_change(encrypted):
            progress.note(message)
        if not salt_of(encrypted):
            raise ComposeplatError(
                f"the state in {store.backend.shown} is not encrypted with a passphrase", "platform state show"
            )
        found, plain = store.open([*find_old(), new])
        if found.text == new.text:
            return PassphraseOutcome.UNCHANGED
        store.check_unlocked(encrypted)
        _reencrypt(store, encrypted, plain, new, is_ours=is_ours)
        return PassphraseOutcome.CHANGED


def _reencrypt(store: StateStore, encrypted: Deployment, plain: Deployment, new: Passphrase, *, is_ours: bool) -> None:
    salt = store.new_salt(new)
    store.change.begin(new.text, salt, is_ours=is_ours)
    if store.read() != encrypted:
        store.resolve_change(encrypted)
        raise Busy(f"the state in {store.backend.shown} has changed meanwhile", "run this again when nobody deploys")
    with progress.step(f"encrypting the state of {store.environment_name} in namespace {store.namespace}"):
        try:
            store.write(plain, new, salt)
        except ComposeplatError:
            with contextlib.suppress(ComposeplatError):
                store.resolve_change(store.read() or {})
            raise
        written = store.read(new) or {}
    if not is_same(written, plain):
        raise ComposeplatError("the state that was written differs from the one before", "platform refresh")
    store.resolve_change(written)
    store.forget_copies()
